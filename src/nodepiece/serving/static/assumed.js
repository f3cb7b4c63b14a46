/** The pieces and predictions of a node with assumed facts. */

import { answerList } from "./answers.js";
import { combobox, findRelations } from "./combobox.js";
import { announce, count, h, shorten, show } from "./dom.js";
import { explanation } from "./explanation.js";
import { drawPieces } from "./rings.js";
import { go, link } from "./route.js";

let clicked = false; // an answer was chosen, so its explanation gets the focus

const MOST = 16; // relations that are asked for
const SHOWN = 4; // those with the likeliest answers are shown

/**
 * Shows the pieces and the likeliest facts of a node.
 * @param {object} assumed
 * @param {string} assumed.name
 * @param {string[][]} assumed.facts
 * @param {string|null} assumed.ask a relation to predict first
 * @param {string[]} assumed.why a relation and a predicted tail to explain
 */
export async function assumedNode(place, api, { name, facts, ask, why }, signal) {
  if (facts.length === 0 && !(await isKnown(api, name, signal))) {
    show(place); // a new node without facts has no pieces yet
    return;
  }
  const node = await api.node(name, facts, signal);
  const predictions = h("section", { "aria-label": "Predictions", "aria-busy": "true" });
  const reasons = h("section", { class: "reasons", "aria-label": "Explanation" });
  const pieces = node.pieces.anchors.length + node.pieces.relations.length;
  show(
    place,
    h(
      "div",
      { class: "columns" },
      h(
        "div",
        {},
        h("section", { "aria-label": "Pieces" }, h("h2", {}, "Pieces"), drawPieces(name, node.pieces)),
        reasons,
      ),
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
  const at = { name, fact: facts.flat(), ask };
  const list = (result) =>
    answerList(result, {
      linkOf: (answer) => link("add", { ...at, why: [result.query.relation, answer] }),
      onChoose: () => (clicked = true),
      current: result.query.relation === why[0] ? why[1] : null,
    });
  show(
    predictions,
    h("h2", {}, "Predictions"),
    h("div", { class: "predictions" }, results.map(list)),
    other.element,
  );
  predictions.removeAttribute("aria-busy");
  const [relation, tail] = why;
  const focus = clicked;
  clicked = false;
  if (tail) await explanation(reasons, api, { head: name, relation, tail }, { signal, focus, assume: facts });
  else announce(`${shorten(name)} has ${count(pieces, "piece")}; predictions are there.`);
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
