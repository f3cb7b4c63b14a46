/** Facts and names as text and links. */

import { h, shorten } from "./dom.js";
import { nodeAddress } from "./route.js";

export const INVERSE = "inverse of ";

/** A link to a node. */
export const nodeLink = (name) =>
  h("a", { class: "node-name", href: nodeAddress(name) }, shorten(name));

/** A fact as a sentence; the names of its nodes are links. */
export const factText = ([head, relation, tail]) =>
  h(
    "span",
    { class: "fact" },
    nodeLink(head),
    " ",
    h("span", { class: "relation-name" }, shorten(relation)),
    " ",
    nodeLink(tail),
  );

/** Facts of a node, grouped by relation and direction. */
export function factTable(name, facts) {
  const groups = new Map();
  for (const [head, relation, tail] of facts) {
    const isOwn = head === name;
    const key = JSON.stringify([relation, isOwn]);
    if (!groups.has(key)) groups.set(key, { relation, isOwn, others: [] });
    groups.get(key).others.push(isOwn ? tail : head);
  }
  const ordered = [...groups.values()].sort((a, b) => b.isOwn - a.isOwn);
  return h(
    "dl",
    { class: "facts" },
    ordered.map(({ relation, isOwn, others }) => [
      h(
        "dt",
        {},
        h("span", { class: "arrow", "aria-hidden": "true" }, isOwn ? "→" : "←"),
        !isOwn && h("span", { class: "unseen" }, "head of "),
        h("span", { class: "relation-name" }, shorten(relation)),
      ),
      h("dd", {}, others.map((other, i) => [i > 0 && ", ", nodeLink(other)])),
    ]),
  );
}
