/** Requests to the server of this page. */

/** An error of the server or the network, as a sentence for the reader. */
export class Problem extends Error {
  constructor(status, sentence, suggestions = []) {
    super(sentence);
    this.status = status;
    this.suggestions = suggestions;
  }
}

const versions = new Map(); // by run: the last update made here, which later answers must contain
let token = null; // given by the reader where the server asks for one; never stored

export const setToken = (text) => {
  token = text;
};

async function problemOf(response) {
  let body = {};
  try {
    body = await response.json();
  } catch {
    /* not JSON: the status has to do */
  }
  const detail = typeof body.detail === "string" ? body.detail : null;
  const sentence = detail ?? body.title ?? `The server answered with status ${response.status}.`;
  return new Problem(response.status, sentence, body.suggestions ?? []);
}

async function request(path, { body, signal, run } = {}) {
  const headers = { Accept: "application/json" };
  if (body) headers["Content-Type"] = "application/json";
  if (token) headers.Authorization = `Bearer ${token}`;
  if (versions.has(run)) headers["Nodepiece-Min-Version"] = String(versions.get(run));
  let response;
  try {
    response = await fetch(path, {
      method: body ? "POST" : "GET",
      headers,
      signal,
      body: body && JSON.stringify(body),
    });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Problem(0, "The server does not answer. Is `nodepiece serve` still running?");
  }
  if (!response.ok) throw await problemOf(response);
  return { status: response.status, ...(await response.json()) };
}

/** The runs of the server. */
export const listRuns = async () => (await request("v1/runs")).runs;

/** The requests about one run; each has an optional signal to cancel it. */
export function openRun(run) {
  const base = `v1/runs/${encodeURIComponent(run)}`;
  const get = (path, query, signal) =>
    request(`${base}${path}${query ? `?${new URLSearchParams(query)}` : ""}`, { signal, run });
  const post = (path, body, signal) => request(`${base}${path}`, { body, signal, run });
  let relations = null;
  return {
    about: (signal) => get("", null, signal),
    relations: () => {
      relations ??= get("/relations").then((answer) => answer.relations);
      relations.catch(() => (relations = null));
      return relations;
    },
    search: async (search, limit, signal) =>
      (await get("/nodes", search ? { search, limit } : { limit }, signal)).nodes,
    node: (name, assume, signal, limit = 100) =>
      assume?.length
        ? post("/node", { name, assume, limit }, signal)
        : get("/node", { name, limit }, signal),
    predict: (body, signal) => post("/predict", body, signal),
    score: (body, signal) => post("/score", body, signal),
    similar: (node, top, signal) => get("/similar", { node, top }, signal),
    explain: (fact, signal) => post("/explain", fact, signal),
    classify: async (node, signal) => (await get("/classify", { node }, signal)).classes,
    map: (signal) => get("/map", null, signal),
    update: async (body) => {
      const answer = await post("/update", body);
      versions.set(run, answer.version);
      relations = null;
      return answer;
    },
  };
}
