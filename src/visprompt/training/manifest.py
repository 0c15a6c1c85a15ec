"""What `training`'s files of `data_manifests/` may hold."""

from collections.abc import Iterable
from dataclasses import fields
from pathlib import Path

from .. import manifests
from ..data.tasks import RESIZES
from ..manifests.schema import TEXT, listed, mapping, named, of_hint, one_of, said
from ..manifests.wording import Fault
from ..methods import METHODS
from .decoders import Decoder
from .recipe import Recipe
from .segmentation_recipe import SegmentationRecipe
from .windows import Evaluation

RANGES = {  # of the fields of a recipe that Recipe does not check itself
    "learning_rate": {"type": ["number", "null"]},  # null: the method's own
    "weight_decay": {"type": "number", "minimum": 0},
    "cache_gib": {"type": "number", "minimum": 0},
}


def recipes_schema() -> dict:
    """`recipes.yaml`."""
    known = {f.name: RANGES.get(f.name) or of_hint(f.type) for f in fields(Recipe)}
    methods = mapping({}, {slug: mapping({}, known) for slug in ("other", *METHODS)}, minProperties=1)
    rates = {"type": "number", "exclusiveMinimum": 0}
    ap = {"by_block": mapping({}, {"vit": listed(rates), "resnet": listed(rates)}), "by_variant": named(rates)}
    recipe = mapping(
        {"common": mapping({}, known), "vit": methods},
        {"resnet": methods, "fine": mapping({}, known | {"resize": one_of(RESIZES)}), "ap_rates": mapping({}, ap)},
    )
    return named(recipe) | {"required": ["quick", "paper"]}


def recipes_faults(content: dict, file: Path) -> Iterable[Fault]:
    """Each value is one that `Recipe` takes, and rates by block are as many as an embedded backbone has blocks."""
    depths: dict[str, set] = {"vit": set(), "resnet": set()}
    for entry in manifests.load_yaml(file.parent / "backbones.yaml")["embedded"].values():
        given = entry["timm_kwargs"]
        family, depth = ("vit", given["depth"]) if "depth" in given else ("resnet", sum(given["layers"]))
        depths[family].add(depth)
    for name, recipe in content.items():
        groups = [((name, part), recipe.get(part, {})) for part in ("common", "fine")]
        for part in ("vit", "resnet"):
            groups += [((name, part, slug), entry) for slug, entry in recipe.get(part, {}).items()]
        for path, entry in groups:
            for field, value in entry.items():
                if field != "resize" and value is not None:
                    yield from said((*path, field), lambda one: Recipe(**one), {field: value})
        for family, rates in recipe.get("ap_rates", {}).get("by_block", {}).items():
            if len(rates) not in depths[family]:
                text = f"{len(rates)} rates are given; write one for each block, {sorted(depths[family])} of them."
                yield Fault((name, "ap_rates", "by_block", family), text)


def segmentation_recipes_schema() -> dict:
    """`segmentation_recipes.yaml`."""

    def known(kind) -> dict:
        return {f.name: of_hint(f.type) for f in fields(kind) if f.name not in ("decoder", "evaluation")}

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
    """Each value is one that the recipe, its decoder and its evaluation take."""
    tupled = lambda given: {key: tuple(v) if isinstance(v, list) else v for key, v in given.items()}
    for name, entry in content.items():
        for part, kind in (("decoder", Decoder), ("evaluation", Evaluation), ("common", SegmentationRecipe)):
            yield from said((name, part), lambda kind=kind, part=part, entry=entry: kind(**tupled(entry[part])))
        for slug, given in entry["methods"].items():
            whole = {**entry["common"], **given}
            yield from said((name, "methods", slug), lambda whole=whole: SegmentationRecipe(**whole))
