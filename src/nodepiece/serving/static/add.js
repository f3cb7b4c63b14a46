/** The view that adds facts about a node: assumed at first, then committed where that is allowed. */

import { combobox, findNodes, findRelations } from "./combobox.js";
import { commitFacts } from "./commit.js";
import { announce, count, h, shorten, show } from "./dom.js";
import { exampleFacts } from "./example.js";
import { factText } from "./facts.js";
import { assumedNode } from "./assumed.js";
import { isCancelled, problem } from "./problem.js";
import { factsOf, go, link, setAssumed } from "./route.js";
import { tokenForm } from "./token.js";

const NEW = "My new node";

export function addView({ main, api, run }) {
  const name = combobox({
    label: "Node, new or known",
    placeholder: NEW,
    find: findNodes(api),
    choose: (chosen) => go("add", { name: chosen, fact: renamed(chosen).flat() }),
  });
  const relation = combobox({
    label: "Relation",
    kind: "relation",
    placeholder: "Choose one",
    find: findRelations(api),
    choose: (chosen) => chosen && other.input.focus(),
  });
  const other = combobox({
    label: "Other node",
    placeholder: "Type a name",
    find: findNodes(api),
    choose: (chosen) => chosen && relation.value && add(),
  });
  const swap = h(
    "button",
    { type: "button", class: "swap", "aria-pressed": "false", on: { click: turn } },
    "⇄ Swap",
  );
  swap.setAttribute("aria-label", "Swap: the other node is the head");
  const form = h(
    "form",
    { class: "query add", on: { submit: (event) => (event.preventDefault(), add()) } },
    name.element,
    relation.element,
    other.element,
    swap,
    h("button", { type: "submit", class: "strong" }, "Add"),
  );
  const notice = h("div", {});
  const list = h("section", { class: "assumed", "aria-label": "Added facts" });
  const content = h("div", { class: "content" });
  show(
    main,
    h("h1", {}, "Add facts about a node"),
    h(
      "p",
      { class: "lead" },
      "Its pieces and predictions change at once, without training. ",
      run.writable ? "Nothing is stored until you commit." : "This server is read-only: the facts are only assumed.",
    ),
    form,
    notice,
    list,
    content,
  );
  let request = new AbortController();
  let facts = [];

  const subject = () => name.value || NEW;

  function renamed(chosen) {
    const before = current.name;
    const replace = (part) => (part === before ? chosen || NEW : part);
    return facts.map(([head, each, tail]) => [replace(head), each, replace(tail)]);
  }

  function turn() {
    const pressed = swap.getAttribute("aria-pressed") !== "true";
    swap.setAttribute("aria-pressed", String(pressed));
    form.classList.toggle("swapped", pressed);
  }

  function add() {
    const missing = [relation, other].find((field) => !field.value);
    if (missing) {
      announce("Choose a relation and another node.");
      missing.input.focus();
      return;
    }
    const isTail = swap.getAttribute("aria-pressed") === "true";
    const fact = [subject(), relation.value, other.value];
    const added = isTail ? fact.reverse() : fact;
    relation.value = "";
    other.value = "";
    relation.input.focus();
    show(notice);
    if (!facts.some((each) => each.every((part, i) => part === added[i]))) keep([...facts, added]);
  }

  const keep = (next) => go("add", { name: subject(), fact: next.flat() });

  function showFacts() {
    const undo = h("button", { type: "button", on: { click: () => keep(facts.slice(0, -1)) } }, "Undo");
    const commit = h("button", { type: "button", class: "strong", on: { click: store } }, "Commit to the graph");
    const remove = (i) => h(
      "button",
      { type: "button", class: "quiet", on: { click: () => keep(facts.filter((_, k) => k !== i)) } },
      "Remove",
    );
    show(
      list,
      h("ul", { class: "rows" }, facts.map((fact, i) => h("li", {}, factText(fact), remove(i)))),
      h("p", { class: "actions" }, undo, run.writable && commit),
    );
  }

  async function store() {
    const stored = facts;
    try {
      const { version, added, undo } = await commitFacts(api, stored);
      go("add", { name: subject() }, { replace: true });
      const back = h("button", { type: "button", on: { click: () => takeBack(stored, undo) } }, "Undo");
      const done = `${count(added, "fact")} committed; the graph is at version ${version}.`;
      announce(done);
      show(
        notice,
        h(
          "p",
          { class: "notice" },
          done,
          h("a", { href: link("node", { name: subject() }) }, "See the node"),
          back,
        ),
      );
    } catch (error) {
      show(notice, problem(error, null, error.status === 401 ? null : store), error.status === 401 && tokenForm(storeAgain));
    }
  }

  function storeAgain() {
    show(notice);
    store();
  }

  async function takeBack(stored, undo) {
    try {
      await undo();
      announce("Undone.");
      show(notice);
      go("add", { name: subject(), fact: stored.flat() }, { replace: true });
    } catch (error) {
      show(notice, problem(error, null, () => takeBack(stored, undo)));
    }
  }

  const current = { name: NEW };

  async function update(params) {
    request.abort();
    request = new AbortController();
    const { signal } = request;
    current.name = params.get("name") || NEW;
    name.value = params.get("name") ?? "";
    setAssumed(current.name);
    facts = factsOf(params);
    if (facts.length > 0) showFacts();
    else show(list, start());
    content.setAttribute("aria-busy", "true");
    try {
      const assumed = { name: current.name, facts, ask: params.get("ask"), why: params.getAll("why") };
      await assumedNode(content, api, assumed, signal);
    } catch (error) {
      if (isCancelled(error)) return;
      show(content, problem(error, replaced(error), () => update(params)));
    }
    content.removeAttribute("aria-busy");
  }

  /** The address with a suggested name in the place of the one that the message names. */
  function replaced(error) {
    const wrong = facts.flat().find((part) => error.message.includes(`'${part}'`));
    const parts = (name) => facts.flat().map((part) => (part === wrong ? name : part));
    return wrong === undefined ? null : (name) => link("add", { name: current.name, fact: parts(name) });
  }

  function start() {
    const example = async () => keep(await exampleFacts(api, subject(), request.signal));
    return h(
      "p",
      { class: "hint" },
      "Choose a relation and another node. Or ",
      h("button", { type: "button", on: { click: example } }, "try an example"),
    );
  }

  return {
    update,
    close: () => {
      request.abort();
      setAssumed(null);
    },
  };
}
