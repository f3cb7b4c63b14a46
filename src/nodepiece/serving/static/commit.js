/** Committing facts about a node to the graph, and taking them back. */

const same = (a) => (b) => a.every((part, i) => part === b[i]);

/** Whether all facts of a node are assumed ones: then it had none before. */
async function isFresh(api, name, facts) {
  const own = facts.filter(([head, , tail]) => head === name || tail === name);
  const node = await api.node(name, facts);
  return node.is_new && node.num_facts === own.length;
}

/** The change that takes facts back: those that the graph lacks now, and nodes that they bring. */
async function inverseOf(api, subject, facts) {
  const nodes = [...new Set(facts.flatMap(([head, , tail]) => [head, tail]))];
  const fresh = [];
  for (const name of nodes) if (await isFresh(api, name, facts)) fresh.push(name);
  if (fresh.includes(subject)) return { remove: facts, remove_nodes: fresh };
  const { facts: before } = await api.node(subject, null, undefined, 10_000);
  return { remove: facts.filter((fact) => !before.some(same(fact))), remove_nodes: fresh };
}

/**
 * Adds facts about a node to the graph.
 * @returns {Promise<{version: number, added: number, undo: () => Promise<void>}>}
 */
export async function commitFacts(api, subject, facts) {
  const inverse = await inverseOf(api, subject, facts);
  const { version, added } = await api.update({ add: facts });
  return { version, added, undo: () => api.update(inverse) };
}
