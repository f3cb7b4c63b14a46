"""Results of other systems, as their papers or the NodePiece paper report them, with sources."""

from dataclasses import dataclass

PAPER = "NodePiece paper"  # which quotes the row
VERSIONS = [
    f"{graph}-v{version}"
    for graph in ("fb15k-237", "wn18rr", "nell-995")
    for version in range(1, 5)
]


@dataclass(frozen=True)
class Published:
    """A row that others have reported."""

    system: str
    source: str  # who reported it
    scores: tuple[float, ...]
    parameters: str = ""  # as it is printed


# MRR and Hits@10 of link prediction.
LINKS: dict[str, tuple[Published, ...]] = {
    "fb15k-237": (
        Published("RotatE", "Sun et al., 2019", (0.338, 0.533), "29M"),
        Published("StarGraph", "Li et al., 2022", (0.343, 0.545), "3.15M"),
        Published("ComplEx-N3-RP", "Chen et al., 2021", (0.389, 0.568), "large"),
        Published("NBFNet", "Zhu et al., 2021", (0.415, 0.599)),
        Published("RED-GNN", "Zhang and Yao, 2022", (0.374, 0.558)),
        Published("AdaProp", "Zhang et al., 2023", (0.417, 0.585)),
    ),
    "wn18rr": (
        Published("RotatE", "Sun et al., 2019", (0.476, 0.571), "41M"),
        Published("RotH, rank 32", "Chami et al., 2020", (0.473, 0.551), "1.35M"),
        Published("NBFNet", "Zhu et al., 2021", (0.551, 0.666)),
        Published("RED-GNN", "Zhang and Yao, 2022", (0.533, 0.624)),
        Published("AdaProp", "Zhang et al., 2023", (0.562, 0.661)),
    ),
    "codex-s": (
        Published("ComplEx", "Safavi and Koutra, 2020", (0.465, 0.646)),
        Published("ULTRA", "Galkin et al., 2024", (0.470,)),
    ),
    "codex-m": (
        Published("ComplEx", "Safavi and Koutra, 2020", (0.337, 0.476)),
        Published("ULTRA, which trained on it too", "Galkin et al., 2024", (0.377,)),
    ),
    "codex-l": (Published("EARL", "Chen et al., 2023", (0.238, 0.390), "2.1M"),),
    "yago3-10": (
        Published("RotatE", "Sun et al., 2019", (0.495, 0.670), "123M"),
        Published("AttH", "Chami et al., 2020", (0.397, 0.566), "4.1M"),
    ),
}
# Test MRR.
WIKIKG2 = (
    Published("NP + AutoSF", PAPER, (0.570,), "6.9M"),
    Published("- no rel. context", PAPER, (0.592,), "5.9M"),
    Published("- no distances", PAPER, (0.570,), "6.9M"),
    Published("- no anchors, rels only", PAPER, (0.476,), "1.3M"),
    Published("AutoSF", f"quoted in the {PAPER}", (0.546,), "500M"),
    Published("PairRE", f"quoted in the {PAPER}", (0.521,), "500M"),
    Published("RotatE", f"quoted in the {PAPER}", (0.433,), "1250M"),
    Published("TransE", f"quoted in the {PAPER}", (0.426,), "1250M"),
    Published("StarGraph", "Li et al., 2022", (0.722,), "7.15M"),
    Published("A*Net", "Zhu et al., 2023", (0.671,), "6.83M"),
)
# MRR and Hits@10 of relation prediction.
RELATIONS: dict[str, tuple[Published, ...]] = {
    "fb15k-237": (Published("RotatE", PAPER, (0.905, 0.979)),),
    "wn18rr": (Published("RotatE", PAPER, (0.774, 0.897)),),
    "yago3-10": (Published("RotatE", PAPER, (0.909, 0.992)),),
}
# Hits@10 among 50 candidates, in the order of VERSIONS; shorter rows end after WN18RR.
INDUCTIVE = (
    Published(
        "Neural LP",
        "Teru et al., 2020",
        (0.529, 0.589, 0.529, 0.559, 0.744, 0.689, 0.462, 0.671, 0.408, 0.787, 0.827, 0.806),
    ),
    Published(
        "DRUM",
        "Teru et al., 2020",
        (0.529, 0.587, 0.529, 0.559, 0.744, 0.689, 0.462, 0.671, 0.194, 0.786, 0.827, 0.806),
    ),
    Published(
        "RuleN",
        "Teru et al., 2020",
        (0.498, 0.778, 0.877, 0.856, 0.809, 0.782, 0.534, 0.716, 0.535, 0.818, 0.773, 0.614),
    ),
    Published(
        "GraIL",
        "Teru et al., 2020",
        (0.642, 0.818, 0.828, 0.893, 0.825, 0.787, 0.584, 0.734, 0.595, 0.933, 0.914, 0.732),
    ),
    Published(
        "NBFNet",
        "Zhu et al., 2021",
        (0.834, 0.949, 0.951, 0.960, 0.948, 0.905, 0.893, 0.890),
    ),
    Published(
        "NodePiece + CompGCN",
        PAPER,
        (0.873, 0.939, 0.944, 0.949, 0.830, 0.886, 0.785, 0.807, 0.890, 0.901, 0.936, 0.893),
    ),
)
TRIX_HITS = Published("TRIX, zero-shot", "Zhang et al., 2024", (0.964, 0.974, 0.990, 0.980))
# MRR among all nodes, in the same order; TRIX on NELL-995 alone.
INDUCTIVE_MRR = (
    Published(
        "RED-GNN",
        "Zhang and Yao, 2022",
        (0.369, 0.469, 0.445, 0.442, 0.701, 0.690, 0.427, 0.651, 0.637, 0.419, 0.436, 0.363),
    ),
)
TRIX_MRR = Published("TRIX, zero-shot", "Zhang et al., 2024", (0.806, 0.570, 0.559, 0.540))
# MRR and Hits@10.
ILPC_SMALL = (
    Published("NodePiece + GNN", "Galkin et al., 2022 (ILPC)", (0.133, 0.251)),
    Published("TRIX, zero-shot", "Zhang et al., 2024", (0.303,)),
)
