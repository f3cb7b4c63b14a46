"""LANES numbers as one value of a numba kernel, which the compiler keeps in vector registers.

A loop over the columns of a row loads and stores its sums for every edge; a sum that is one value
stays in a register over all edges of a node. `message_moments_cpu` is five times as fast this way.
"""

import operator
from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic, models, overload, register_model

LANES = 32  # of float32: two registers of AVX-512, four of AVX2


class Lanes(types.Type):
    """The numba type of LANES numbers of one floating point type."""

    def __init__(self, dtype: types.Float) -> None:
        self.dtype = dtype
        super().__init__(name=f"Lanes({dtype})")


@register_model(Lanes)
class _LanesModel(models.PrimitiveModel):
    def __init__(self, manager: Any, lanes: Lanes) -> None:
        number = manager.lookup(lanes.dtype).get_value_type()
        super().__init__(manager, lanes, ir.VectorType(number, LANES))  # type: ignore[no-untyped-call]


def _intrinsic(function: Callable[..., Any]) -> Any:
    """An intrinsic of numba; kernels call it without the first argument."""
    return intrinsic(function)


def _address(
    context: Any, builder: Any, array_type: Any, array: Any, start: Any
) -> tuple[Any, int]:
    """Where the lanes of an array begin, and the bytes of a number, to which they are aligned."""
    data = context.make_array(array_type)(context, builder, array).data
    kind = context.get_value_type(Lanes(array_type.dtype))
    place = builder.bitcast(builder.gep(data, [start]), kind.as_pointer())
    return place, array_type.dtype.bitwidth // 8


@_intrinsic
def load(typing_context: Any, array: Any, start: Any) -> Any:
    """The numbers from `start` on of a contiguous array of one dimension."""

    def generate(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        place, align = _address(context, builder, signature.args[0], *given)
        return builder.load(place, align=align)

    return Lanes(array.dtype)(array, types.intp), generate


@_intrinsic
def store(typing_context: Any, array: Any, start: Any, lanes: Any) -> Any:
    """Write lanes to a contiguous array of one dimension, from `start` on."""

    def generate(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        place, align = _address(context, builder, signature.args[0], *given[:2])
        builder.store(given[2], place, align=align)
        return context.get_dummy_value()

    return types.none(array, types.intp, lanes), generate


@_intrinsic
def fill(typing_context: Any, array: Any, number: Any) -> Any:
    """One number in all lanes, of the type of an array."""

    def generate(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        kind = context.get_value_type(signature.return_type)
        first = ir.Constant(ir.IntType(32), 0)
        one = builder.insert_element(ir.Constant(kind, ir.Undefined), given[1], first)
        everywhere = ir.Constant(ir.VectorType(ir.IntType(32), LANES), None)
        return builder.shuffle_vector(one, ir.Constant(kind, ir.Undefined), everywhere)

    return Lanes(array.dtype)(array, array.dtype), generate


@_intrinsic
def square_root(typing_context: Any, lanes: Any) -> Any:
    """The square root of every lane."""

    def generate(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        kind = context.get_value_type(signature.return_type)
        name = f"llvm.sqrt.v{LANES}{kind.element.intrinsic_name}"
        root = builder.module.declare_intrinsic(name, fnty=ir.FunctionType(kind, [kind]))
        return builder.call(root, given)

    return lanes(lanes), generate


def _binary(combine: Callable[[Any, Any, Any], Any]) -> Any:
    @_intrinsic
    def combined(typing_context: Any, one: Any, other: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, given: Any) -> Any:
            return combine(builder, *given)

        return (one(one, other), generate) if isinstance(one, Lanes) and one == other else None

    return combined


_add = _binary(lambda builder, one, other: builder.fadd(one, other))
_subtract = _binary(lambda builder, one, other: builder.fsub(one, other))
_multiply = _binary(lambda builder, one, other: builder.fmul(one, other))
_divide = _binary(lambda builder, one, other: builder.fdiv(one, other))
larger = _binary(lambda builder, a, b: builder.select(builder.fcmp_ordered(">", a, b), a, b))
smaller = _binary(lambda builder, a, b: builder.select(builder.fcmp_ordered("<", a, b), a, b))


def _where(comparison: str) -> Any:
    @_intrinsic
    def chosen(typing_context: Any, one: Any, other: Any, value: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, given: Any) -> Any:
            zeros = ir.Constant(context.get_value_type(signature.return_type), None)
            return builder.select(builder.fcmp_ordered(comparison, *given[:2]), given[2], zeros)

        return value(one, other, value), generate

    return chosen


where_equal = _where("==")  # (one, other, value): value where one == other, 0 elsewhere
where_larger = _where(">")


def _overload(function: Callable[[Any, Any], Any], combined: Any) -> None:
    @overload(function, strict=False)  # argument types are checked in the body
    def chosen(one: Any, other: Any) -> Any:
        if isinstance(one, Lanes) and one == other:
            return lambda one, other: combined(one, other)
        return None


for _function, _combined in (
    (operator.add, _add),
    (operator.sub, _subtract),
    (operator.mul, _multiply),
    (operator.truediv, _divide),
):
    _overload(_function, _combined)
