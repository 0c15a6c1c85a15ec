"""Type checks of values by annotation."""

import functools
import inspect
import math
import types
import typing
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeAlias

from .errors import BadInput, brief, choose

if TYPE_CHECKING:  # a type checker sees the type of the values
    Share: TypeAlias = float
    NotNegative: TypeAlias = float
    Count: TypeAlias = int
    Rounds: TypeAlias = int
    Positive: TypeAlias = float
    Weight: TypeAlias = float
    Number: TypeAlias = float
    Words: TypeAlias = tuple[str, ...]
    Blocks: TypeAlias = tuple[int, ...]
else:

    class Share(float):
        """Annotation: a number in [0, 1)."""

    class NotNegative(float):
        """Annotation: a number of at least 0."""

    class Count(int):
        """Annotation: a whole number from 1 on, small enough for what must fit into memory."""

    class Rounds(int):
        """Annotation: a whole number from 0 on."""

    class Positive(float):
        """Annotation: a number above 0 that float32 can multiply and divide by."""

    class Weight(float):
        """Annotation: a number of at least 0 that float32 can multiply by."""

    class Number(float):
        """Annotation: a number that float32 can multiply by."""

    class Words(tuple):
        """Annotation: distinct strings."""

    class Blocks(tuple):
        """Annotation: indices of distinct blocks."""


MOST, LARGE = 2**16, 1e6
RANGES = {  # annotation -> the type, what is wanted, and whether a value of the type is that
    Share: (float, "a number of at least 0 and below 1", lambda value: 0 <= value < 1),
    NotNegative: (float, "a number of at least 0", lambda value: value >= 0),
    Count: (int, f"a whole number of 1 to {MOST:,}", lambda value: 1 <= value <= MOST),
    Rounds: (int, "a whole number from 0 on", lambda value: 0 <= value < 2**31),
    Positive: (
        float,
        f"a number from {1 / LARGE:g} to {LARGE:g}",
        lambda value: 1 / LARGE <= value <= LARGE,
    ),
    Weight: (float, f"a number from 0 to {LARGE:g}", lambda value: 0 <= value <= LARGE),
    Number: (float, f"a number from {-LARGE:g} to {LARGE:g}", lambda value: abs(value) <= LARGE),
    Words: (
        tuple[str, ...],
        "a list of different words",
        lambda value: len(set(value)) == len(value),
    ),
    Blocks: (
        tuple[int, ...],
        "a block's number, a list of different ones",
        lambda value: len(set(value)) == len(value),
    ),
}


def fits(value, hint) -> bool:
    """Whether a value fits an annotation: scalar, list, tuple, `Literal`, or `X | None`.

    A float must be finite; an int may stand for it, a bool for neither.
    """
    kind, parts = typing.get_origin(hint), typing.get_args(hint)
    if hint is typing.Any:
        return True
    if kind is typing.Literal:
        return isinstance(value, str) and value in parts
    if hint in RANGES:
        return fits(value, RANGES[hint][0]) and RANGES[hint][2](value)
    if kind in (types.UnionType, typing.Union):
        return any(fits(value, part) for part in parts)
    if kind is tuple and parts[-1] is not Ellipsis:
        return (
            isinstance(value, tuple) and len(value) == len(parts) and all(map(fits, value, parts))
        )
    if kind in (list, tuple):
        return isinstance(value, kind) and all(fits(item, parts[0]) for item in value)
    if hint is float:
        return (
            isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)
        )
    return isinstance(value, hint) and not (isinstance(value, bool) and hint is not bool)


def require(what: str, value, hint) -> None:
    """Check that a value fits an annotation.

    Raises:
        BadInput: it does not; the message names the value as `what`, and the type that is wanted.
    """
    if not fits(value, hint):
        if typing.get_origin(hint) is typing.Literal and isinstance(value, str):
            choose(what, value, typing.get_args(hint))
        wanted = (
            hint.__name__ if isinstance(hint, type) and not typing.get_args(hint) else str(hint)
        )
        ranges = [RANGES[part][1] for part in (hint, *typing.get_args(hint)) if part in RANGES]
        if ranges:
            wanted = ranges[0] + (" or None" if typing.get_args(hint) else "")
        raise BadInput(f"{what} must be {wanted}, not {brief(value)}.")


def checked(name: str, function: Callable) -> Callable:
    """Wrap a function so that it checks its arguments against their annotations.

    Raises:
        BadInput: an unknown, missing or ill-typed argument; the message calls the function `name`.
    """
    hints, signature = typing.get_type_hints(function), inspect.signature(function)

    @functools.wraps(function)
    def called(*args, **given):
        for argument in given:
            if argument not in signature.parameters and "settings" not in signature.parameters:
                choose(f"argument of {name}", argument, signature.parameters)
        try:
            bound = signature.bind(*args, **given).arguments
        except TypeError as error:
            raise BadInput(f"{name}: {error}; its docstring tells what it takes.") from None
        for argument in bound.keys() & hints.keys():
            require(f"{name}'s {argument}", bound[argument], hints[argument])
        return function(*args, **given)

    return called
