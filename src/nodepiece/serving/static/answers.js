/** Answers to a query, with their probabilities or scores as bars. */

import { h, shorten } from "./dom.js";
import { factText } from "./facts.js";

const isNumber = (value) => typeof value === "number" && Number.isFinite(value);

/** A probability as a percentage with the digits that matter near 0 and 1. */
export function percent(probability) {
  const value = 100 * probability;
  if (value > 0 && value < 0.1) return "< 0.1 %";
  if (value > 99.9 && value < 100) return "> 99.9 %";
  return `${value < 10 || value > 99 ? value.toFixed(1) : value.toFixed(0)} %`;
}

/** What a bar shows: a probability, or where a score lies between the least and the greatest. */
function measure(answers) {
  if (answers.every(({ probability }) => isNumber(probability))) {
    return ({ probability }) => ({ share: probability, text: percent(probability) });
  }
  const scores = answers.map(({ score }) => score);
  const [low, high] = [Math.min(...scores), Math.max(...scores)];
  const share = (score) => (high > low ? 0.08 + (0.92 * (score - low)) / (high - low) : 1);
  return ({ score }) => ({ share: share(score), text: score.toFixed(2) });
}

/** A bar for a share between 0 and 1; its text is beside it. */
export function bar(share) {
  const filled = h("span", {});
  filled.style.width = `${Math.max(0, Math.min(1, share)) * 100}%`;
  return h("span", { class: "bar", "aria-hidden": "true" }, filled);
}

const knownMark = () => h("span", { class: "known" }, "✓ known");

/**
 * Answers, best first.
 * @param {object[]} answers
 * @param {object} [options]
 * @param {(name: string) => string} [options.linkOf] where an answer leads
 * @param {() => void} [options.onChoose]
 * @param {string} [options.current] the answer that is explained
 */
export function answerItems(answers, { linkOf, onChoose, current } = {}) {
  const shown = measure(answers);
  const item = (answer) => {
    const { share, text } = shown(answer);
    const content = [
      h("span", { class: "name" }, shorten(answer.name, 120)),
      h("span", { class: "value" }, text),
      bar(share),
      answer.known && knownMark(),
    ];
    const attributes = {
      class: "answer",
      "data-name": answer.name,
      "aria-current": answer.name === current && "true",
    };
    return linkOf
      ? h("a", { ...attributes, href: linkOf(answer.name), on: { click: onChoose } }, content)
      : h("div", attributes, content);
  };
  return h("ol", { class: "answers" }, answers.map((answer) => h("li", {}, item(answer))));
}

/**
 * A query and its answers.
 * @param {{query: object, answers: object[]}} result
 * @param {object} options those of `answerItems`, and `more`, which fetches more answers
 */
export function answerList({ query, answers }, { more, ...options }) {
  if (answers.length === 0) {
    return h("p", { class: "hint" }, "No answer is left: the graph has all of them.");
  }
  const isCalibrated = answers.every(({ probability }) => isNumber(probability));
  return h(
    "div",
    {},
    h("h2", { class: "asked" }, queryText(query)),
    answerItems(answers, options),
    h(
      "p",
      { class: "hint" },
      isCalibrated
        ? "Probabilities by this query alone. The reasons of an answer also have that by both queries, for tail and head."
        : "Scores, higher is better. `nodepiece calibrate` turns them into probabilities.",
    ),
    more && answers.length >= 10 && h("button", { type: "button", on: { click: more } }, "More answers"),
  );
}

function queryText({ head, relation, tail }) {
  const part = (name, kind) =>
    name ? h("span", { class: kind }, shorten(name, 60)) : h("span", { class: "blank" }, "?");
  return [part(head, "node-name"), " ", part(relation, "relation-name"), " ", part(tail, "node-name")];
}

/** The score and the ranks of one whole fact. */
export function factScore(fact) {
  const { head, relation, tail, score, probability, tail_rank, head_rank, known } = fact;
  const { tail_probability: ofTail, head_probability: ofHead } = fact;
  const chance = isNumber(probability) ? percent(probability) : null;
  const parts = chance
    ? ` The probability is by both queries: ${percent(ofTail)} for the tail, ${percent(ofHead)} for the head.`
    : "";
  return h(
    "div",
    { class: "score" },
    h("h2", { class: "asked" }, factText([head, relation, tail])),
    h("p", { class: "big" }, chance ?? score.toFixed(2), " ", known && knownMark()),
    chance && bar(probability),
    h(
      "p",
      { class: "hint" },
      `Score ${score.toFixed(2)}. The tail ranks ${tail_rank} among all nodes, the head ${head_rank}.${parts}`,
    ),
  );
}
