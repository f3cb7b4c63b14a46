"""Node vectors as a step of a scikit-learn pipeline."""

from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from nodepiece.errors import InputError
from nodepiece.inference.opened_run import Run
from nodepiece.inference.run import load

try:
    from sklearn.base import BaseEstimator, TransformerMixin
except ModuleNotFoundError as error:
    raise InputError("NodeVectorizer needs scikit-learn; pip install scikit-learn") from error


class NodeVectorizer(TransformerMixin, BaseEstimator):  # type: ignore[misc]  # it is untyped
    """Transforms names of nodes to their vectors, (num_names, dim), by a trained run.

    `run` is a run or its folder. Nothing is fitted: the vectors are those of the run. A name that
    the run does not know is refused, or gets a vector of zeros with `unknown="zeros"`. Names may be
    a list, an array of one column, or a Series or DataFrame of pandas or polars.
    """

    def __init__(self, run: Run | str | Path, *, unknown: str = "refuse") -> None:
        self.run = run
        self.unknown = unknown

    def fit(self, names: Any = None, y: Any = None) -> Self:
        """Open the run; the names do not matter."""
        if self.unknown not in ("refuse", "zeros"):
            raise InputError(f"unknown = {self.unknown!r}; it is refuse or zeros")
        self.run_ = self.run if isinstance(self.run, Run) else load(self.run)
        return self

    def transform(self, names: Any) -> NDArray[np.float32]:
        """The vectors of some nodes by name, in their order: (num_names, dim)."""
        if not hasattr(self, "run_"):
            self.fit()
        wanted = names_in(names)
        if self.unknown == "refuse":
            return self.run_.embed(wanted)
        known = set(self.run_.node_names())
        places = [place for place, name in enumerate(wanted) if name in known]
        vectors = self.run_.embed([wanted[place] for place in places])
        result = np.zeros((len(wanted), vectors.shape[1]), np.float32)
        result[places] = vectors
        return result

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[np.object_]:
        """The names of the columns: vector_0, vector_1 and so on."""
        if not hasattr(self, "run_"):
            self.fit()
        dim = self.run_.embed(self.run_.node_names()[:1]).shape[1]
        return np.array([f"vector_{place}" for place in range(dim)], dtype=object)

    def __sklearn_is_fitted__(self) -> bool:
        return True


def names_in(names: Any) -> list[str]:
    """A list of names, from a list or from one column."""
    if isinstance(names, str):
        raise InputError(f"give a list of node names, such as [{names!r}], and not one name")
    column = np.asarray(names, dtype=object)
    if column.ndim == 2 and column.shape[1] == 1:
        column = column[:, 0]
    if column.ndim != 1:
        raise InputError(
            f"names come as a list or as one column, got the shape {column.shape}; select one"
        )
    return [str(name) for name in column]
