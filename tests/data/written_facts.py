"""Facts to a file, and a graph back to facts."""

from pathlib import Path

from nodepiece.graph.knowledge_graph import KnowledgeGraph

Fact = tuple[str, str, str]  # head, relation, tail


def written(folder: Path, text: str | bytes, name: str = "facts.tsv") -> Path:
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def facts_of(graph: KnowledgeGraph) -> list[Fact]:
    return [
        (graph.node_name(head), graph.relation_name(relation), graph.node_name(tail))
        for head, relation, tail in graph.triples.tolist()
    ]
