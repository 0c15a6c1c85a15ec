"""Building blocks of schemas of YAML files (JSON Schema, Draft 2020-12), and further checks."""

import types
import typing
from collections.abc import Collection, Iterable, Sequence
from dataclasses import MISSING, fields
from typing import Annotated, Any, NotRequired

from ..checks import RANGES
from ..errors import BadInput
from .wording import Fault, refusal

TEXT = {"type": "string", "pattern": r"\S", "description": "a text"}
FLAG = {"type": "boolean"}
COUNT = {"type": "integer", "minimum": 1}
DIGITS = {"type": "string", "pattern": "^[0-9a-f]{12}$", "description": "twelve hex digits"}
SHARE = {"type": "number", "minimum": 0, "maximum": 1}
NUMBER = {"type": "number"}
TYPES = {int: "integer", float: "number", str: "string", bool: "boolean", type(None): "null"}

# annotations of what is read from a file, each with its schema
Text = Annotated[str, TEXT]
Number = Annotated[float | None, NUMBER]
Whole = Annotated[int, COUNT]


def mapping(required: dict, optional: dict | None = None, **more) -> dict:
    """A mapping with exactly these required and optional keys."""
    return {
        "type": "object",
        "properties": required | (optional or {}),
        "required": list(required),
        "additionalProperties": False,
        **more,
    }


def named(value: dict, least: int = 1) -> dict:
    """A mapping from free names to values of one schema."""
    return {
        "type": "object",
        "additionalProperties": value,
        "properties": {},
        "minProperties": least,
    }


def listed(item: dict, least: int = 1, most: int | None = None, **more) -> dict:
    """A list of `least` to `most` items of one schema."""
    return {
        "type": "array",
        "items": item,
        "minItems": least,
        **({} if most is None else {"maxItems": most}),
        **more,
    }


def one_of(words, title: str = "") -> dict:
    """One of some words; messages call it `title`."""
    return {"enum": list(words), **({"title": title} if title else {})}


def either(*kinds: dict) -> dict:
    """A value that fits one of several schemas."""
    return {"anyOf": list(kinds)}


def of_fields(kind: Any, *, leave_out: Collection[str] = (), **other: dict) -> dict:
    """Schema of a mapping that is read into a dataclass, or is a `TypedDict`.

    Fields without a default are required.

    Args:
        leave_out: fields that are not in the file.
        other: schemas of fields whose annotations do not tell, and of further, optional keys.
    """
    if typing.is_typeddict(kind):
        required = kind.__required_keys__
    else:
        required = {f.name for f in fields(kind) if f.default is f.default_factory is MISSING}
    hints = typing.get_type_hints(kind, include_extras=True)
    schemas = {
        name: of_hint(hints[name]) for name in hints if name not in {*leave_out, *other}
    } | other
    needed = {name: schema for name, schema in schemas.items() if name in required}
    return mapping(needed, {name: schema for name, schema in schemas.items() if name not in needed})


def of_hint(hint: Any) -> dict:
    """Schema of an annotation: scalar, `Literal`, `X | None`, `tuple[X, ...]`, a union of these.

    In files also `Annotated[X, schema]`, `dict[str, X]`, `Sequence[X]` and a `TypedDict`.
    """
    origin, parts = typing.get_origin(hint), typing.get_args(hint)
    if origin is typing.Literal:
        return one_of(parts)
    if origin is Annotated:
        return parts[1]
    if origin is NotRequired:
        return of_hint(parts[0])
    if origin is dict:
        return named(of_hint(parts[1]))
    if origin is Sequence:
        return listed(of_hint(parts[0]))
    if typing.is_typeddict(hint):
        return of_fields(hint)
    parts = typing.get_args(hint) if isinstance(hint, types.UnionType) else (hint,)
    parts = [RANGES[part][0] if part in RANGES else part for part in parts]
    lists = [typing.get_args(part)[0] for part in parts if typing.get_origin(part) is tuple]
    kinds = [TYPES[part] for part in parts if part in TYPES] + (["array"] if lists else [])
    return {
        "type": kinds if len(kinds) > 1 else kinds[0],
        **({"items": of_hint(lists[0])} if lists else {}),
    }


def known(
    path: tuple, kind: str, given: str, allowed: Iterable[str], key: str | None = None
) -> Iterable[Fault]:
    """A fault if a name is not allowed."""
    allowed = list(dict.fromkeys(allowed))
    if given not in allowed:
        yield Fault(path, refusal(kind, given, allowed), key)


def said(path: tuple, function, *arguments) -> Iterable[Fault]:
    """A fault if a function raises BadInput on some arguments, with its message."""
    try:
        function(*arguments)
    except BadInput as error:
        yield Fault(path, str(error))


def column_faults(path: tuple, text: str, columns: list[str]) -> Iterable[Fault]:
    """Faults of a text of columns ("A", "A, B" or "first .. last") that do not exist."""
    for part in [text] if text in columns else text.replace(" .. ", ", ").split(","):
        yield from known(path, "column", part.strip(), columns)
