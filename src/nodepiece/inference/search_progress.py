"""How far a long search is, and whether it is to stop."""

from collections.abc import Callable
from dataclasses import dataclass

from nodepiece.evaluation.ranking import Progress

ShouldStop = Callable[[], bool]


@dataclass
class SearchProgress:
    """Counts what was searched of a whole that may grow, and passes that on."""

    callback: Progress | None = None  # gets what is done so far, and all
    should_stop: ShouldStop | None = None  # asked between two steps
    num_done: int = 0
    num_all: int = 0

    def expect(self, number: int) -> None:
        """Add to what there is to search."""
        self.num_all += number
        self._report()

    def add(self, number: int) -> None:
        """Add to what was searched."""
        self.num_done += number
        self._report()

    @property
    def is_stopped(self) -> bool:
        """Whether the search is to end with what it found so far."""
        return self.should_stop is not None and self.should_stop()

    def _report(self) -> None:
        if self.callback is not None:
            self.callback(self.num_done, self.num_all)
