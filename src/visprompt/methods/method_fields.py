"""Schemas for what YAML files say of methods and their settings."""

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
    """Name -> schema of a method's settings; the words in `counts` may stand for whole numbers."""
    hints = typing.get_type_hints(sys.modules[method_class(slug).__module__].Settings)
    schemas = {name: of_hint(hint) for name, hint in hints.items()}
    return {
        name: either(schema, one_of(counts)) if counts and "integer" in schema["type"] else schema
        for name, schema in schemas.items()
    }


def method() -> dict:
    """Schema of a method's slug."""
    return one_of(METHODS, "method")


def method_settings(
    path: tuple, slug: str, values: dict, counts: tuple, more: tuple = ()
) -> Iterable[Fault]:
    """Faults in a method's settings.

    Args:
        path: where the settings are in their file.
        counts: words that may stand for whole numbers.
        more: other keys that are allowed.
    """
    yield from against(
        schema.mapping({}, method_fields.settings(slug, *counts) | dict.fromkeys(more, {})),
        values,
        path,
    )
