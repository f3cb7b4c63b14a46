/**
 * Drawing the map. All points are drawn to a layer once for a place and zoom. While the map moves,
 * that layer is moved and scaled; when it rests, another is drawn, some points in every frame.
 */

import { shorten } from "./dom.js";
import { COLOURS, SHAPES } from "./map_points.js";

const MARGIN = 0.35; // of the width: how far the layer reaches beyond what is seen
const PART = 500; // points drawn before the clock is read
const NAMES = 70; // at most

const FULL = 2 * Math.PI;

const PATHS = {
  circle: (c, r) => c.arc(0, 0, r, 0, FULL),
  square: (c, r) => c.rect(-r * 0.9, -r * 0.9, r * 1.8, r * 1.8),
  triangle: (c, r) => polygon(c, [[0, -1.2], [1.1, 0.8], [-1.1, 0.8]], r),
  diamond: (c, r) => polygon(c, [[0, -1.3], [1.1, 0], [0, 1.3], [-1.1, 0]], r),
  cross: (c, r) => {
    c.rect(-r * 1.2, -r * 0.4, r * 2.4, r * 0.8);
    c.rect(-r * 0.4, -r * 1.2, r * 0.8, r * 2.4);
  },
  down: (c, r) => polygon(c, [[0, 1.2], [1.1, -0.8], [-1.1, -0.8]], r),
  ring: (c, r) => {
    c.arc(0, 0, r * 1.1, 0, FULL);
    c.moveTo(r * 0.5, 0);
    c.arc(0, 0, r * 0.5, 0, FULL, true);
  },
  bar: (c, r) => c.rect(-r * 0.45, -r * 1.3, r * 0.9, r * 2.6),
  dot: (c, r) => c.arc(0, 0, r * 0.7, 0, FULL),
};

function polygon(context, corners, r) {
  corners.forEach(([x, y], i) => context[i ? "lineTo" : "moveTo"](x * r, y * r));
  context.closePath();
}

/** The symbol of a group: drawn once, then copied for each of its points. */
export function symbol(kind, theme, radius, ratio) {
  const size = Math.ceil((radius * 2.6 + 2) * ratio);
  const canvas = document.createElement("canvas");
  canvas.width = canvas.height = size;
  const context = canvas.getContext("2d");
  context.setTransform(ratio, 0, 0, ratio, size / 2, size / 2);
  context.fillStyle = COLOURS[theme][kind];
  context.globalAlpha = 0.85;
  context.beginPath();
  PATHS[SHAPES[kind]](context, radius);
  context.fill();
  return canvas;
}

/** An empty layer for a view, larger than it by the margin. */
export function newLayer(view, ratio) {
  const canvas = document.createElement("canvas");
  canvas.width = Math.round(view.width * (1 + 2 * MARGIN) * ratio);
  canvas.height = Math.round(view.height * (1 + 2 * MARGIN) * ratio);
  return { canvas, zoom: view.zoom, x: view.x - view.width * MARGIN, y: view.y - view.height * MARGIN };
}

/** Draws all points to a layer, some at a time; yields the layer after each part, and returns it. */
export function* layerDrawing(layer, points, { zoom, fit }, { theme, ratio, dimmed }) {
  const { width, height } = layer.canvas;
  const context = layer.canvas.getContext("2d");
  const few = points.x.length < 3000;
  const radius = Math.min(6, (few ? 3.4 : 1.7) * Math.max(1, Math.sqrt(zoom / fit)));
  const symbols = COLOURS[theme].map((_, kind) => symbol(kind, theme, radius, ratio));
  const half = symbols[0].width / 2;
  for (let i = 0; i < points.x.length; i++) {
    const x = (points.x[i] * zoom - layer.x) * ratio;
    const y = (points.y[i] * zoom - layer.y) * ratio;
    if (x > -half && y > -half && x < width + half && y < height + half) {
      context.globalAlpha = dimmed !== null && dimmed !== points.kind[i] ? 0.12 : 1;
      context.drawImage(symbols[points.kind[i]], x - half, y - half);
    }
    if (i % PART === PART - 1) yield layer;
  }
  return layer;
}

/** Copies the layer to the screen, moved and scaled to where the view is now. */
export function copyLayer(context, layer, view, ratio) {
  const scale = view.zoom / layer.zoom;
  context.setTransform(1, 0, 0, 1, 0, 0);
  context.clearRect(0, 0, context.canvas.width, context.canvas.height);
  const x = (layer.x * scale - view.x) * ratio;
  const y = (layer.y * scale - view.y) * ratio;
  context.drawImage(layer.canvas, x, y, layer.canvas.width * scale, layer.canvas.height * scale);
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
}

/** Names beside points, in the order of the points, wherever no other name is in the way. */
export function drawNames(context, points, view, { ink, halo, dimmed, first }) {
  const taken = new Set();
  const [cellX, cellY] = [20, 8];
  let drawn = 0;
  context.font = "12px system-ui, sans-serif";
  context.textBaseline = "middle";
  context.lineJoin = "round";
  context.lineWidth = 3.5;
  const place = (i, isForced) => {
    const x = points.x[i] * view.zoom - view.x;
    const y = points.y[i] * view.zoom - view.y;
    if (x < 0 || y < 4 || x > view.width - 20 || y > view.height - 4) return;
    const text = shorten(points.names[i], 26);
    const cells = [];
    const right = x + 14 + text.length * 6.8;
    for (let row = Math.floor((y - 8) / cellY); row <= Math.floor((y + 8) / cellY); row++) {
      for (let cell = Math.floor(x / cellX); cell <= Math.floor(right / cellX); cell++) {
        cells.push(row * 1000 + cell);
      }
    }
    if (!isForced && (right > view.width || cells.some((cell) => taken.has(cell)))) return;
    for (const cell of cells) taken.add(cell);
    context.font = isForced ? "bold 13px system-ui, sans-serif" : "12px system-ui, sans-serif";
    context.strokeStyle = halo;
    context.strokeText(text, x + 9, y);
    context.fillStyle = ink;
    context.fillText(text, x + 9, y);
    drawn++;
  };
  if (first >= 0) place(first, true);
  for (let i = 0; i < points.x.length && drawn < NAMES; i++) {
    if (i !== first && (dimmed === null || points.kind[i] === dimmed)) place(i, false);
  }
}
