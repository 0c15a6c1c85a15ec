"""Whether a given value has the annotated type."""

import math
import types
import typing

from .errors import BadInput


def fits(value, hint) -> bool:
    """Whether a value has the annotated type: a scalar, a list, a tuple, or `X | None`.

    A float must be finite; an int may stand for it, a bool for neither.
    """
    kind, parts = typing.get_origin(hint), typing.get_args(hint)
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
        wanted = hint.__name__ if isinstance(hint, type) and not typing.get_args(hint) else str(hint)
        given = " ".join(repr(value).split())  # arrays and tensors print over several lines
        raise BadInput(f"{what} must be {wanted}, not {given if len(given) <= 80 else given[:77] + '...'}.")
