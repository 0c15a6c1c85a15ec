"""Messages for faults in YAML files."""

import datetime
import difflib
import re
from collections.abc import Iterable, Sequence
from decimal import Decimal, InvalidOperation
from typing import NamedTuple

from ..errors import BadInput, choose

NAMES = {
    "number": "a number",
    "integer": "a whole number",
    "string": "a text",
    "boolean": "true or false",
    "array": "a list",
    "object": "a mapping",
    "null": "null",
}
BOUNDS = {
    "minimum": "of at least",
    "exclusiveMinimum": "above",
    "maximum": "of at most",
    "exclusiveMaximum": "below",
}


class Fault(NamedTuple):
    """A fault in a file: its path in the content, and the message."""

    path: tuple  # keys and places that lead there from the top
    text: str  # what is wrong, and what to write
    key: str | None = None  # the key in that mapping which is meant, not the whole mapping


def worded(error, path: tuple) -> Fault:
    """A `jsonschema` error as a sentence that says what to write."""
    schema, value, rule = error.schema, error.instance, error.validator
    if "errorMessage" in schema:
        return Fault(path, schema["errorMessage"])
    if rule == "additionalProperties":
        key = next(key for key in value if key not in schema["properties"])
        return Fault(path, refusal("key", key, schema["properties"]), key)
    if rule == "required":
        needed = schema["required"]
        missing = next(key for key in needed if key not in value)
        other = [key for key in value if key not in schema.get("properties", {})]
        near = difflib.get_close_matches(missing, other, n=1)
        if near:  # misspelt rather than missing
            return Fault(path, refusal("key", near[0], needed), near[0])
        keys = (
            f"needs the key {missing!r}"
            if len(needed) == 1
            else f"needs the keys {joined(needed, 'and')}"
        )
        return Fault(path, f"{missing!r} is missing; the mapping {keys}.")
    if rule == "enum" and isinstance(value, str):
        kind = schema.get("title") or next(
            (step for step in reversed(path) if isinstance(step, str)), "word"
        )
        return Fault(path, refusal(kind, value, schema["enum"]))
    if rule == "uniqueItems":
        twice = next(item for i, item in enumerate(value) if item in value[:i])
        return Fault(
            (*path, len(value) - 1 - value[::-1].index(twice)),
            f"{twice!r} is given twice; delete one.",
        )
    return Fault(
        path, f"{shown(value, schema)} is given; write {hint(value, schema) or words(schema)}."
    )


def refusal(kind: str, given: str, allowed: Iterable[str]) -> str:  # type: ignore[return]
    """The message of `choose` for a wrong name."""
    try:
        choose(kind, given, allowed)
    except BadInput as error:
        return str(error)


def joined(parts: Sequence[str], last: str) -> str:
    """ "a, b and c"; `last` is the conjunction."""
    return f" {last} ".join(filter(None, [", ".join(parts[:-1]), parts[-1]]))


def words(schema: dict) -> str:
    """What a schema asks for, such as "a number above 0 or null"."""
    if "description" in schema:
        return schema["description"]
    if "anyOf" in schema:
        return joined([words(part) for part in schema["anyOf"]], "or")
    if "enum" in schema:
        return joined([repr(value) for value in schema["enum"]], "or")
    if "const" in schema:
        return repr(schema["const"])
    kinds = schema.get("type", "a value")
    return joined(
        [kind_words(kind, schema) for kind in ([kinds] if isinstance(kinds, str) else kinds)], "or"
    )


def kind_words(kind: str, schema: dict) -> str:
    """One type of a schema with its bounds, in words."""
    text = NAMES[kind]
    if kind in ("number", "integer"):
        bounds = [f"{name} {schema[bound]}" for bound, name in BOUNDS.items() if bound in schema]
        return " ".join([text, " and ".join(bounds)]).strip()
    if kind == "array":
        least, most = schema.get("minItems"), schema.get("maxItems")
        count = (
            f" of {least}" if least and least == most else f" of at least {least}" if least else ""
        )
        return (
            f"{text}{count}, each {words(schema['items'])}" if "items" in schema else text + count
        )
    return text


def shown(value: object, schema: dict) -> str:
    """A wrong value in a few words."""
    if value is None or value == "":
        return "nothing"
    if isinstance(value, dict):
        return "a mapping" if value else "an empty mapping"
    if isinstance(value, list):
        return f"a list of {len(value)}"
    if isinstance(value, (datetime.date, bytes, bool)):
        return {True: "true", False: "false"}.get(value, f"the {type(value).__name__} {value}")  # type: ignore[arg-type, str-bytes-safe]
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def hint(value: object, schema: dict) -> str:
    """What was probably meant: a number that YAML reads as text, or a text that it does not."""
    kinds = schema.get("type", ())
    if isinstance(value, str) and ("number" in kinds or "integer" in kinds):
        try:
            number = Decimal(value)
        except InvalidOperation:
            return ""
        if not number.is_finite():
            return ""
        if not re.search("[eE]", value):
            return f"{words(schema)}: {number}, without quotes"
        digits, exponent = re.split("[eE]", value)
        digits += "" if "." in digits else ".0"
        plain = f"{number:f} or " if abs(number.adjusted()) < 10 else ""
        return (
            f"{words(schema)}: {plain}{digits}e{int(exponent):+d}, since YAML reads "
            f"{value} as a text"
        )
    if "string" in kinds and isinstance(value, (int, float, datetime.date)):
        return f"{words(schema)}, in quotes"
    return ""
