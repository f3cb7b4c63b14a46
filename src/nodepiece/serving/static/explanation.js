/** Why a fact is predicted: paths, facts that it depends on, pieces, and facts like it. */

import { bar, percent } from "./answers.js";
import { announce, h, shorten, show } from "./dom.js";
import { factText, nodeLink } from "./facts.js";
import { drawPaths } from "./paths.js";
import { isCancelled, problem } from "./problem.js";

/**
 * Fetches the explanation of a fact and shows it.
 * @param {HTMLElement} place
 * @param {{head: string, relation: string, tail: string}} fact
 * @param {{signal: AbortSignal, focus: boolean}} options `focus`: its heading gets the focus
 */
export async function explanation(place, api, fact, { signal, focus }) {
  const title = h(
    "h2",
    { tabindex: "-1" },
    "Why ",
    factText([fact.head, fact.relation, fact.tail]),
  );
  const body = h("div", { "aria-busy": "true" }, h("p", { class: "hint waiting" }, "Looking for reasons …"));
  show(place, title, body);
  if (focus) {
    title.focus({ preventScroll: true });
    if (place.getBoundingClientRect().top > window.innerHeight * 0.7) place.scrollIntoView();
  }
  try {
    const reasons = await api.explain(fact, signal);
    show(body, sections(reasons));
    if (focus) announce("The explanation is there.");
  } catch (error) {
    if (isCancelled(error)) return;
    show(body, problem(error, null, () => explanation(place, api, fact, { signal, focus })));
  }
  body.removeAttribute("aria-busy");
}

const section = (heading, text, ...content) =>
  h("section", {}, h("h3", {}, heading), text && h("p", { class: "hint" }, text), ...content);

function sections(reasons) {
  const { head, relation, tail, rank, probability, paths = [], necessary = [], similar = [] } = reasons;
  const shared = reasons.pieces?.shared ?? [];
  const carrying = reasons.pieces?.carrying ?? [];
  const chance = typeof probability === "number" ? `, probability ${percent(probability)}` : "";
  const found = [
    h("p", { class: "verdict" }, `Rank ${Math.round(rank * 10) / 10} among all candidates${chance}.`),
    paths.length > 0 &&
      section("Paths in the graph", "How the facts of the graph connect the two.", drawPaths(head, tail, paths)),
    necessary.length > 0 && section("Facts it depends on", "The rank without each of them:", withoutList(necessary, rank)),
    shared.length > 0 && section("Pieces that both have", null, sharedTable(shared, head, tail)),
    carrying.length > 0 &&
      section("Pieces that matter most", "How the score changes without the piece.", carryingList(carrying)),
    similar.length > 0 && section("Similar facts in the graph", null, similarList(similar)),
  ];
  const isEmpty = found.slice(1).every((part) => !part);
  return [
    ...found,
    isEmpty &&
      h("p", { class: "hint" }, `The graph has no path, piece or similar fact that explains ${shorten(relation)} here.`),
  ];
}

function withoutList(necessary, rank) {
  return h(
    "ul",
    { class: "rows" },
    necessary.map(({ fact, rank_without }) =>
      h(
        "li",
        {},
        factText(fact),
        h("span", { class: "value" }, `rank ${Math.round(rank)} → ${Math.round(rank_without)}`),
      ),
    ),
  );
}

function sharedTable(shared, head, tail) {
  const steps = (distance) => (distance === null || distance === undefined ? "–" : String(distance));
  const column = (name) => h("th", { scope: "col" }, `hops from ${shorten(name, 24)}`);
  return h(
    "table",
    {},
    h("thead", {}, h("tr", {}, h("th", { scope: "col" }, "piece"), column(head), column(tail))),
    h(
      "tbody",
      {},
      shared.map(({ piece, head_distance, tail_distance }) =>
        h(
          "tr",
          {},
          h("th", { scope: "row" }, head_distance === null ? shorten(piece) : nodeLink(piece)),
          h("td", {}, steps(head_distance)),
          h("td", {}, steps(tail_distance)),
        ),
      ),
    ),
  );
}

function carryingList(carrying) {
  const most = Math.max(...carrying.map(({ effect }) => Math.abs(effect)), 1e-9);
  return h(
    "ul",
    { class: "rows" },
    carrying.map(({ node, piece, effect }) =>
      h(
        "li",
        {},
        h("span", {}, shorten(piece), h("small", {}, ` of ${shorten(node, 40)}`)),
        h("span", { class: "value" }, `${effect > 0 ? "+" : "−"}${Math.abs(effect).toFixed(2)}`),
        bar(Math.abs(effect) / most),
      ),
    ),
  );
}

function similarList(similar) {
  return h(
    "ul",
    { class: "rows" },
    similar.map(({ fact, similarity }) =>
      h("li", {}, factText(fact), h("span", { class: "value" }, similarity.toFixed(2))),
    ),
  );
}
