/** The view of one node: its pieces, its facts, and nodes like it. */

import { answerItems } from "./answers.js";
import { combobox, findNodes } from "./combobox.js";
import { announce, count, h, shorten, show } from "./dom.js";
import { factTable, nodeLink } from "./facts.js";
import { isCancelled, problem } from "./problem.js";
import { drawPieces } from "./rings.js";
import { go, link, viewsOf } from "./route.js";

export function nodeView({ main, api, run }) {
  const search = combobox({
    label: "Find a node",
    placeholder: "Type a name",
    find: findNodes(api),
    choose: (name) => name && go("node", { name }),
  });
  const content = h("div", { class: "content" });
  show(main, h("div", { class: "finder" }, search.element), content);
  let request = new AbortController();

  async function update(params) {
    request.abort();
    request = new AbortController();
    const { signal } = request;
    const name = params.get("name");
    search.value = "";
    content.setAttribute("aria-busy", "true");
    try {
      if (name) {
        const node = await api.node(name, null, signal);
        show(content, nodePage(node, viewsOf(run)));
        announce(`${shorten(name)}: ${count(node.num_facts, "fact")}.`);
        window.scrollTo({ top: 0 });
        content.removeAttribute("aria-busy");
        if (run.task === "node-classification") await showClasses(content.querySelector(".classes"), name, signal);
        await showSimilar(content.querySelector(".similar"), name, signal);
      } else {
        show(content, busiest(await api.search("", 30, signal)));
      }
    } catch (error) {
      if (isCancelled(error)) return;
      const title = h("h1", { class: "node-title" }, name ? shorten(name, 300) : "Nodes");
      show(content, title, problem(error, (each) => link("node", { name: each }), () => update(params)));
    }
    content.removeAttribute("aria-busy");
  }

  /** What a run of node classification predicts. */
  async function showClasses(place, name, signal) {
    try {
      const answers = await api.classify(name, signal);
      show(place, h("h2", {}, "Likeliest classes"), answerItems(answers));
    } catch (error) {
      if (!isCancelled(error)) show(place, problem(error));
    }
  }

  async function showSimilar(place, name, signal) {
    try {
      const { neighbours } = await api.similar(name, 8, signal);
      show(
        place,
        h("h2", {}, "Nodes with similar vectors"),
        h(
          "ul",
          { class: "rows" },
          neighbours.map(({ neighbour, similarity }) =>
            h("li", {}, nodeLink(neighbour), h("span", { class: "value" }, similarity.toFixed(2))),
          ),
        ),
      );
    } catch (error) {
      if (!isCancelled(error)) show(place, problem(error));
    }
  }

  return { update, close: () => request.abort() };
}

function nodePage(node, views) {
  const { name, pieces, facts, num_facts: total } = node;
  const badge = (text) => h("span", { class: "badge" }, text);
  const pieceCount = pieces.anchors.length + pieces.relations.length;
  return [
    h("h1", { class: "node-title" }, shorten(name, 300)),
    h(
      "p",
      { class: "badges" },
      badge(count(total, "fact")),
      badge(count(pieceCount, "piece")),
      node.is_anchor && badge("is an anchor"),
      node.is_new && badge("added after training"),
      h("a", { href: link("map", { name }) }, "Show on the map"),
      views.includes("add") && h("a", { href: link("add", { name }) }, "Add facts"),
    ),
    h(
      "div",
      { class: "columns" },
      h(
        "section",
        { "aria-label": "Pieces" },
        h(
          "p",
          { class: "hint" },
          "What the model reads. Choose an anchor to go there",
          views.includes("ask") ? ", or a relation to ask for it." : ".",
        ),
        drawPieces(name, pieces, views.includes("ask")),
      ),
      h(
        "div",
        {},
        h("section", { class: "classes" }),
        h(
          "section",
          {},
          h("h2", {}, "Facts"),
          factTable(name, facts),
          facts.length < total && h("p", { class: "hint" }, `The first ${facts.length} of ${total.toLocaleString("en")}.`),
        ),
        h("section", { class: "similar" }),
      ),
    ),
  ];
}

function busiest(nodes) {
  return [
    h("h1", {}, "See how a node is made of pieces"),
    h("p", { class: "lead" }, "Type a name above, or start with one of the nodes with most facts:"),
    h(
      "p",
      { class: "chips" },
      nodes.map(({ name }) => h("a", { class: "chip", href: link("node", { name }) }, shorten(name, 40))),
    ),
  ];
}
