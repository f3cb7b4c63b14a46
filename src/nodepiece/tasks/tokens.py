"""The tokens that an experiment is trained with, and their changes between epochs."""

from pathlib import Path

import numpy as np
import torch

from nodepiece.encoders.lookup_embedding import NodeEmbedding
from nodepiece.encoders.node_embedding import make_node_embedding
from nodepiece.encoders.pieces import resample_relations, shuffle_equidistant
from nodepiece.errors import SettingError
from nodepiece.graph.knowledge_graph import KnowledgeGraph
from nodepiece.settings import Experiment
from nodepiece.tokenizer.settings import TokenizerSettings
from nodepiece.tokenizer.storage import copy_tokens, load_tokens, save_tokens
from nodepiece.tokenizer.tokens import TokenTable, tokenize
from nodepiece.tokenizer.vocabulary import fit_vocabulary
from nodepiece.training.distribution import current_processes

NO_ANCHORS = TokenizerSettings(anchors_per_node=0, relations_per_node=1)


def make_tokens(
    experiment: Experiment, graph: KnowledgeGraph, folder: Path, vocabulary: Path | None = None
) -> TokenTable:
    """The tokens of all nodes, computed or of a vocabulary folder, saved in the run folder."""
    if vocabulary is None:
        table = tokenize_for(experiment, graph)
        save_tokens(table, folder / "vocabulary")
    else:
        table = load_tokens(vocabulary, graph=graph)
        table.check()
        copy_tokens(vocabulary, folder / "vocabulary")
    return table


def load_for_training(folder: Path, graph: KnowledgeGraph) -> TokenTable:
    """The tokens in a run folder, mapped. Of several processes the first one checks them.

    The others then read only the rows that they need.
    """
    table, processes = load_tokens(folder / "vocabulary", graph=graph), current_processes()
    if processes.count == 1:
        return table  # checked by the first that uses its values as indices
    max_distance = torch.zeros(1, dtype=torch.int64)
    if processes.is_first:
        table.check()
        max_distance[0] = table.max_distance
    processes.broadcast([max_distance])
    return table if processes.is_first else table.as_checked(int(max_distance))


def tokenize_for(experiment: Experiment, graph: KnowledgeGraph) -> TokenTable:
    """The tokens of all nodes, for the seed of the experiment; without anchors for a lookup."""
    rng = np.random.default_rng(experiment.seed)
    try:
        vocabulary = fit_vocabulary(graph, tokenizer_settings_of(experiment), rng=rng)
    except SettingError as error:
        raise error.named(lambda field: f"tokenizer.{field}") from error
    return tokenize(graph, vocabulary, rng=rng)


def tokenizer_settings_of(experiment: Experiment) -> TokenizerSettings:
    """The tokenizer settings of an experiment; a lookup needs no anchors."""
    return experiment.tokenizer if experiment.encoder.has_pieces else NO_ANCHORS


def build_node_embedding(
    experiment: Experiment, table: TokenTable, *, generator: torch.Generator
) -> NodeEmbedding:
    """The node embedding of an experiment: pieces and an encoder, or a lookup."""
    return make_node_embedding(table, experiment.encoder, generator=generator)


def refresh_tokens(
    nodes: NodeEmbedding,
    experiment: Experiment,
    table: TokenTable,
    epoch: int,
    *,
    generator: torch.Generator,
) -> None:
    """Set new tokens for an epoch, if the settings of the experiment require it."""
    training = experiment.training
    if nodes.token_tensors is None:
        return
    if not (training.shuffle_anchors or training.resample_relations):
        return
    tokens = nodes.token_tensors.tokens()
    if training.shuffle_anchors:
        tokens = shuffle_equidistant(tokens, generator=generator)
    if training.resample_relations:
        rng = np.random.default_rng([experiment.seed, epoch])
        tokens = resample_relations(tokens, table, rng=rng)
    nodes.use_training_tokens(tokens)
