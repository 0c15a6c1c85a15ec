"""Whether a given value has the annotated type."""

import math
import types
import typing

from .errors import BadInput, choose


class Share(float):
    """As an annotation: a number of at least 0 and below 1."""


class NotNegative(float):
    """As an annotation: a number of at least 0."""


RANGES = {  # annotation -> what is wanted, and whether a number is that
    Share: ("a number of at least 0 and below 1", lambda value: 0 <= value < 1),
    NotNegative: ("a number of at least 0", lambda value: value >= 0),
}


def fits(value, hint) -> bool:
    """Whether a value has the annotated type: a scalar, a list, a tuple, a word of `Literal`, or `X | None`.

    A float must be finite; an int may stand for it, a bool for neither.
    """
    kind, parts = typing.get_origin(hint), typing.get_args(hint)
    if kind is typing.Literal:
        return isinstance(value, str) and value in parts
    if hint in RANGES:
        return fits(value, float) and RANGES[hint][1](value)
    if kind in (types.UnionType, typing.Union):
        return any(fits(value, part) for part in parts)
    if kind is tuple and parts[-1] is not Ellipsis:
        return isinstance(value, tuple) and len(value) == len(parts) and all(map(fits, value, parts))
    if kind in (list, tuple):
        return isinstance(value, kind) and all(fits(item, parts[0]) for item in value)
    if hint is float:
        return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)
    return isinstance(value, hint) and not (isinstance(value, bool) and hint is not bool)


def require(what: str, value, hint) -> None:
    """Refuse a value that has not the annotated type.

    Raises:
        BadInput: it has not; the message says which type is wanted.
    """
    if not fits(value, hint):
        if typing.get_origin(hint) is typing.Literal and isinstance(value, str):
            choose(what, value, typing.get_args(hint))
        wanted = hint.__name__ if isinstance(hint, type) and not typing.get_args(hint) else str(hint)
        ranges = [RANGES[part][0] for part in (hint, *typing.get_args(hint)) if part in RANGES]
        wanted = f"{ranges[0]}{' or None' * bool(typing.get_args(hint))}" if ranges else wanted
        given = " ".join(repr(value).split())  # arrays and tensors print over several lines
        raise BadInput(f"{what} must be {wanted}, not {given if len(given) <= 80 else given[:77] + '...'}.")
