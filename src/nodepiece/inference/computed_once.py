"""Properties that are computed at the first use, by one thread."""

from collections.abc import Callable
from threading import RLock
from typing import Any, Generic, Self, TypeVar, overload

T = TypeVar("T")


class computed_once(Generic[T]):
    """A cached property that several threads may read at the same time.

    The first one computes it while the others wait, and all get the same object. Instances need a
    `__dict__`; a frozen dataclass has one.
    """

    def __init__(self, function: Callable[[Any], T]) -> None:
        self.function = function
        self.__doc__ = function.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    @overload
    def __get__(self, instance: None, owner: type) -> Self: ...
    @overload
    def __get__(self, instance: object, owner: type) -> T: ...
    def __get__(self, instance: object | None, owner: type) -> Self | T:
        if instance is None:
            return self
        values = instance.__dict__  # later reads find the value there, without this method
        with values.setdefault("_first_use", RLock()):  # one lock for all threads
            if self.name not in values:
                values[self.name] = self.function(instance)
            result: T = values[self.name]
            return result
