"""Ctrl-C while a model is trained: the first one stops after the step, the second one at once."""

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def stop_on_interrupt(
    is_under_way: Callable[[], bool],
    notify: Callable[[], None],
    on_second: Callable[[], None] = lambda: None,
) -> Iterator[Callable[[], bool]]:
    """Yield a function that returns whether training should stop.

    The first Ctrl-C while training is under way requests this, and calls `notify`. The second one
    raises KeyboardInterrupt, and so does any Ctrl-C at another time, after `on_second`. Signals
    belong to the main thread: in another one nothing is changed.
    """
    if threading.current_thread() is not threading.main_thread():
        yield lambda: False
        return
    asked = False
    before = signal.getsignal(signal.SIGINT)

    def ask(number: int, frame: object) -> None:
        nonlocal asked
        if asked or not is_under_way():
            on_second()
            raise KeyboardInterrupt
        asked = True
        notify()

    if before is not signal.SIG_IGN:
        signal.signal(signal.SIGINT, ask)
    try:
        yield lambda: asked
    finally:
        signal.signal(signal.SIGINT, before)
