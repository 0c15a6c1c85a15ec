"""Schemas and further checks of the YAML files that `training` reads."""

from collections.abc import Iterable
from dataclasses import fields
from pathlib import Path

import numpy as np

from .. import manifests
from ..data import catalogue
from ..data.joining import JOINED
from ..data.resizing import RULES
from ..data.tasks import embedded_tasks
from ..manifests.schema import TEXT, known, listed, mapping, named, of_fields, of_hint, one_of, said
from ..manifests.validation import against
from ..manifests.wording import Fault
from ..methods import METHODS, released
from ..methods.method_fields import method_settings
from ..models.loading import STATISTICS
from ..words import REAL
from .decoders import Decoder
from .protocol import GROUPS, PARTS, PICTURES, Protocol
from .recipe import Recipe
from .segmentation_recipe import SegmentationRecipe
from .windows import Evaluation

RANGES = {  # of the fields of a recipe that Recipe does not check itself
    "learning_rate": {"type": ["number", "null"]},  # null: the method's own
    "weight_decay": {"type": "number", "minimum": 0},
    "cache_gib": {"type": "number", "minimum": 0},
}

RATES = ("learning_rate", "head_rate", "factors", "of_batch")  # of a search: each a number above 0

SAID = [f.name for f in fields(Recipe)] + [
    *PICTURES,
    "statistics",
    "pixels",
    "checkpoints",
    "searches",
    "per_task",
    "seeds",
]


def field_schemas() -> dict[str, dict]:
    """Field of `Recipe` -> its schema."""
    return {f.name: RANGES.get(f.name) or of_hint(f.type) for f in fields(Recipe)}  # type: ignore[misc]


def recipes_schema() -> dict:
    """Schema of `recipes.yaml`."""
    every = field_schemas()
    methods = mapping(
        {}, {slug: mapping({}, every) for slug in ("other", *METHODS)}, minProperties=1
    )
    rates: dict = {"type": "number", "exclusiveMinimum": 0}
    ap = {
        "by_block": mapping({}, {"vit": listed(rates), "resnet": listed(rates)}),
        "by_variant": named(rates),
    }
    group = mapping({}, every | {"resize": one_of(RULES), "trained_on": one_of(["train", JOINED])})
    searched = {
        name: listed(schema) for name, schema in (every | dict.fromkeys(RATES, rates)).items()
    }
    search = mapping({}, searched | {"outward": listed({"type": "integer", "minimum": 1}, most=1)})
    more = of_fields(
        Protocol,
        leave_out=("name", "groups"),
        statistics=one_of(STATISTICS),
        searches=named(search),
        per_task=mapping({}, {slug: named({"type": "object"}) for slug in METHODS}),
        sources=mapping({}, dict.fromkeys(SAID, TEXT)),
    )["properties"]
    more |= {"resnet": methods, "ap_rates": mapping({}, ap)} | dict.fromkeys(GROUPS, group)
    recipe = mapping({"common": mapping({}, every), "vit": methods}, more)
    return named(recipe) | {"required": ["quick", "paper"]}


def differences_schema() -> dict:
    """Schema of `differences.yaml`; for options see `differences_faults`."""
    texts = {name: TEXT for name in ("what", "paper", "code")}
    recipe = mapping({}, field_schemas())
    option = {"type": "object", "properties": {"recipe": recipe}, "minProperties": 1}
    more = {"option": option, "none": TEXT, "backbone": one_of(["mae"]), "beside": recipe}
    return mapping({}, {slug: listed(mapping(texts, more)) for slug in METHODS})


def differences_faults(content: dict, file: Path) -> Iterable[Fault]:
    """Faults of options that neither change a method's settings or a recipe nor say why."""
    for slug, entries in content.items():
        for number, entry in enumerate(entries):
            path, option = (slug, number, "option"), entry.get("option", {})
            if not option and "none" not in entry:
                yield Fault((slug, number), "neither option nor none is given; write one of them.")
            yield from method_settings(path, slug, option, (), ("recipe",))
            yield from field_faults((*path, "recipe"), slug, option.get("recipe", {}))


def field_faults(path: tuple, slug: str, given: dict) -> Iterable[Fault]:
    """Faults of fields of a recipe that hold for one method."""
    for field, value in given.items():
        yield from said((*path, field), lambda one: Recipe(**one), {field: value})
    names = given.get("as_released", "")
    yield from said((*path, "as_released"), released.named, slug, names)


def recipes_faults(content: dict, file: Path) -> Iterable[Fault]:
    """Faults of values that `Recipe` refuses, and of rates by block that are not one per block."""
    depths: dict[str, set] = {"vit": set(), "resnet": set()}
    for entry in manifests.load_yaml(file.parent / "backbones.yaml")["embedded"].values():
        # no rates by block are chosen for a Swin
        for family, blocks in (("vit", "depth"), ("resnet", "layers")):
            if blocks in entry["timm_kwargs"]:
                depths[family].add(int(np.sum(entry["timm_kwargs"][blocks])))
    for name, recipe in content.items():
        groups: list = [((name, part), recipe.get(part, {})) for part in ("common", *GROUPS)]
        for part in ("vit", "resnet"):
            groups += [((name, part, slug), entry) for slug, entry in recipe.get(part, {}).items()]
        for path, entry in groups:
            for field, value in entry.items():
                if field not in PICTURES and value is not None:
                    yield from said((*path, field), lambda one: Recipe(**one), {field: value})
        yield from sourced(name, recipe, {field for _, entry in groups for field in entry})
        for search, grid in recipe.get("searches", {}).items():
            if "outward" in grid and {*grid} != {"factors", "outward"}:
                text = "a search goes outward of factors alone; leave out outward or the rest."
                yield Fault((name, "searches", search, "outward"), text)
            if ("factors" in grid) == ("learning_rate" in grid):
                text = (
                    "write either factors of the recipe's rate or learning_rate, a list of rates."
                )
                yield Fault(
                    (name, "searches", search, *(["factors"] if "factors" in grid else [])), text
                )
        yield from task_faults(name, recipe)
        for family, rates in recipe.get("ap_rates", {}).get("by_block", {}).items():
            if len(rates) not in depths[family]:
                text = (
                    f"{len(rates)} rates are given; write one for each block, "
                    f"{sorted(depths[family])} of them."
                )
                yield Fault((name, "ap_rates", "by_block", family), text)


def task_faults(name: str, recipe: dict) -> Iterable[Fault]:
    """Faults of what a recipe gives tasks of their own."""
    own = Protocol(name, **{part: recipe.get(part, {}) for part in ("checkpoints", "per_task")})
    entry = {"type": "object", "properties": {"recipe": mapping({}, field_schemas())}}
    every = [*embedded_tasks(), *(t for one in catalogue.datasets().values() for t in one.tasks)]
    for slug in own.per_task:
        for part, tasks in own.tasks_of(slug).items():
            for task, given in tasks.items():
                path = (name, "per_task", slug, *filter(None, [part]), task)
                yield from known(path, "task", task, every)
                found = list(against(entry, given, path))
                yield from found or method_settings(path, slug, given, (), ("recipe",))
                if not found:
                    yield from field_faults((*path, "recipe"), slug, given.get("recipe", {}))


def sourced(name: str, recipe: dict, used: set[str]) -> Iterable[Fault]:
    """Faults of fields of a paper's recipe that name no source."""
    if name in ("quick", REAL):  # this project's own, searched as the file says
        return
    wanted = {*used, "selection", "seeds", *(part for part in PARTS[:5] if part in recipe)}
    for field in sorted(wanted - {*recipe.get("sources", {})}):
        yield Fault(
            (name, "sources") if "sources" in recipe else (name,),
            f"{field!r} has no source; say under sources where the paper or its code has it.",
        )


def segmentation_recipes_schema() -> dict:
    """Schema of `segmentation_recipes.yaml`."""

    def known(kind) -> dict:
        return {
            f.name: of_hint(f.type) for f in fields(kind) if f.name not in ("decoder", "evaluation")
        }

    methods = mapping({"other": mapping({}, known(SegmentationRecipe))})
    methods["properties"] |= {slug: mapping({}, known(SegmentationRecipe)) for slug in METHODS}
    recipe = mapping(
        {
            "sources": named(TEXT),
            "common": mapping({}, known(SegmentationRecipe)),
            "decoder": mapping({}, known(Decoder)),
            "evaluation": mapping({}, known(Evaluation)),
            "methods": methods,
        }
    )
    return named(recipe) | {"required": ["quick"]}


def segmentation_recipes_faults(content: dict, file: Path) -> Iterable[Fault]:
    """Faults of values that the recipe, its decoder or its evaluation refuse."""
    tupled = lambda values: {
        key: tuple(v) if isinstance(v, list) else v for key, v in values.items()
    }
    for name, entry in content.items():
        for part, kind in (
            ("decoder", Decoder),
            ("evaluation", Evaluation),
            ("common", SegmentationRecipe),
        ):
            yield from said(
                (name, part), lambda kind=kind, part=part, entry=entry: kind(**tupled(entry[part]))
            )
        for slug, values in entry["methods"].items():
            whole = {**entry["common"], **values}
            yield from said(
                (name, "methods", slug), lambda whole=whole: SegmentationRecipe(**whole)
            )
