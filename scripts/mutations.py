"""Places in the source where a small fault can be planted, and the source with one planted.

The operators are those of Cosmic Ray. Annotations and decorators are left out: a fault there is
either found by importing the file, or has no effect.
"""

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from cosmic_ray.ast import ast_nodes, get_ast
from cosmic_ray.mutating import mutate_code
from cosmic_ray.plugins import get_operator

BINARY = (
    "Add_Sub Sub_Add Mul_Add Div_Mul FloorDiv_Mul Mod_FloorDiv Pow_Mul RShift_LShift "
    "LShift_RShift BitOr_BitAnd BitAnd_BitOr BitXor_BitOr"
)
COMPARISON = (
    "Eq_NotEq NotEq_Eq Lt_LtE Lt_GtE LtE_Lt LtE_Gt Gt_GtE Gt_LtE GtE_Gt GtE_Lt Is_IsNot IsNot_Is"
)
OPERATORS = (
    *(f"ReplaceBinaryOperator_{pair}" for pair in BINARY.split()),
    *(f"ReplaceComparisonOperator_{pair}" for pair in COMPARISON.split()),
    "ReplaceUnaryOperator_USub_UAdd",
    "ReplaceUnaryOperator_Delete_Not",
    "ReplaceUnaryOperator_Delete_Invert",
    "AddNot",
    "ReplaceTrueWithFalse",
    "ReplaceFalseWithTrue",
    "ReplaceAndWithOr",
    "ReplaceOrWithAnd",
    "ReplaceBreakWithContinue",
    "ReplaceContinueWithBreak",
    "NumberReplacer",
    "ZeroIterationForLoop",
    "ExceptionReplacer",
)
Position = tuple[int, int]  # line, column


@dataclass(frozen=True, order=True)
class Mutation:
    """One fault: the n-th mutation of an operator in a file."""

    path: Path
    position: Position
    operator: str
    occurrence: int

    def mutated_source(self) -> str:
        code = mutate_code(
            self.path.read_text(encoding="utf-8"), make(self.operator), self.occurrence
        )
        if code is None:
            raise ValueError(f"nothing to mutate: {self}")
        return str(code)


def make(operator: str) -> "object":
    return get_operator(f"core/{operator}")()


def mutations(path: Path) -> list[Mutation]:
    """Every fault that can be planted into a file."""
    source = path.read_text(encoding="utf-8")
    nodes, left_out = list(ast_nodes(get_ast(source))), list(spans_left_out(ast.parse(source)))
    found = []
    for operator in OPERATORS:
        instance, occurrence = make(operator), 0
        for node in nodes:
            for start, _ in instance.mutation_positions(node):  # type: ignore[attr-defined]
                if not any(first <= start < last for first, last in left_out):
                    found.append(Mutation(path, start, operator, occurrence))
                occurrence += 1
    return found


def spans_left_out(tree: ast.AST) -> Iterator[tuple[Position, Position]]:
    """The start and end of annotations, decorators and blocks for type checkers."""
    for node in ast.walk(tree):
        parts: list[ast.expr | ast.stmt | None] = []
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            parts += [node.returns, *node.decorator_list]
        if isinstance(node, ast.ClassDef):
            parts += node.decorator_list
        if isinstance(node, ast.arg | ast.AnnAssign):
            parts.append(node.annotation)
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            parts.append(node)
        for part in parts:
            if part is not None:
                yield (
                    (part.lineno, part.col_offset),
                    (part.end_lineno or part.lineno, part.end_col_offset or 0),
                )
