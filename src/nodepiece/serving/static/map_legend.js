/** The groups of the map: their symbols, names and sizes; a group can be singled out. */

import { h, shorten, show } from "./dom.js";
import { symbol } from "./map_layers.js";

/** @param {(kind: number|null) => void} single shows one group, or all of them */
export function mapLegend(points, single) {
  const element = h("div", { class: "legend", role: "group", "aria-label": "Groups" });
  let chosen = null;

  function press(kind) {
    chosen = chosen === kind ? null : kind;
    draw();
    element.querySelectorAll("button")[kind].focus();
    single(chosen);
  }

  function button({ name, kind, size }) {
    const mark = symbol(kind, document.documentElement.dataset.theme, 5, 2);
    mark.style.width = "15px";
    return h(
      "button",
      { type: "button", "aria-pressed": String(chosen === kind), on: { click: () => press(kind) } },
      mark,
      shorten(name, 40),
      h("small", {}, size.toLocaleString("en")),
    );
  }

  const title = h("span", { class: "hint" }, "By the relation of most of their facts:");
  const draw = () => show(element, points.groups.length > 1 ? [title, points.groups.map(button)] : "");
  draw();
  return { element, draw };
}
