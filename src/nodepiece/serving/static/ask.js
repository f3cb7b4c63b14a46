/** The view that completes a fact with one part left out. */

import { answerList, factScore } from "./answers.js";
import { combobox, findNodes, findRelations } from "./combobox.js";
import { announce, count, h, shorten, show } from "./dom.js";
import { exampleQuery } from "./example.js";
import { explanation } from "./explanation.js";
import { INVERSE } from "./facts.js";
import { isCancelled, problem } from "./problem.js";
import { go, link } from "./route.js";

const PARTS = ["head", "relation", "tail"];
const TOP = 10;

export function askView({ main, api, run }) {
  const fields = {
    head: combobox({ label: "Head", placeholder: "?", find: findNodes(api), choose: ask }),
    relation: combobox({
      label: "Relation",
      placeholder: "?",
      kind: "relation",
      find: findRelations(api),
      choose: ask,
    }),
    tail: combobox({ label: "Tail", placeholder: "?", find: findNodes(api), choose: ask }),
  };
  const known = toggle("Facts that the graph already has", true);
  const seen = toggle("Only nodes that have this relation elsewhere", true);
  const intro = h("div", { class: "intro" });
  const results = h("section", { class: "results", "aria-label": "Answers" });
  const reasons = h("section", { class: "reasons", "aria-label": "Explanation" });
  const form = h(
    "form",
    { class: "query", on: { submit: submit } },
    PARTS.map((part) => fields[part].element),
    h("button", { type: "submit", class: "strong" }, "Ask"),
  );
  const hint = h("p", { class: "hint" }, "Leave one part empty: it is predicted.");
  const options = h("div", { class: "options" }, known.element, seen.element);
  show(main, intro, form, hint, h("div", { class: "columns" }, h("div", {}, results, options), reasons));
  let request = new AbortController();
  let answered = ""; // the query whose answers are shown
  let clicked = false; // an answer was chosen here, so its explanation gets the focus

  function toggle(label, initial) {
    const box = h("input", { type: "checkbox", on: { change: ask } });
    box.checked = initial;
    return { element: h("label", { class: "toggle" }, box, label), box };
  }

  function state() {
    return {
      head: fields.head.value,
      relation: fields.relation.value,
      tail: fields.tail.value,
      known: known.box.checked ? null : "no",
      seen: seen.box.checked ? null : "no",
    };
  }

  function ask() {
    if (PARTS.filter((part) => fields[part].value).length >= 2) go("ask", state());
  }

  function submit(event) {
    event.preventDefault();
    const missing = PARTS.filter((part) => !fields[part].value);
    if (missing.length > 1) {
      announce("Give two of head, relation and tail.");
      fields[missing[0]].input.focus();
    } else {
      ask();
    }
  }

  async function answer(query, params) {
    const given = PARTS.filter((part) => query[part]);
    if (given.length < 2) {
      show(results);
      results.removeAttribute("aria-busy");
      return;
    }
    const top = Number(params.get("top")) || TOP;
    const key = JSON.stringify([query, top, known.box.checked, seen.box.checked]);
    if (key === answered) {
      results.removeAttribute("aria-busy");
      return;
    }
    const retry = () => answer(query, params);
    try {
      if (given.length === 3) {
        const { facts } = await api.score({ facts: [PARTS.map((part) => query[part])] }, request.signal);
        show(results, factScore(facts[0]));
      } else {
        const body = {
          queries: [Object.fromEntries(given.map((part) => [part, query[part]]))],
          top,
          include_known: known.box.checked,
          seen_candidates: seen.box.checked,
        };
        const { results: found } = await api.predict(body, request.signal);
        const more = () => go("ask", { ...state(), top: top * 2, explain: params.get("explain") });
        show(results, answerList(found[0], { linkOf, onChoose, more: top < 80 ? more : null }));
        announceAnswers(found[0].answers);
      }
      answered = key;
    } catch (error) {
      if (isCancelled(error)) return;
      answered = "";
      show(results, problem(error, suggestion(query, error), retry));
    }
    results.removeAttribute("aria-busy");
  }

  const linkOf = (name) => link("ask", { ...state(), explain: name });
  const onChoose = () => (clicked = true);

  /** The address with a suggested name in the place of the part that the message names. */
  function suggestion(query, error) {
    const wrong = PARTS.find((part) => query[part] && error.message.includes(query[part]));
    return wrong ? (name) => link("ask", { ...state(), [wrong]: name }) : null;
  }

  function announceAnswers(answers) {
    const [first] = answers;
    const chance = first?.probability;
    const sure = chance === null || chance === undefined ? "" : `, ${Math.round(100 * chance)} percent`;
    announce(first ? `${count(answers.length, "answer")}. First: ${shorten(first.name)}${sure}.` : "No answer.");
  }

  async function explain(query, name) {
    const asked = PARTS.find((part) => !query[part]);
    const fact = directed(name && asked ? { ...query, [asked]: name } : query);
    if (!PARTS.every((part) => fact[part])) {
      const hasAnswers = results.querySelector(".answer");
      show(reasons, hasAnswers && h("p", { class: "invitation" }, "Choose an answer to see why it is predicted."));
      return;
    }
    for (const answer of results.querySelectorAll(".answer")) {
      if (answer.dataset.name === name) answer.setAttribute("aria-current", "true");
      else answer.removeAttribute("aria-current");
    }
    const isChosen = clicked;
    clicked = false;
    await explanation(reasons, api, fact, { signal: request.signal, focus: isChosen });
  }

  async function update(params) {
    request.abort();
    request = new AbortController();
    results.setAttribute("aria-busy", "true");
    known.box.checked = params.get("known") !== "no";
    seen.box.checked = params.get("seen") !== "no";
    let query = Object.fromEntries(PARTS.map((part) => [part, params.get(part) ?? ""]));
    const isEmpty = PARTS.every((part) => !query[part]);
    show(intro, isEmpty ? welcome(run) : h("h1", { class: "unseen" }, "Ask"));
    let chosen = params.get("explain");
    if (isEmpty) {
      try {
        query = { ...query, ...(await exampleQuery(api, request.signal)) };
      } catch (error) {
        if (!isCancelled(error)) show(results, problem(error, null, () => update(params)));
        return;
      }
    }
    for (const part of PARTS) fields[part].value = query[part] ?? "";
    options.hidden = PARTS.every((part) => query[part]);
    seen.element.hidden = !query.relation;
    await answer(query, params);
    if (isEmpty) chosen = results.querySelector(".answer")?.dataset.name;
    await explain(query, chosen);
  }

  return { update, close: () => request.abort() };
}

/** The fact itself, where an answer is an inverse relation. */
function directed({ head, relation, tail }) {
  if (!relation?.startsWith(INVERSE)) return { head, relation, tail };
  return { head: tail, relation: relation.slice(INVERSE.length), tail: head };
}

function welcome(run) {
  return [
    h("h1", {}, "Ask a graph for the missing part of a fact"),
    h(
      "p",
      { class: "lead" },
      `A fact is a head, a relation and a tail. The model of ${run.name} was trained on facts about `,
      `${count(run.num_nodes, "node")}. Leave one part empty, and it predicts what belongs there. `,
      "Choose an answer to see why. An example:",
    ),
  ];
}
