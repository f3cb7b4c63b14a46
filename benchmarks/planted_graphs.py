"""Generated graphs of any size with planted rules, as a file or as a folder of splits.

    python -m benchmarks.planted_graphs medium -o graphs/medium       149k nodes, 894k facts
    python -m benchmarks.planted_graphs sparse -o graphs/sparse       75k nodes, 150k facts
    python -m benchmarks.planted_graphs large -o graphs/large         2.5M nodes, 16M facts
    python -m benchmarks.planted_graphs --nodes 10000 --facts 60000 --relations 48 -o graph.tsv

A folder has train, valid and test, a file all facts. Nodes live in communities of very different
sizes, communities in regions. A region has a few relations of its own, so that the relations of a
node say what kind of node it is. Tails follow from the community of the head by the kind of the
relation:

    centre    the centre of another community, which the relation maps that of the head to
    linked    a node of the community that the relation maps that of the head to
    inverse   (t, inverse, h) for most facts (h, linked, t) of the relation before it
    peer      a node of the head's community; most facts also hold the other way
    chain     the centre that two relations of the kind centre, one after the other, lead to
    noise     any node

Heads and tails are drawn by power laws, so degrees are as uneven as in encyclopedic graphs.
"""

import argparse
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from benchmarks.generate import decode, distinct, draw_ranks, encode, write_graph

from nodepiece.data.dataset import Dataset
from nodepiece.data.random_split import hold_out_facts, write_split
from nodepiece.errors import InputError
from nodepiece.graph.arrays import LongArray
from nodepiece.graph.knowledge_graph import KnowledgeGraph
from nodepiece.graph.names import Names

KINDS = ("centre", "linked", "inverse", "peer", "centre", "chain", "linked", "noise")
COMMUNITY_SIZE = 60  # on average
COMMUNITIES_PER_REGION = 25
RELATIONS_PER_REGION = 10
HOLDS_TOO = 0.8  # share of the facts whose inverse, or other direction, is stated too
DECAY = 0.6  # rank r of nodes and of members of a community is drawn by r ** -DECAY
MAX_ROUNDS = 100
MAX_HELD_OUT = 20_000  # facts for valid, and for test


@dataclass(frozen=True)
class GraphSizes:
    num_nodes: int
    num_facts: int
    num_relations: int


SIZES = {
    "sparse": GraphSizes(75_000, 150_000, 200),
    "medium": GraphSizes(149_000, 894_000, 48),
    "large": GraphSizes(2_500_000, 16_000_000, 500),
}


@dataclass(frozen=True, eq=False)
class World:
    """The communities, and what each relation does."""

    members: LongArray  # (num_nodes,) nodes, community after community
    offsets: LongArray  # (num_communities + 1,) where each community starts
    community: LongArray  # (num_nodes,) of each node
    region: LongArray  # (num_communities,)
    maps: LongArray  # (num_relations, num_communities) from community to community
    offered: LongArray  # (num_regions, RELATIONS_PER_REGION) relations, the most frequent first
    kinds: tuple[str, ...]  # (num_relations,)


def make_world(sizes: GraphSizes, *, rng: np.random.Generator) -> World:
    """Random communities, regions and relations."""
    num_communities = max(2, sizes.num_nodes // COMMUNITY_SIZE)
    ranks = draw_ranks(sizes.num_nodes, num_communities, DECAY, rng)
    ranks[:num_communities] = np.arange(num_communities)  # none is empty
    community = ranks[rng.permutation(sizes.num_nodes)]
    members = np.argsort(community, kind="stable")
    offsets = np.searchsorted(community[members], np.arange(num_communities + 1))
    region = rng.permutation(num_communities) // COMMUNITIES_PER_REGION
    kinds = tuple(KINDS[relation % len(KINDS)] for relation in range(sizes.num_relations))
    maps = np.stack([rng.permutation(num_communities) for _ in kinds])
    centres = [relation for relation, kind in enumerate(kinds) if kind == "centre"]
    for relation in (each for each, kind in enumerate(kinds) if kind == "chain"):
        first, second = rng.choice(centres, size=2)
        maps[relation] = maps[second][maps[first]]
    drawn = [relation for relation, kind in enumerate(kinds) if kind != "inverse"]
    offered = np.stack(
        [
            rng.choice(drawn, size=RELATIONS_PER_REGION, replace=len(drawn) < RELATIONS_PER_REGION)
            for _ in range(int(region.max()) + 1)
        ]
    )
    return World(members, offsets, community, region, maps, offered, kinds)


def planted_graph(sizes: GraphSizes, *, rng: np.random.Generator) -> KnowledgeGraph:
    """A graph of exactly so many distinct facts without self-loops, in which every node occurs."""
    num_nodes, num_relations = sizes.num_nodes, sizes.num_relations
    if sizes.num_facts < num_nodes:
        raise InputError(f"{sizes.num_facts} facts cannot name {num_nodes} nodes; ask for more")
    world = make_world(sizes, rng=rng)
    popular = rng.permutation(num_nodes)
    base = distinct(draw_facts(world, np.arange(num_nodes), num_nodes, rng, both=False))
    facts = base
    for _ in range(MAX_ROUNDS):
        missing = sizes.num_facts - len(facts)
        if missing <= 0:
            surplus = np.setdiff1d(facts, base, assume_unique=True)
            kept = rng.permutation(surplus)[: sizes.num_facts - len(base)]
            graph = decode(np.concatenate([base, kept]), num_nodes, num_relations, rng)
            return named(graph, world.kinds)
        heads = popular[draw_ranks(missing, num_nodes, DECAY, rng)]
        facts = distinct(np.concatenate([facts, draw_facts(world, heads, num_nodes, rng)]))
    raise InputError(
        f"{sizes.num_facts} facts do not fit {num_nodes} nodes and {num_relations} relations"
    )


def draw_facts(
    world: World, heads: LongArray, num_nodes: int, rng: np.random.Generator, *, both: bool = True
) -> LongArray:
    """A fact for each head, and with `both` most of what follows from it, as single numbers."""
    community = world.community[heads]
    place = draw_ranks(len(heads), RELATIONS_PER_REGION, 1.0, rng)
    relations = world.offered[world.region[community], place]
    target = world.maps[relations, community]
    is_kind = {kind: np.isin(relations, of_kind(world, kind)) for kind in set(KINDS)}
    target = np.where(is_kind["peer"], community, target)
    tails = world.members[world.offsets[target]]  # the centre is the first member
    drawn = is_kind["linked"] | is_kind["peer"]
    tails[drawn] = members_of(world, target[drawn], rng)
    is_noise = is_kind["noise"]
    tails[is_noise] = rng.integers(num_nodes, size=int(is_noise.sum()))
    is_loop = tails == heads
    tails[is_loop] = (heads[is_loop] + 1) % num_nodes
    facts = [encode(heads, relations, tails, num_nodes)]
    if both:
        holds_too = rng.random(len(heads)) < HOLDS_TOO
        back = is_kind["peer"] & holds_too
        facts.append(encode(tails[back], relations[back], heads[back], num_nodes))
        with_inverse = np.isin(relations + 1, of_kind(world, "inverse")) & holds_too
        inverse = tails[with_inverse], relations[with_inverse] + 1, heads[with_inverse]
        facts.append(encode(*inverse, num_nodes))
    return np.concatenate(facts)


def of_kind(world: World, kind: str) -> list[int]:
    return [relation for relation, each in enumerate(world.kinds) if each == kind]


def members_of(world: World, communities: LongArray, rng: np.random.Generator) -> LongArray:
    """A member of each community, the first ones the most often."""
    start = world.offsets[communities]
    size = world.offsets[communities + 1] - start
    power = 1 - DECAY
    place = (size * rng.random(len(communities)) ** (1 / power)).astype(np.int64)
    return world.members[start + np.minimum(place, size - 1)]


def named(graph: KnowledgeGraph, kinds: tuple[str, ...]) -> KnowledgeGraph:
    nodes = [f"n{node}" for node in range(graph.num_nodes)]
    relations = [f"{kind}_{relation}" for relation, kind in enumerate(kinds)]
    names = Names.of(nodes, relations)
    return KnowledgeGraph(graph.triples, graph.num_nodes, graph.num_relations, names)


def planted_split(sizes: GraphSizes, *, seed: int, held_out: float = 0.05) -> Dataset:
    """The graph with a share of its facts held out for valid, and as many for test."""
    rng = np.random.default_rng(seed)
    graph = planted_graph(sizes, rng=rng)
    number = min(MAX_HELD_OUT, round(held_out * graph.num_triples))
    none = graph.triples[:0]
    whole = Dataset("planted", graph, none, none, {"valid": 0, "test": 0})
    return hold_out_facts(whole, {"valid": number, "test": number}, rng=rng)


def main() -> None:
    parser = argparse.ArgumentParser(description="Write a graph with planted rules.")
    parser.add_argument("size", nargs="?", choices=tuple(SIZES), help="in place of three numbers")
    parser.add_argument("--nodes", type=int)
    parser.add_argument("--facts", type=int)
    parser.add_argument("--relations", type=int)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("-o", "--out", type=Path, required=True, help="a folder, or a file .tsv")
    options = parser.parse_args()
    numbers = options.nodes, options.facts, options.relations
    if options.size is None and None in numbers:
        parser.error("name a size, or give --nodes, --facts and --relations")
    sizes = GraphSizes(*numbers) if options.size is None else SIZES[options.size]
    if options.out.suffix == ".tsv":
        graph = planted_graph(sizes, rng=np.random.default_rng(options.seed))
        write_graph(graph, options.out)
        print(f"wrote {options.out}: {graph.num_triples:,} facts")
        return
    dataset = planted_split(sizes, seed=options.seed)
    write_split(dataset, options.out, {"sizes": vars(sizes), "seed": options.seed})
    parts = ", ".join(f"{len(dataset.part(part)):,} {part}" for part in ("train", "valid", "test"))
    print(f"wrote {options.out}: {parts}")


if __name__ == "__main__":
    main()
