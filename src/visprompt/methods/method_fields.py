"""What YAML files may say of a method and its settings."""

import functools
import sys
import typing
from collections.abc import Iterable

from ..manifests import schema
from ..manifests.schema import either, of_hint, one_of
from ..manifests.validation import against
from ..manifests.wording import Fault
from . import METHODS, method_class, method_fields


@functools.cache
def settings(slug: str, *counts: str) -> dict:
    """Schema by name of a method's settings; `counts` are words that may stand for a whole
    number."""
    hints = typing.get_type_hints(sys.modules[method_class(slug).__module__].Settings)
    found = {name: of_hint(hint) for name, hint in hints.items()}
    return {
        name: either(schema, one_of(counts)) if counts and "integer" in schema["type"] else schema
        for name, schema in found.items()
    }


def method() -> dict:
    """The slug of a method."""
    return one_of(METHODS, "method")


def method_settings(
    path: tuple, slug: str, given: dict, counts: tuple, more: tuple = ()
) -> Iterable[Fault]:
    """Settings are those of the method, of their types; `counts` may stand for whole numbers,
    `more` are other keys."""
    yield from against(
        schema.mapping({}, method_fields.settings(slug, *counts) | dict.fromkeys(more, {})),
        given,
        path,
    )
