/** Committing facts to the graph, and taking them back. */

/**
 * Adds facts to the graph. To undo it removes the facts that the graph did not have, and the nodes
 * that it did not have, unless there are facts of others about them by then.
 * @returns {Promise<{version: number, added: number, undo: () => Promise<void>}>}
 */
export async function commitFacts(api, facts) {
  const done = await api.update({ add: facts });
  const inverse = { remove: done.added_facts, remove_if_empty: done.new_node_names };
  return { version: done.version, added: done.added, undo: () => api.update(inverse) };
}
