/** Paths between the two nodes of a fact: lanes from head to tail, or columns where lanes are tight. */

import { h, newId, shorten, svg } from "./dom.js";
import { arrow } from "./rings.js";
import { nodeAddress } from "./route.js";
import { fitText, fitted, textWidth } from "./text.js";

const LANE = 64; // pixels between lanes
const TIGHT = 132; // pixels for a step, below which lanes cannot be read
const COLUMN = 215; // pixels, at least, for a column

/** The nodes along a path; a fact may be passed from its tail to its head. */
export function alongPath(start, steps) {
  let at = start;
  return steps.map(([head, relation, tail]) => {
    const isForward = head === at;
    const from = at;
    at = isForward ? tail : head;
    return { from, relation, to: at, isForward };
  });
}

const arrowAt = (id, isForward) => ({ [isForward ? "marker-end" : "marker-start"]: `url(#${id})` });

const nodeAnchor = (kind, name, ...content) =>
  svg(
    "a",
    { class: `stop ${kind}`, href: nodeAddress(name), "aria-label": shorten(name) },
    svg("title", {}, shorten(name, 200)),
    content,
  );

const stepName = (relation, x, y, pixels, kind = "") =>
  svg("text", { class: `step-name ${kind}`, x, y, "aria-hidden": "true" }, fitText(relation, pixels, 12.5));

/** The width of the line of a path: the more the path adds, the thicker. */
function widthOf({ score }, paths) {
  const most = Math.max(...paths.map((path) => path.score));
  return most > 0 ? (1.3 + 2.4 * Math.max(0, score / most)).toFixed(2) : 1.6;
}

/** A box with a name, for the head and the tail. */
function endBox(name, x, y, width) {
  return nodeAnchor(
    "end",
    name,
    svg("rect", { class: "target", x, y: y - 17, width, height: 34, rx: 17 }),
    svg("text", { x: x + width / 2, y: y + 4.5, "text-anchor": "middle" }, fitText(name, width - 20, 13, 650)),
  );
}

function stopDot(name, x, y, pixels) {
  return nodeAnchor(
    "via",
    name,
    svg("circle", { class: "target", cx: x, cy: y, r: 12 }),
    svg("circle", { cx: x, cy: y, r: 6 }),
    svg("text", { x, y: y + 23, "text-anchor": "middle" }, fitText(name, pixels, 13)),
  );
}

/** The line of a step: it bends from the end box to its lane, runs along it, and bends back. */
function stepLine(x1, x2, y, bend, firstY, lastY) {
  const start = firstY === null ? `M${x1} ${y}` : `M${x1} ${firstY}C${x1 + bend / 2} ${firstY} ${x1 + bend / 2} ${y} ${x1 + bend} ${y}`;
  if (lastY === null) return `${start}H${x2}`;
  return `${start}H${x2 - bend}C${x2 - bend / 2} ${y} ${x2 - bend / 2} ${lastY} ${x2} ${lastY}`;
}

function drawLanes(head, tail, paths, width, ends) {
  const id = newId("arrow");
  const height = (paths.length - 1) * LANE + 76;
  const middle = height / 2;
  const [left, right] = [ends[0] + 3, width - ends[1] - 3];
  const lines = [];
  const stops = [];
  paths.forEach((path, i) => {
    const { steps } = path;
    const thickness = widthOf(path, paths);
    const y = middle + (i - (paths.length - 1) / 2) * LANE;
    const port = middle + (i - (paths.length - 1) / 2) * Math.min(7, 22 / paths.length);
    const gap = (right - left) / steps.length;
    const bend = Math.min(36, gap * 0.22);
    alongPath(head, steps).forEach(({ relation, to, isForward }, k) => {
      const [isFirst, isLast] = [k === 0, k === steps.length - 1];
      const [x1, x2] = [left + k * gap, left + (k + 1) * gap];
      const [from, until] = [isFirst ? x1 : x1 + 8, isLast ? x2 : x2 - 8];
      const d = stepLine(from, until, y, bend, isFirst ? port : null, isLast ? port : null);
      lines.push(svg("path", { class: "step", d, "stroke-width": thickness, ...arrowAt(id, isForward) }));
      const [a, b] = [isFirst ? x1 + bend : x1, isLast ? x2 - bend : x2];
      stops.push(stepName(relation, (a + b) / 2, y - 8, b - a - 10));
      if (!isLast) stops.push(stopDot(to, x2, y, gap - 12));
    });
  });
  return svg(
    "svg",
    { viewBox: `0 0 ${width} ${height}`, role: "group", "aria-label": "Paths, drawn" },
    svg("defs", {}, arrow(id, "auto-start-reverse")),
    lines,
    stops,
    endBox(head, 0, middle, ends[0]),
    endBox(tail, width - ends[1], middle, ends[1]),
  );
}

/** One path from top to bottom, with the names beside it. */
function drawColumn(head, { steps }, width, thickness) {
  const id = newId("arrow");
  const [row, x] = [54, 16];
  const path = alongPath(head, steps);
  const stop = (name, k) => {
    const y = 18 + k * row;
    const isEnd = k === 0 || k === path.length;
    return nodeAnchor(
      isEnd ? "end" : "via",
      name,
      svg("circle", { class: "target", cx: x, cy: y, r: 14 }),
      svg("circle", { cx: x, cy: y, r: isEnd ? 8 : 6 }),
      svg("text", { x: x + 17, y: y + 4.5 }, fitText(name, width - x - 20, 13, isEnd ? 650 : 400)),
    );
  };
  return svg(
    "svg",
    { viewBox: `0 0 ${width} ${36 + path.length * row}`, role: "group", "aria-label": "A path, drawn" },
    svg("defs", {}, arrow(id, "auto-start-reverse")),
    path.map(({ relation, isForward }, k) => [
      svg("path", {
        class: "step",
        d: `M${x} ${29 + k * row}V${7 + (k + 1) * row}`,
        "stroke-width": thickness,
        ...arrowAt(id, isForward),
      }),
      stepName(relation, x + 17, 22 + (k + 0.5) * row, width - x - 20, "beside"),
    ]),
    stop(head, 0),
    path.map(({ to }, k) => stop(to, k + 1)),
  );
}

function draw(head, tail, paths, width) {
  const ends = [head, tail].map((name) => Math.min(textWidth(shorten(name, 60), 13, 650) + 24, width * 0.22));
  const steps = Math.max(...paths.map((path) => path.steps.length));
  if ((width - ends[0] - ends[1]) / steps >= TIGHT) return drawLanes(head, tail, paths, width, ends);
  const number = Math.max(1, Math.min(paths.length, Math.floor(width / COLUMN)));
  const each = Math.floor(width / number) - 12;
  return h("div", { class: "path-columns" }, paths.map((path) => drawColumn(head, path, each, widthOf(path, paths))));
}

const sentence = ({ from, relation, to, isForward }) =>
  shorten(isForward ? `${from} ${relation} ${to}` : `${to} ${relation} ${from}`, 200);

/** The drawing, and the same paths as sentences for screen readers. */
export function drawPaths(head, tail, paths) {
  return h(
    "figure",
    { class: "paths" },
    fitted({}, (width) => draw(head, tail, paths, width)),
    h(
      "ol",
      { class: "unseen" },
      paths.map(({ steps }) => h("li", {}, alongPath(head, steps).map(sentence).join("; "))),
    ),
  );
}
