/** The view of all nodes as a map of their vectors. */

import { combobox, findNodes } from "./combobox.js";
import { announce, count, h, shorten, show } from "./dom.js";
import { nodeLink } from "./facts.js";
import { copyLayer, drawLayer, drawNames, symbol } from "./map_layers.js";
import { gridOf, pointsOf } from "./map_points.js";
import { centreOn, controlByPointer, keyAction, newView } from "./map_view.js";
import { isCancelled, problem } from "./problem.js";
import { go } from "./route.js";

const SETTLE = 110; // milliseconds without movement before the points are drawn again
const REACH = 14; // pixels around the pointer

export function mapView({ main, api }) {
  const canvas = h("canvas", {
    tabindex: "0",
    role: "application",
    "aria-roledescription": "map",
    "aria-label": "Map of the nodes",
    "aria-describedby": "map-keys",
  });
  const search = combobox({
    label: "Find a node on the map",
    placeholder: "Type a name",
    find: findNodes(api),
    choose: (name) => name && go("map", { name }),
  });
  const readout = h("p", { class: "readout" });
  const legend = h("div", { class: "legend", role: "group", "aria-label": "Groups" });
  const frame = h("div", { class: "map" }, canvas, zoomButtons());
  const status = h("div", {});
  const keys = "Arrow keys move, + and − zoom, 0 shows all, Enter opens the node nearest to the middle.";
  const head = h("div", { class: "map-head" }, h("h1", {}, "Map"), search.element);
  const help = h("p", { class: "hint", id: "map-keys" }, keys);
  show(main, head, status, frame, readout, legend, help);
  frame.hidden = help.hidden = true;

  const context = canvas.getContext("2d");
  const layer = { canvas: document.createElement("canvas"), zoom: 1, x: 0, y: 0 };
  const view = newView(1, 1, { width: 1, height: 1 });
  const stop = new AbortController();
  let points = null;
  let grid = null;
  let marked = -1; // the chosen point
  let pointed = -1; // the point under the pointer, or nearest to the middle
  let dimmed = null; // the only group that is not dimmed
  let frameDue = 0;
  let settle = 0;

  const ratio = () => Math.min(window.devicePixelRatio || 1, 2);
  const theme = () => document.documentElement.dataset.theme;
  const isFocused = () => document.activeElement === canvas;

  function paint() {
    frameDue = 0;
    if (!points) return;
    copyLayer(context, layer, view, ratio());
    const style = getComputedStyle(canvas);
    const colours = { ink: style.color, halo: style.backgroundColor, dimmed };
    drawNames(context, points, view, { ...colours, first: pointed >= 0 ? pointed : marked });
    for (const point of [marked, pointed]) if (point >= 0) circle(point, style.color);
    if (isFocused()) cross(style.color);
  }

  function circle(point, colour) {
    context.strokeStyle = colour;
    context.lineWidth = 2;
    context.beginPath();
    context.arc(points.x[point] * view.zoom - view.x, points.y[point] * view.zoom - view.y, 8, 0, 7);
    context.stroke();
  }

  function cross(colour) {
    const [x, y] = [view.width / 2, view.height / 2];
    context.strokeStyle = colour;
    context.lineWidth = 1;
    context.strokeRect(x - 5, y, 10, 0);
    context.strokeRect(x, y - 5, 0, 10);
  }

  const paintSoon = () => (frameDue ||= requestAnimationFrame(paint));

  function drawAgain() {
    drawLayer(layer, points, view, { theme: theme(), ratio: ratio(), dimmed });
    paintSoon();
  }

  /** The view has changed: the old layer is moved now, and drawn again a little later. */
  function moved() {
    clearTimeout(settle);
    settle = setTimeout(drawAgain, SETTLE);
    paintSoon();
  }

  function nearest(x, y, reach) {
    return grid.nearest((x + view.x) / view.zoom, (y + view.y) / view.zoom, reach / view.zoom);
  }

  function point(at) {
    if (at === pointed) return;
    pointed = at;
    canvas.classList.toggle("on-point", at >= 0);
    describe();
    paintSoon();
  }

  /** The line below the map: the point that is pointed at, or chosen. */
  function describe() {
    const at = pointed >= 0 ? pointed : marked;
    const group = at >= 0 ? points.groupOf(at) : "";
    show(
      readout,
      at < 0
        ? `${count(points.names.length, "node")}. Nodes with similar vectors are close to each other.`
        : [nodeLink(points.names[at]), group && h("span", { class: "soft" }, ` · ${group}`)],
    );
  }

  function choose(x, y) {
    const at = nearest(x, y, REACH * 1.4);
    if (at >= 0) go("map", { name: points.names[at] });
  }

  function zoomButtons() {
    const button = (text, label, key) =>
      h("button", { type: "button", "aria-label": label, on: { click: () => press(key) } }, text);
    return h(
      "div",
      { class: "zoom" },
      button("+", "Zoom in", "+"),
      button("−", "Zoom out", "-"),
      button("⤢", "Show all", "0"),
    );
  }

  function press(key) {
    const action = points && keyAction(view, key, points);
    if (!action) return false;
    action();
    moved();
    return true;
  }

  canvas.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && points) {
      const at = nearest(view.width / 2, view.height / 2, view.width / 2);
      if (at >= 0) go("node", { name: points.names[at] });
    } else if (!event.ctrlKey && !event.metaKey && press(event.key)) {
      event.preventDefault();
      const at = nearest(view.width / 2, view.height / 2, view.width / 2);
      point(at);
      if (at >= 0) announce(`Nearest to the middle: ${shorten(points.names[at])}`);
    }
  });
  for (const change of ["focus", "blur"]) canvas.addEventListener(change, paintSoon);
  canvas.addEventListener("pointerleave", () => points && point(-1));
  controlByPointer(canvas, view, {
    moved,
    hover: (x, y) => points && point(nearest(x, y, REACH)),
    click: (x, y) => points && choose(x, y),
  });

  function showLegend() {
    const button = ({ name, kind, size }) => {
      const mark = symbol(kind, theme(), 5, ratio());
      mark.style.width = "15px";
      const press = () => {
        dimmed = dimmed === kind ? null : kind;
        showLegend();
        legend.children[kind].focus();
        drawAgain();
      };
      return h(
        "button",
        { type: "button", "aria-pressed": String(dimmed === kind), on: { click: press } },
        mark,
        shorten(name, 40),
        h("small", {}, size.toLocaleString("en")),
      );
    };
    show(legend, points.groups.length > 1 ? points.groups.map(button) : "");
  }

  function resize() {
    if (!points || canvas.clientWidth === 0) return;
    const before = { x: (view.x + view.width / 2) / view.zoom, y: (view.y + view.height / 2) / view.zoom };
    const magnified = view.zoom / view.fit;
    const isFirst = view.width === 1;
    Object.assign(view, newView(canvas.clientWidth, canvas.clientHeight, points));
    if (!isFirst) centreOn(view, before.x, before.y, view.fit * magnified);
    canvas.width = Math.round(view.width * ratio());
    canvas.height = Math.round(view.height * ratio());
    drawAgain();
  }
  const observer = new ResizeObserver(resize);
  observer.observe(canvas);
  document.addEventListener("theme", () => points && (showLegend(), drawAgain()), { signal: stop.signal });

  async function load() {
    try {
      let answer = await api.map(stop.signal);
      while (answer.status === 202 || answer.status === "computing") {
        show(status, h("p", { class: "hint waiting" }, "The map is being computed, once for this run …"));
        await new Promise((resolve) => setTimeout(resolve, 700));
        answer = await api.map(stop.signal);
      }
      points = pointsOf(answer);
      grid = gridOf(points);
      show(status);
      frame.hidden = help.hidden = false;
      showLegend();
      resize();
      announce(`The map shows ${count(points.names.length, "node")}.`);
    } catch (error) {
      if (!isCancelled(error)) show(status, problem(error, null, load));
    }
  }
  const loaded = load();

  async function update(params) {
    await loaded;
    if (!points) return;
    const name = params.get("name");
    marked = name ? points.names.indexOf(name) : -1;
    search.value = "";
    if (name && marked < 0) {
      show(readout, `${shorten(name)} is not on the map: it was added after the map was computed.`);
      return;
    }
    describe();
    if (marked >= 0 && !isSeen(marked)) centreOn(view, points.x[marked], points.y[marked], Math.max(view.zoom, view.fit * 3));
    if (marked >= 0) announce(`${shorten(name)} is marked.`);
    moved();
  }

  const isSeen = (i) => {
    const [x, y] = [points.x[i] * view.zoom - view.x, points.y[i] * view.zoom - view.y];
    return view.zoom > view.fit * 1.5 && x > 20 && y > 20 && x < view.width - 80 && y < view.height - 20;
  };

  return {
    update,
    close: () => {
      stop.abort();
      observer.disconnect();
      clearTimeout(settle);
    },
  };
}
