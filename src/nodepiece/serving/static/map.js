/** The view of all nodes as a map of their vectors. */

import { combobox, findNodes } from "./combobox.js";
import { announce, count, h, shorten, show } from "./dom.js";
import { nodeLink } from "./facts.js";
import { mapCanvas } from "./map_canvas.js";
import { mapLegend } from "./map_legend.js";
import { pointsOf } from "./map_points.js";
import { isCancelled, problem } from "./problem.js";
import { go } from "./route.js";

const AGAIN = 700; // milliseconds between two requests for a map that is being computed

export function mapView({ main, api }) {
  const search = combobox({
    label: "Find a node on the map",
    placeholder: "Type a name",
    find: findNodes(api),
    choose: (name) => name && go("map", { name }),
  });
  const place = h("div", {});
  show(main, h("div", { class: "map-head" }, h("h1", {}, "Map"), search.element), place);
  const stop = new AbortController();
  let points = null;
  let map = null;
  let marked = -1;
  const readout = h("p", { class: "readout" });

  const number = () =>
    (points.all > points.names.length ? `${points.names.length.toLocaleString("en")} of ` : "") +
    count(points.all, "node");

  /** The line below the map: the point that is pointed at, or chosen. */
  function describe(at) {
    const group = at >= 0 ? points.groupOf(at) : "";
    show(
      readout,
      at < 0
        ? `${number()}. Nodes with similar vectors are close to each other.`
        : [nodeLink(points.names[at]), group && h("span", { class: "soft" }, ` · ${shorten(group)}`)],
    );
  }

  function build() {
    map = mapCanvas(points, {
      point: (at) => describe(at >= 0 ? at : marked),
      choose: (at) => go("map", { name: points.names[at] }),
      open: (at) => go("node", { name: points.names[at] }),
    });
    const legend = mapLegend(points, map.single);
    const keys = "Arrow keys move, + and − zoom, 0 shows all, Enter opens the node nearest to the middle.";
    show(place, map.element, readout, legend.element, h("p", { class: "hint", id: "map-keys" }, keys));
    document.addEventListener("theme", () => (legend.draw(), map.redraw()), { signal: stop.signal });
    announce(`The map shows ${number()}.`);
  }

  const wait = (text) => show(place, h("p", { class: "hint waiting" }, text));

  async function load() {
    wait("Loading the map …");
    try {
      let answer = await api.map(stop.signal);
      while (!answer.names) {
        wait("The map is being computed, once for this run …");
        await new Promise((resolve) => setTimeout(resolve, AGAIN));
        answer = await api.map(stop.signal);
      }
      points = pointsOf(answer);
      build();
    } catch (error) {
      if (!isCancelled(error)) show(place, problem(error, null, () => (loaded = load())));
    }
  }
  let loaded = load();

  async function update(params) {
    await loaded;
    if (!points) return;
    const name = params.get("name");
    marked = name ? points.names.indexOf(name) : -1;
    search.value = "";
    map.mark(marked);
    describe(marked);
    if (marked >= 0) announce(`${shorten(name)} is marked.`);
    else if (name) show(readout, `${shorten(name)} is not on the map, which was computed once for ${number()}.`);
  }

  return {
    update,
    close: () => {
      stop.abort();
      map?.close();
    },
  };
}
