"""The pieces of nodes in a run on any graph: relations alone, and what each does for a score."""

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import torch
from torch import Tensor

from nodepiece.encoders.graph_view import renumbered
from nodepiece.encoders.pieces import Tokens
from nodepiece.graph.names import Names
from nodepiece.inference.answer_rank import RankedAnswer
from nodepiece.inference.inductive import EncodedSnapshot
from nodepiece.tokenizer.token_rows import TokenRows
from nodepiece.tokenizer.vocabulary import Vocabulary

UNSEEN_NAME = "relations that training lacks"


@dataclass(frozen=True, eq=False)
class InductivePieces:
    """The tokens of a graph, and scores of a fact with other tokens for one of its nodes."""

    snapshot: EncodedSnapshot
    answer: RankedAnswer

    @property
    def vocabulary(self) -> Vocabulary:
        return self.snapshot.evaluator.table.vocabulary

    @property
    def names(self) -> Names:
        """The names of nodes, and of relations as pieces: all unseen relations are one."""
        names, number = self.snapshot.dataset.names, self.vocabulary.num_relations // 2
        relations = names.relations.to_pylist()
        known = relations[: self.snapshot.evaluator.num_known]
        return Names.of(names.nodes.to_pylist(), [*known, UNSEEN_NAME][:number])

    def row_of(self, node: int) -> TokenRows:
        table, rows = self.snapshot.evaluator.table, slice(node, node + 1)
        columns = (table.anchors[rows], table.distances[rows], table.relations[rows])
        return TokenRows(np.array([node], np.int32), *columns)

    def score_rows(self, node: int, rows: TokenRows) -> Tensor:
        """The score of the fact with each row as the tokens of a node: all vectors are computed.

        (num_rows,), on the CPU.
        """
        model, view = self.snapshot.model, self.snapshot.encoded.view
        relations = torch.from_numpy(rows.relations.astype(np.int32)).to(self.snapshot.device)
        if view.has_unseen:
            relations = renumbered(relations, view.num_known)
        tokens, found = view.tokens, []
        with torch.no_grad():
            for row in relations:
                changed = tokens.relations.clone()
                changed[node] = row
                other = Tokens(tokens.anchors, tokens.distances, changed)
                graph = model.encode(replace(view, tokens=other, bags=None))
                found.append(model.score_by_vectors(*self.query, graph)[0, self.answer.tail])
        return torch.stack(found).float().cpu() + self.of_paths

    @cached_property
    def query(self) -> tuple[Tensor, Tensor]:
        device, answer = self.snapshot.device, self.answer
        head = torch.tensor([answer.head], device=device)
        return head, self.snapshot.relation_rows[[answer.relation]]

    @cached_property
    def of_paths(self) -> float:
        """What path scorers add to the score of the fact."""
        snapshot, tail = self.snapshot, self.answer.tail
        with torch.no_grad():
            by_vectors = snapshot.model.score_by_vectors(*self.query, snapshot.encoded)[0, tail]
        return float(self.answer.scores(snapshot)[tail]) - float(by_vectors)
