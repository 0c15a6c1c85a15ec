"""A recipe in words: what the page on recipes and the papers' pages say of its fields."""

from collections.abc import Mapping
from dataclasses import fields

from visprompt.methods import names
from visprompt.training.protocol import GROUPS, Protocol
from visprompt.training.recipe import Recipe

DEFAULTS = {field.name: field.default for field in fields(Recipe)} | {
    "resize": "direct",
    "trained_on": "train",
}
UNSET = {  # what a field without a value stands for; the others: none
    "learning_rate": "the method's",
    "head_rate": "the method's learning rate",
    "head_decay": "as for the other weights",
    "pixels": "the checkpoint's",
}


def values(field: str, entry: Mapping, own: Protocol) -> list[str]:
    """A field of a recipe: its value for all, and where it is another for a group of tasks or for a
    method.

    Args:
        entry: the recipe as `recipes.yaml` has it.
    """
    if field in ("searches", "per_task"):
        return ["below"] if field in entry else ["ours alone" if field == "searches" else "none"]
    if field in ("statistics", "pixels"):
        return [word(getattr(own, field), field)]
    if field == "checkpoints":
        return [f"{part}: {name}" for part, name in own.checkpoints.items()] or ["the profile's"]
    found: dict[str, list[str]] = {}
    for group in GROUPS:
        if field in entry.get(group, {}):
            found.setdefault(word(entry[group][field], field), []).append(group)
    for kind in ("vit", "resnet"):
        for slug, given in entry.get(kind, {}).items():
            if field in given:
                named = {**names(), "other": "other methods"}.get(slug, slug)
                where = named + " on a ResNet" * (kind == "resnet")
                found.setdefault(word(given[field], field), []).append(where)
    common = entry["common"].get(field, DEFAULTS.get(field))
    lines = [] if (common is None and found) or field == "seeds" else [word(common, field)]
    return lines + [f"{text}: {', '.join(where)}" for text, where in found.items()]


def word(value, field: str = "") -> str:
    """A value of a field as a reader takes it."""
    if value in (None, ""):
        return UNSET.get(field, "none")
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:.4g}" if isinstance(value, float) else str(value)
