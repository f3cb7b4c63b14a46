"""Estimates of memory from the sizes of a graph: the arrays that exist at the same time.

The numbers of copies were counted in the code, or fitted to measured peaks
(`benchmarks/plan_accuracy.py`). What decides against all nodes is how often scores of a batch, a
number for each query and node, are in memory: with their gradient, in another precision, as the
results of every step of the formula that a gradient needs, and once more for every path scorer.
"""

from dataclasses import dataclass

from nodepiece.decoders.path_scorers import is_on, is_sparse
from nodepiece.decoders.sparse_walks import num_walking, state_bytes
from nodepiece.encoders.node_embedding import PRODUCTS_PER_NODE
from nodepiece.settings import Experiment
from nodepiece.tasks.path_coefficients import remembered_bytes
from nodepiece.tasks.tokens import tokenizer_settings_of
from nodepiece.tokenizer.settings import TokenizerSettings
from nodepiece.training.losses import SAMPLED_SOFTMAX

PROGRAM_BYTES = 600 * 2**20  # Python, PyTorch and numba with their compiled code
BYTES_PER_PARAMETER = 16  # the weight, its gradient, and the two moments of Adam
BYTES_PER_FACT = 28  # head, relation and tail; an edge at each end
TOKENIZER_ROOM = 1.8  # memory of the search, as a multiple of the token table
BYTES_PER_QUERY_EDGE = 110  # of an edge in an epoch of queries, while it is prepared
BYTES_PER_EDGE = 12  # head, relation and tail
BYTES_PER_FACT_EDGE = 48  # of an edge in an epoch of facts, with the edge itself
SCORE_COPIES = {"cross-entropy": 2.5, SAMPLED_SOFTMAX: 5}  # of a batch, with gradients
OTHER_SCORE_COPIES = 6
MIXED_PRECISION_COPIES = 1  # more, in bfloat16: half a copy of scores and of gradients
WALK_COPIES = 10  # of the scores of the queries that walks are trained on
PROPAGATION_COPIES = 13  # of states, for each layer
OWN_NEGATIVE_COPIES = 16  # of the vectors of negatives that each fact has by itself
MIN_DISTANCES = 5  # at which most graphs have their anchors
PIECE_COPIES = 4  # of the vectors of all pieces of the nodes of a step
TRANSFORMER_COPIES = 16, 5  # of the inputs of a layer, and of its hidden numbers
LAYER_COPIES = 6  # of node vectors, for each graph layer
EDGE_INDEX_BYTES = 120  # of an edge, grouped by source, target and relation
SPARSE_INDEX_BYTES = 20  # of an edge, and once more in compressed rows


@dataclass(frozen=True)
class Sizes:
    """The sizes of a graph that memory and time depend on."""

    num_nodes: int
    num_facts: int  # of training
    num_relations: int  # without inverses
    num_test_facts: int = 0
    num_queries: int | None = None  # distinct (head, relation) pairs, with inverses; None: unknown
    num_distances: int = 5  # of a node to its anchors, as many as most nodes have
    on_gpu: bool = False  # where sparse path scorers compute a score for every node


@dataclass(frozen=True)
class Memory:
    """Bytes at the peak of each stage."""

    tokenizing: int  # on the host
    training: int
    evaluating: int

    @property
    def peak(self) -> int:
        return max(self.tokenizing, self.training, self.evaluating)


def estimate_memory(experiment: Experiment, sizes: Sizes, parameters: int) -> Memory:
    """The memory of link prediction; of other tasks without what only they have."""
    table, weights = table_bytes(experiment, sizes), 4 * parameters
    read = BYTES_PER_FACT * sizes.num_facts
    trained = BYTES_PER_PARAMETER * parameters
    if experiment.training.validate_every or experiment.training.stages:
        trained += 2 * weights  # a copy of the best ones so far, and one that is being written
    vectors = 4 * sizes.num_nodes * experiment.encoder.dim * experiment.encoder.has_pieces
    vectors = int((1 + 2 * PRODUCTS_PER_NODE) * vectors)  # products, and a copy
    held = PROGRAM_BYTES + table + read + graph_bytes(experiment, sizes)
    return Memory(
        int(PROGRAM_BYTES + read + TOKENIZER_ROOM * table),
        int(held + trained + epoch_bytes(experiment, sizes) + step_bytes(experiment, sizes)),
        int(held + trained + vectors + scores_bytes(experiment, sizes)),
    )


def table_bytes(experiment: Experiment, sizes: Sizes) -> int:
    """The bytes of the tokens of all nodes."""
    return sizes.num_nodes * row_bytes(tokenizer_settings_of(experiment))


def row_bytes(settings: TokenizerSettings) -> int:
    """The bytes of a row of the token table: anchors, distances, relations."""
    return 6 * settings.anchors_per_node + 4 * settings.relations_per_node


def graph_bytes(experiment: Experiment, sizes: Sizes) -> int:
    """The bytes of the edge index that graph layers and path scorers use."""
    scorers = [each for each in experiment.scorers if is_on(each)]
    if not (experiment.graph.layers or scorers):
        return 0
    takes_all = experiment.graph.layers or experiment.training.is_one_vs_all or sizes.on_gpu
    is_short = not takes_all and all(map(is_sparse, scorers))
    return (SPARSE_INDEX_BYTES if is_short else EDGE_INDEX_BYTES) * 2 * sizes.num_facts


def epoch_bytes(experiment: Experiment, sizes: Sizes) -> int:
    """The bytes of the batches of an epoch, with sample weights if there are any."""
    training, sampled, num_edges = experiment.training, experiment.sampled, 2 * sizes.num_facts
    if training.is_one_vs_all:
        return BYTES_PER_QUERY_EDGE * num_edges
    weights = 4 * sampled.subsampling * num_edges
    if sampled.steps_per_epoch:
        drawn = 8 * sampled.steps_per_epoch * training.batch_size
        return BYTES_PER_EDGE * num_edges + drawn + weights
    return BYTES_PER_FACT_EDGE * num_edges + weights


def step_bytes(experiment: Experiment, sizes: Sizes) -> int:
    """The bytes of activations of a step: vectors of its nodes, scores, gradients of both."""
    encoder, num_nodes = experiment.encoder, nodes_in_step(experiment, sizes)
    numbers = score_numbers(experiment, sizes) + path_numbers(experiment, sizes)
    numbers += LAYER_COPIES * experiment.graph.layers * sizes.num_nodes * encoder.dim
    if not encoder.has_pieces:
        return int(4 * (2 * num_nodes * encoder.dim + numbers))
    settings = experiment.tokenizer
    num_pieces = settings.anchors_per_node + settings.relations_per_node
    if encoder.kind == "transformer":
        of_inputs, of_hidden = TRANSFORMER_COPIES
        width = of_inputs * encoder.dim + of_hidden * encoder.hidden_dim
        return int(4 * (encoder.layers * num_nodes * num_pieces * width + numbers))
    if encoder.kind == "gated-sum":
        num_distances = max(MIN_DISTANCES, sizes.num_distances)
        num_products, width = settings.anchors_in(sizes.num_nodes) * num_distances, encoder.dim
    else:
        num_products = settings.anchors_in(sizes.num_nodes) * settings.anchors_per_node
        num_products += 2 * sizes.num_relations * settings.relations_per_node
        width = encoder.hidden_dim
    by_products = 2 * num_products * width + 6 * num_nodes * num_pieces
    by_pieces = PIECE_COPIES * num_nodes * num_pieces * encoder.dim
    hidden = 3 * num_nodes * (encoder.hidden_dim + encoder.dim)
    normed = 2 * num_nodes * encoder.dim * experiment.decoder.node_norm
    return int(4 * (min(by_products, by_pieces) + hidden + normed + numbers))


def score_numbers(experiment: Experiment, sizes: Sizes) -> float:
    """How many numbers the scores of vectors take, gradients included."""
    training, sampled = experiment.training, experiment.sampled
    copies = SCORE_COPIES.get(training.loss, OTHER_SCORE_COPIES)
    copies += MIXED_PRECISION_COPIES * (training.precision == "bfloat16")
    if training.is_one_vs_all:
        return copies * training.batch_size * sizes.num_nodes
    if training.loss == SAMPLED_SOFTMAX:
        group = min(training.batch_size, sampled.group_size or training.batch_size)
        return copies * training.batch_size * (group + sampled.num_negatives)
    if sampled.shared_negatives:
        return copies * training.batch_size * sampled.num_negatives
    num_scored = training.batch_size * (1 + sampled.num_negatives)
    return OWN_NEGATIVE_COPIES * num_scored * experiment.encoder.dim


def path_numbers(experiment: Experiment, sizes: Sizes) -> float:
    """How many numbers path scorers take in a step."""
    training, propagation = experiment.training, experiment.propagation
    drawn = experiment.one_vs_all if training.is_one_vs_all else experiment.sampled
    queries = min(training.batch_size, drawn.path_queries or training.batch_size)
    numbers = 0.0
    walks = experiment.walks
    if walks.steps and walks.is_sparse and not (training.is_one_vs_all or sizes.on_gpu):
        each = state_bytes(walks.steps, sizes.num_nodes)
        numbers += num_walking(walks.steps, sizes.num_nodes) * each / 4
    elif walks.steps:
        numbers += WALK_COPIES * queries * sizes.num_nodes
    if propagation.layers:
        states = queries * sizes.num_nodes * propagation.dim
        numbers += PROPAGATION_COPIES * propagation.layers * states
    return numbers


def nodes_in_step(experiment: Experiment, sizes: Sizes) -> int:
    """The number of nodes that a step encodes."""
    training, sampled = experiment.training, experiment.sampled
    if training.is_one_vs_all:
        return sizes.num_nodes
    facts, negatives = training.batch_size, sampled.num_negatives
    is_shared = sampled.shared_negatives or training.loss == SAMPLED_SOFTMAX
    wanted = 2 * facts + (negatives if is_shared else facts * negatives)
    return min(wanted, sizes.num_nodes)


def scores_bytes(experiment: Experiment, sizes: Sizes) -> int:
    """The bytes of scores in evaluation, at most: those of all test facts, or the limit.

    While coefficients are chosen, those of paths are kept too.
    """
    num_facts = max(1, sizes.num_test_facts)
    wanted = 4 * OTHER_SCORE_COPIES * 2 * num_facts * sizes.num_nodes
    kept = remembered_bytes(experiment, num_facts, sizes.num_nodes, on_gpu=sizes.on_gpu)
    return min(experiment.evaluation.memory_budget, wanted) + kept
