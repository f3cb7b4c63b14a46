/** The frame of the page: the run, the views, and the address that selects them. */

import { listRuns, openRun } from "./api.js";
import { count, h, shorten, show } from "./dom.js";
import { problem } from "./problem.js";
import { current, go, link, setRun, viewsOf } from "./route.js";
import { addView } from "./add.js";
import { askView } from "./ask.js";
import { mapView } from "./map.js";
import { nodeView } from "./node.js";

const VIEWS = { ask: askView, node: nodeView, add: addView, map: mapView };
const TITLES = { ask: "Ask", node: "Node", add: "Add facts", map: "Map" };

const main = document.getElementById("main");
let runs = [];
let renders = 0;
let open = null; // {view, name, update, close}: what is shown

/** Shows the view of the address; a view that is already shown is only updated. */
async function render() {
  const mine = ++renders;
  main.dataset.state = "loading";
  const { view, params } = current();
  const wanted = params.get("run");
  const record = wanted ? runs.find((run) => run.name === wanted) : runs[0];
  if (!record) {
    open?.close?.();
    open = null;
    const error = Object.assign(new Error(`There is no run ${wanted} here`), { suggestions: runs.map((run) => run.name) });
    show(main, h("h1", {}, "Another run"), problem(error, (run) => link(view, { run })));
    main.dataset.state = "ready";
    return;
  }
  const views = viewsOf(record);
  const name = views.includes(view) ? view : views[0];
  if (open?.name !== name || open.run !== record.name) {
    open?.close?.();
    setRun(runs.length > 1 ? record.name : null);
    const api = openRun(record.name);
    open = { name, run: record.name, ...VIEWS[name]({ main, api, run: record }) };
    showFrame(record, name, api);
  }
  const subject = params.get("name") ?? params.get("head") ?? params.get("tail") ?? TITLES[name];
  document.title = `${shorten(subject, 60)} · ${record.name} · nodepiece`;
  await open.update(params);
  if (mine === renders) main.dataset.state = "ready";
}

function showFrame(record, name, api) {
  for (const each of document.querySelectorAll("#views a")) {
    each.setAttribute("href", link(each.dataset.view));
    each.hidden = !viewsOf(record).includes(each.dataset.view);
    if (each.dataset.view === name) each.setAttribute("aria-current", "page");
    else each.removeAttribute("aria-current");
  }
  const choice = h(
    "select",
    { "aria-label": "Run", on: { change: () => go(name, { run: choice.value }) } },
    runs.map((run) => h("option", { selected: run.name === record.name }, run.name)),
  );
  show(document.getElementById("runs"), runs.length > 1 ? choice : "");
  const about = h("span", {}, `Run ${record.name}: ${count(record.num_nodes, "node")}. `);
  show(document.getElementById("about"), about, h("a", { href: "openapi.json" }, "HTTP interface"));
  describe(about, api).catch(() => {}); // the line stays as it is
}

/** Fills in what the run is made of. */
async function describe(place, api) {
  const { name, num_nodes, num_relations, writable, model, graph, metrics } = await api.about();
  const mrr = typeof metrics?.mrr === "number" ? `, test MRR ${metrics.mrr.toFixed(3)}` : "";
  place.textContent =
    `Run ${name}: ${count(graph.facts, "fact")}, ${count(num_nodes, "node")}, ` +
    `${count(num_relations, "relation")}; ${count(model.anchors, "anchor")}, ` +
    `${count(model.parameters, "parameter")}${mrr}; ${writable ? "writable" : "read-only"}. `;
}

async function start() {
  try {
    runs = await listRuns();
  } catch (error) {
    show(main, problem(error, null, start));
    return;
  }
  if (runs.length === 0) {
    show(main, problem(new Error("The server has no run to answer from.")));
    return;
  }
  window.addEventListener("hashchange", render);
  render();
}

document.getElementById("skip").addEventListener("click", (event) => {
  event.preventDefault(); // the address is the state of the page
  main.focus();
});
start();
