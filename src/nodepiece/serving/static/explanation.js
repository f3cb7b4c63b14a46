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
 * @param {object} options
 * @param {AbortSignal} options.signal
 * @param {boolean} options.focus whether the heading gets the focus
 * @param {string[][]} [options.assume] facts that are assumed
 */
export async function explanation(place, api, fact, { signal, focus, assume = [] }) {
  const title = h(
    "h2",
    { tabindex: "-1" },
    "Why ",
    factText([fact.head, fact.relation, fact.tail]),
  );
  const body = h("div", { "aria-busy": "true" }, waiting("Looking for reasons …"));
  show(place, title, body);
  if (focus) {
    title.focus({ preventScroll: true });
    if (place.getBoundingClientRect().top > window.innerHeight * 0.7) place.scrollIntoView();
  }
  try {
    const reasons = await patiently(
      () => api.explain({ ...fact, assume }, signal),
      () => show(body, waiting("The first explanation compiles its code, which takes a minute …")),
    );
    show(body, sections(reasons));
    if (focus) announce("The explanation is there.");
  } catch (error) {
    if (isCancelled(error)) return;
    show(body, problem(error, null, () => explanation(place, api, fact, { signal, focus, assume })));
  }
  body.removeAttribute("aria-busy");
}

const waiting = (text) => h("p", { class: "hint waiting" }, text);

/** Repeats a request that the server did not answer in time; it continues to compile meanwhile. */
async function patiently(request, onLate) {
  for (let late = 1; ; late++) {
    try {
      return await request();
    } catch (error) {
      if (error.status !== 504 || late > 4) throw error;
      onLate();
    }
  }
}

const signed = (value) => `${value > 0 ? "+" : "−"}${Math.abs(value).toFixed(2)}`;

/** A rank; ties are counted half. */
const rounded = (rank) => (Math.round(10 * rank) / 10).toLocaleString("en");

/** The first rows of a list or table, and a button for the others. */
function firstOf(rows, number, draw) {
  if (rows.length <= number + 1) return draw(rows);
  const place = h("div", {}, draw(rows.slice(0, number)));
  const all = () => show(place, draw(rows));
  place.append(h("button", { type: "button", class: "quiet", on: { click: all } }, `Show all ${rows.length}`));
  return place;
}

const section = (heading, text, ...content) =>
  h("section", {}, h("h3", {}, heading), text && h("p", { class: "hint" }, text), ...content);

function sections(reasons) {
  const { head, relation, tail, rank, probability, paths = [], necessary = [], similar = [] } = reasons;
  const shared = reasons.pieces?.shared ?? [];
  const carrying = reasons.pieces?.carrying ?? [];
  const { tail_probability: ofTail, head_probability: ofHead } = reasons;
  const chance =
    typeof probability === "number"
      ? ` Probability ${percent(probability)} by both queries: ${percent(ofTail)} by the one for the tail, ` +
        `${percent(ofHead)} by the one for the head.`
      : "";
  const found = [
    h("p", { class: "verdict" }, `Rank ${rounded(rank)} among all candidates.${chance}`),
    paths.length > 0 &&
      section("Paths in the graph", pathsHint(reasons.paths_by), drawPaths(head, tail, paths)),
    necessary.length > 0 && section("Facts it depends on", "What happens without each of them:", withoutList(necessary, reasons)),
    shared.length > 0 && section("Pieces that both have", null, firstOf(shared, 5, (rows) => sharedTable(rows, head, tail))),
    carrying.length > 0 &&
      section("Pieces that matter most", "How the score changes without the piece.", firstOf(carrying, 5, carryingList)),
    similar.length > 0 && section("Similar facts in the graph", null, similarList(similar)),
  ];
  const isEmpty = found.slice(1).every((part) => !part);
  return [
    ...found,
    isEmpty &&
      h("p", { class: "hint" }, `The graph has no path, piece or similar fact that explains ${shorten(relation)} here.`),
  ];
}

const pathsHint = (measure) =>
  measure ? `How facts connect the two. Thicker lines: more of ${measure}.` : "How facts connect the two.";

function withoutList(necessary, { rank, score, without_all: all }) {
  const change = (without, scoreWithout) =>
    `rank ${rounded(rank)} → ${rounded(without)}, score ${signed(scoreWithout - score)}`;
  return h(
    "ul",
    { class: "rows" },
    necessary.map(({ fact, rank_without, score_without }) =>
      h(
        "li",
        {},
        factText(fact),
        h("span", { class: "value" }, change(rank_without, score_without)),
      ),
    ),
    all &&
      necessary.length > 1 &&
      h("li", {}, "without all of them", h("span", { class: "value" }, change(all.rank, all.score))),
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
          h("th", { scope: "row" }, pieceText(piece, head_distance ?? tail_distance)),
          h("td", {}, steps(head_distance)),
          h("td", {}, steps(tail_distance)),
        ),
      ),
    ),
  );
}

/** An anchor as a link to it, or a relation: relations have no distance. */
const pieceText = (piece, distance) =>
  Number.isInteger(distance) ? nodeLink(piece) : h("span", { class: "relation-name" }, shorten(piece));

function carryingList(carrying) {
  const most = Math.max(...carrying.map(({ effect }) => Math.abs(effect)), 1e-9);
  return h(
    "ul",
    { class: "rows" },
    carrying.map(({ node, piece, distance, effect }) =>
      h(
        "li",
        {},
        h("span", {}, pieceText(piece, distance), h("small", {}, ` of ${shorten(node, 40)}`)),
        h("span", { class: "value" }, signed(-effect)),
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
