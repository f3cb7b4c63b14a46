"""What a server allows and refuses."""

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Limits:
    """The largest requests that are answered; others get a problem with the limit in it."""

    body: int = 4 * 2**20  # bytes
    batch: int = 1_000  # queries, facts or nodes in a request
    top: int = 1_000  # answers to a query
    answers: int = 100_000  # answers in a response: queries times top
    assumed: int = 1_000  # facts that a request assumes
    name: int = 20_000  # characters
    seconds: float = 30.0  # from the first byte of a request to its answer
    body_seconds: float = 10.0  # in which a body must arrive
    version_seconds: float = 5.0  # to wait for a version that a client asks for
    waiting: int = 256  # requests that wait or are computed at a time
    connections: int = 1_000  # open at a time, and requests
    shutdown_seconds: int = 30  # for requests that have begun when the server stops
    queue: int = 256  # updates that wait to be committed


@dataclass(frozen=True)
class ServeSettings:
    """How runs are served."""

    writable: bool = False  # clients may update the graph
    token: str | None = None  # that updates must carry; None: no token is needed
    hosts: tuple[str, ...] = ()  # in the Host header, that are answered; (): any
    origins: tuple[str, ...] = ()  # pages of other servers that may use this one (CORS)
    access_log: bool = False  # a line of JSON for every request, on standard error
    forward_to: str | None = None  # the socket of the process that updates; None: this one does
    approximate: bool = False  # answers come from an index of vectors, most of them the best ones
    threads: int = 2  # that compute answers
    limits: Limits = field(default_factory=Limits)
