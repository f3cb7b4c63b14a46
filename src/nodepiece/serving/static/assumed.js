/** The pieces and predictions of a node with assumed facts. */

import { answerList } from "./answers.js";
import { combobox, findRelations } from "./combobox.js";
import { announce, count, h, shorten, show } from "./dom.js";
import { drawPieces } from "./rings.js";
import { go } from "./route.js";

const MOST = 16; // relations that are asked for
const SHOWN = 4; // those with the likeliest answers are shown

/**
 * Shows the pieces and the likeliest facts of a node.
 * @param {{name: string, facts: string[][], ask: string|null}} assumed
 */
export async function assumedNode(place, api, { name, facts, ask }, signal) {
  if (facts.length === 0 && !(await isKnown(api, name, signal))) {
    show(place); // a new node without facts has no pieces yet
    return;
  }
  const node = await api.node(name, facts, signal);
  const predictions = h("section", { "aria-label": "Predictions", "aria-busy": "true" });
  const pieces = node.pieces.anchors.length + node.pieces.relations.length;
  show(
    place,
    h(
      "div",
      { class: "columns" },
      h("section", { "aria-label": "Pieces" }, h("h2", {}, "Pieces"), drawPieces(name, node.pieces)),
      predictions,
    ),
  );
  const results = await likeliest(api, name, facts, ask, signal);
  const other = combobox({
    label: "Predict another relation",
    kind: "relation",
    placeholder: "Choose one",
    find: findRelations(api),
    choose: (relation) => relation && go("add", { name, fact: facts.flat(), ask: relation }),
  });
  show(
    predictions,
    h("h2", {}, "Predictions"),
    h("div", { class: "predictions" }, results.map((result) => answerList(result, {}))),
    other.element,
  );
  predictions.removeAttribute("aria-busy");
  announce(`${shorten(name)} has ${count(pieces, "piece")}; predictions are there.`);
}

async function isKnown(api, name, signal) {
  return (await api.search(name, 50, signal)).some((found) => found.name === name);
}

/** Answers of the relations with the best first answers; `ask`, where given, comes first. */
async function likeliest(api, name, facts, ask, signal) {
  const relations = (await api.relations()).slice(0, MOST).map((relation) => relation.name);
  const asked = [...new Set([ask, ...relations].filter(Boolean))];
  const queries = asked.map((relation) => ({ head: name, relation }));
  const { results } = await api.predict({ queries, top: 3, seen_candidates: true, assume: facts }, signal);
  const best = ({ answers: [first] }) => first?.probability ?? first?.score ?? -Infinity;
  const isAsked = ({ query }) => Number(query.relation === ask);
  results.sort((a, b) => isAsked(b) - isAsked(a) || best(b) - best(a));
  return results.filter(({ answers }) => answers.length > 0).slice(0, SHOWN);
}
