/** The canvas of the map, and what pointers and keys do on it. */

import { announce, h, shorten } from "./dom.js";
import { copyLayer, drawNames, layerDrawing, newLayer } from "./map_layers.js";
import { gridOf } from "./map_points.js";
import { centreOn, controlByPointer, keyAction, newView } from "./map_view.js";

const SETTLE = 110; // milliseconds without movement before the points are drawn again
const SLICE = 7; // milliseconds of a frame in which points are drawn
const REACH = 14; // pixels around the pointer

/**
 * @param {import("./map_points.js").Points} points
 * @param {{point: (at: number) => void, choose: (at: number) => void, open: (at: number) => void}} on
 */
export function mapCanvas(points, on) {
  const canvas = h("canvas", {
    tabindex: "0",
    role: "application",
    "aria-roledescription": "map",
    "aria-label": "Map of the nodes",
    "aria-describedby": "map-keys",
  });
  const element = h("div", { class: "map" }, canvas, zoomButtons());
  const context = canvas.getContext("2d");
  const grid = gridOf(points);
  const view = newView(1, 1, points);
  let layer = null; // all points, as they were when the view last rested
  let drawing = null; // of the next layer, a slice in every frame
  let marked = -1; // the chosen point
  let pointed = -1; // the point under the pointer, or nearest to the middle
  let dimmed = null; // the only group that is not dimmed
  let frame = 0;
  let settle = 0;

  const ratio = () => Math.min(window.devicePixelRatio || 1, 2);

  /** Draws a slice of the next layer, if there is one, and the frame itself. */
  function paint() {
    frame = 0;
    const end = performance.now() + SLICE;
    while (drawing && performance.now() < end) {
      const { done, value } = drawing.next();
      if (done) drawing = null;
      if (done || layer === null) layer = value;
    }
    if (drawing) paintSoon();
    if (!layer) return;
    copyLayer(context, layer, view, ratio());
    const { color: ink, backgroundColor: halo } = getComputedStyle(canvas);
    drawNames(context, points, view, { ink, halo, dimmed, first: pointed >= 0 ? pointed : marked });
    context.strokeStyle = ink;
    for (const at of new Set([marked, pointed])) if (at >= 0) circle(at);
    if (document.activeElement === canvas) cross();
  }

  function circle(at) {
    context.lineWidth = 2;
    context.beginPath();
    context.arc(points.x[at] * view.zoom - view.x, points.y[at] * view.zoom - view.y, 8, 0, 7);
    context.stroke();
  }

  function cross() {
    context.lineWidth = 1;
    context.strokeRect(view.width / 2 - 6, view.height / 2, 12, 0);
    context.strokeRect(view.width / 2, view.height / 2 - 6, 0, 12);
  }

  const paintSoon = () => (frame ||= requestAnimationFrame(paint));

  function redraw() {
    const theme = document.documentElement.dataset.theme;
    drawing = layerDrawing(newLayer(view, ratio()), points, view, { theme, ratio: ratio(), dimmed });
    paintSoon();
  }

  /** The view has changed: the old layer is moved now, and drawn again a little later. */
  function moved() {
    clearTimeout(settle);
    settle = setTimeout(redraw, SETTLE);
    paintSoon();
  }

  const nearest = (x, y, reach) =>
    grid.nearest((x + view.x) / view.zoom, (y + view.y) / view.zoom, reach / view.zoom);
  const nearestToMiddle = () => nearest(view.width / 2, view.height / 2, view.width / 2);

  function point(at) {
    if (at === pointed) return;
    pointed = at;
    canvas.classList.toggle("on-point", at >= 0);
    on.point(at);
    paintSoon();
  }

  function zoomButtons() {
    const button = (text, label, key) =>
      h("button", { type: "button", "aria-label": label, on: { click: () => press(key) } }, text);
    const all = [button("+", "Zoom in", "+"), button("−", "Zoom out", "-"), button("⤢", "Show all", "0")];
    return h("div", { class: "zoom" }, all);
  }

  function press(key) {
    const action = keyAction(view, key, points);
    action?.();
    if (action) moved();
    return action !== null;
  }

  canvas.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === "Enter") {
      const at = nearestToMiddle();
      if (at >= 0) on.open(at);
    } else if (press(event.key)) {
      event.preventDefault();
      point(nearestToMiddle());
      if (pointed >= 0) announce(`Nearest to the middle: ${shorten(points.names[pointed])}`);
    }
  });
  for (const change of ["focus", "blur"]) canvas.addEventListener(change, paintSoon);
  canvas.addEventListener("pointerleave", () => point(-1));
  controlByPointer(canvas, view, {
    moved,
    hover: (x, y) => point(nearest(x, y, REACH)),
    click: (x, y) => {
      const at = nearest(x, y, 1.4 * REACH);
      if (at >= 0) on.choose(at);
    },
  });

  const observer = new ResizeObserver(() => {
    if (canvas.clientWidth === 0) return;
    const middle = { x: (view.x + view.width / 2) / view.zoom, y: (view.y + view.height / 2) / view.zoom };
    const magnified = view.width > 1 ? view.zoom / view.fit : 1;
    Object.assign(view, newView(canvas.clientWidth, canvas.clientHeight, points));
    if (magnified !== 1) centreOn(view, middle.x, middle.y, view.fit * magnified);
    canvas.width = Math.round(view.width * ratio());
    canvas.height = Math.round(view.height * ratio());
    if (marked >= 0) mark(marked);
    redraw();
  });
  observer.observe(canvas);

  /** Marks a point, and moves the view to where it can be seen. */
  function mark(at) {
    marked = at;
    if (at >= 0 && view.width > 1) {
      const [x, y] = [points.x[at] * view.zoom - view.x, points.y[at] * view.zoom - view.y];
      const isSeen = x > 20 && y > 20 && x < view.width - 80 && y < view.height - 20;
      const zoom = Math.max(view.zoom, 2.2 * view.fit);
      if (!isSeen || zoom > view.zoom) centreOn(view, points.x[at], points.y[at], zoom);
    }
    moved();
  }

  return {
    element,
    mark,
    redraw,
    single: (kind) => {
      dimmed = kind;
      redraw();
    },
    close: () => {
      observer.disconnect();
      clearTimeout(settle);
      cancelAnimationFrame(frame);
    },
  };
}
