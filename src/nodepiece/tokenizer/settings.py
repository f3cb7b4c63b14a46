"""Settings of the tokenizer, each read by one step of it."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from nodepiece.errors import InputError, SettingError

ANCHOR_STRATEGIES = ("degree", "pagerank", "random")  # in the order in which they fill
PAPER_MIX = {"degree": 0.4, "pagerank": 0.4, "random": 0.2}


@dataclass(frozen=True)
class TokenizerSettings:
    """How a graph is turned into pieces (section 3 of the paper)."""

    num_anchors: int | None = None  # |A|; None: anchor_share of the nodes
    anchor_share: float = 0.01  # in (0, 1], read where num_anchors is None; at least k anchors
    anchors_per_node: int = 20  # k; 0: no anchors, relations only
    relations_per_node: int = 12  # m; 0: no relational context
    mix: Mapping[str, float] = field(default_factory=lambda: dict(PAPER_MIX))  # shares, sum 1
    select: str = "nearest"  # which k anchors a node gets: "nearest" or "random"
    ties: str = "per-node"  # among equidistant anchors: "per-node" pseudo-random, or "global" order
    relation_order: str = "ascending"  # of a node's relations; "random": each node its own
    distances: bool = True  # False: the ablation without distances
    disconnected: str = "token"  # a component without anchor: "token" [DISCONNECTED], or "anchor"

    def __post_init__(self) -> None:
        if self.anchors_per_node < 0 or self.relations_per_node < 0:
            raise InputError(
                "anchors per node (k) and relations per node (m) cannot be negative, got "
                f"k={self.anchors_per_node}, m={self.relations_per_node}"
            )
        if self.anchors_per_node == 0 and self.relations_per_node == 0:
            raise SettingError(
                "k and m are both 0: a node needs at least one piece; "
                "raise {anchors_per_node} or {relations_per_node}"
            )
        if self.num_anchors is not None and self.num_anchors < 0:
            raise InputError(f"the number of anchors cannot be negative, got {self.num_anchors}")
        if self.num_anchors is not None and self.anchors_per_node > self.num_anchors:
            raise SettingError(
                f"a node cannot have k={self.anchors_per_node} of {self.num_anchors} anchors; "
                "lower {anchors_per_node} or raise {num_anchors}"
            )
        if not 0 < self.anchor_share <= 1:
            raise InputError(f"the anchor share must be above 0 and at most 1: {self.anchor_share}")
        one_of("select", self.select, ("nearest", "random"))
        one_of("ties", self.ties, ("per-node", "global"))
        one_of("relation_order", self.relation_order, ("ascending", "random"))
        one_of("disconnected", self.disconnected, ("token", "anchor"))
        check_mix(self.mix)

    def anchors_in(self, num_nodes: int) -> int:
        """How many anchors a graph of this size gets: exactly the number asked for, or the share.

        The share is never rounded below k, so that small graphs work with the defaults.
        """
        if self.anchors_per_node == 0:
            return 0
        wanted = self.num_anchors
        if wanted is None:
            wanted = min(
                num_nodes, max(self.anchors_per_node, round(self.anchor_share * num_nodes))
            )
        if wanted > num_nodes:
            raise SettingError(
                f"{wanted:,} anchors were asked of a graph of {num_nodes:,} nodes; lower "
                f"{{num_anchors}} to {num_nodes} or less"
            )
        if self.anchors_per_node > wanted:
            raise SettingError(
                f"a node cannot have k={self.anchors_per_node} anchors in a graph of "
                f"{num_nodes:,} nodes; lower {{anchors_per_node}} to {num_nodes} or less"
            )
        return wanted


def one_of(key: str, value: str, choices: tuple[str, ...]) -> None:
    """Refuse a value that is not among the choices; the error lists them."""
    if value not in choices:
        raise InputError(f"{key} = {value!r} is not known; it is one of {', '.join(choices)}")


def check_mix(mix: Mapping[str, float]) -> None:
    unknown = set(mix) - set(ANCHOR_STRATEGIES)
    if unknown:
        raise InputError(
            f"unknown anchor strategy {sorted(unknown)[0]!r} in the mix; "
            f"known are {', '.join(ANCHOR_STRATEGIES)}"
        )
    if any(not share >= 0 for share in mix.values()) or abs(sum(mix.values()) - 1) > 1e-6:
        raise InputError(
            f"the shares of the mix must be 0 or more and add up to 1, got {dict(mix)}"
        )
