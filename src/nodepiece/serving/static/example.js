/** What a first visitor sees: a query about a node with many facts, and facts to try. */

/**
 * A query (head, relation, ?) that the graph has several answers to: the head is the one that
 * most of the busiest nodes have in common, the relation that with most facts about it.
 */
export async function exampleQuery(api, signal) {
  const hubs = await api.search("", 4, signal);
  const around = await Promise.all(hubs.map(({ name }) => api.node(name, null, signal)));
  const heads = new Map();
  for (const { facts } of around) {
    for (const head of new Set(facts.map(([each]) => each))) heads.set(head, (heads.get(head) ?? 0) + 1);
  }
  const head = mostFrequent(heads);
  if (head === undefined) return {};
  const relations = new Map();
  for (const [from, relation] of (await api.node(head, null, signal)).facts) {
    if (from === head) relations.set(relation, (relations.get(relation) ?? 0) + 1);
  }
  return { head, relation: mostFrequent(relations) };
}

/** The key with the greatest count; the first of several. */
const mostFrequent = (counts) => [...counts].sort((a, b) => b[1] - a[1])[0]?.[0];

/** Two facts of the node of the example, with a new node in its place. */
export async function exampleFacts(api, name, signal) {
  const { head } = await exampleQuery(api, signal);
  if (!head) return [];
  const { facts } = await api.node(head, null, signal);
  const seen = new Set();
  return facts
    .filter(([from, relation]) => from === head && !seen.has(relation) && seen.add(relation))
    .slice(0, 2)
    .map(([, relation, tail]) => [name, relation, tail]);
}
