/**
 * The state of the page is its address, such as `#/ask?run=countries&head=Libya&relation=borders`:
 * it can be shared, and the browser's back button undoes a step.
 */

/** The run that links stay on; null where the server has only one. */
let run = null;
export const setRun = (name) => {
  run = name;
};

/** The views of a run by its task; the first is shown without an address. */
export function viewsOf({ task }) {
  if (task === "node-classification") return ["node", "map"];
  if (task === "inductive-link-prediction") return ["ask", "node", "map"]; // takes no more facts
  return ["ask", "node", "add", "map"];
}

/** The view and its parameters. */
export function current() {
  const [path, query = ""] = location.hash.replace(/^#\/?/, "").split(/\?(.*)/s);
  return { view: path, params: new URLSearchParams(query) };
}

/** The address of a view; a list is a parameter given several times, null is left out. */
export function link(view, params = {}) {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries({ run, ...params })) {
    if (value === null || value === undefined || value === "") continue;
    for (const each of [value].flat()) query.append(name, each);
  }
  return `#/${view}${String(query) ? `?${query}` : ""}`;
}

/** A node with assumed facts, which has no page of its own: its links stay where they are. */
let assumed = null;
export const setAssumed = (name) => {
  assumed = name;
};

/** The address of the page of a node. */
export const nodeAddress = (name) => (name === assumed ? location.hash : link("node", { name }));

/** Goes to a view, or shows it again; `replace` leaves no entry in the history. */
export function go(view, params, { replace = false } = {}) {
  const target = link(view, params);
  if (replace || target === location.hash) {
    history.replaceState(null, "", target);
    window.dispatchEvent(new HashChangeEvent("hashchange"));
  } else {
    location.hash = target;
  }
}

/** Facts in an address: head, relation, tail, head, ... */
export function factsOf(params) {
  const parts = params.getAll("fact");
  return Array.from({ length: Math.floor(parts.length / 3) }, (_, i) => parts.slice(3 * i, 3 * i + 3));
}
