"""What `studies`'s files of `data_manifests/` may hold."""

from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from .. import manifests
from ..manifests.schema import COUNT, FLAG, TEXT, either, known, listed, mapping, named
from ..manifests.wording import Fault
from ..methods.manifest import method, method_settings
from ..words import PROFILES


def studies_schema() -> dict:
    """`studies.yaml`; the settings of a variant are in `studies_faults`."""
    profile = mapping(
        {
            "prompts": mapping({"deep": COUNT, "shallow": COUNT}),
            "backbones": named(TEXT),
            "tasks": named(listed(TEXT, uniqueItems=True)),
        }
    )
    rate_of = {"enum": [True], "description": "true, none or the name of a variant of the benchmark"}
    rate_of = either(rate_of, TEXT) | {"description": rate_of["description"]}
    variant = {
        "type": "object",
        "properties": {"method": method(), "rate_of": rate_of, "scratch": FLAG},
        "required": ["method"],
    }
    study = mapping(
        {"title": TEXT, "backbones": listed(TEXT, uniqueItems=True), "tasks": TEXT, "variants": named(variant, 0)},
        {
            "rate_of": rate_of,
            "blocks": method(),
            "prepared_on": TEXT,
            "train_sizes": mapping({}, {name: listed(COUNT, uniqueItems=True) for name in PROFILES}),
        },
    )
    return mapping(
        {"profiles": mapping({name: profile for name in PROFILES}), "studies": named(study) | {"required": ["benchmark"]}}
    )


def studies_faults(content: dict, file: Path) -> Iterable[Fault]:
    """Parts are played, rates are the benchmark's, settings are the methods'."""
    found = content["studies"]
    yield from played_parts(content["profiles"], found)
    variants = found["benchmark"]["variants"]
    more = ("method", "rate_of", "scratch")
    for name, study in found.items():
        path = ("studies", name)
        if not study["variants"] and "blocks" not in study:
            yield Fault((*path, "variants"), "nothing is given; write at least one variant.")
        rates = [((*path, "rate_of"), study.get("rate_of", True))]
        rates += [((*path, "variants", v, "rate_of"), one.get("rate_of", True)) for v, one in study["variants"].items()]
        for place, rate_of in rates:
            if rate_of is not True:
                yield from known(place, "variant of the benchmark", rate_of, [*variants, "none"])
        for variant, given in study["variants"].items():
            yield from method_settings((*path, "variants", variant), given["method"], given, ("deep", "shallow"), more)


def played_parts(profiles: dict, found: dict) -> Iterable[Fault]:
    """Studies and profiles name the same parts.

    A profile may lack a backbone's part, so that its runs are left out there; but some profile has it, and each part of
    a profile is named by some study. The parts of tasks are in every profile.
    """
    for kind, keys in (("backbones", ("backbones",)), ("tasks", ("tasks", "prepared_on"))):
        named = [
            (("studies", study, key), part)
            for study, entry in found.items()
            for key in keys
            if key in entry
            for part in (entry[key] if isinstance(entry[key], list) else [entry[key]])
        ]
        played = [part for profile in profiles.values() for part in profile[kind]]
        times = Counter(part for _, part in named)
        # a name that one study has and no profile is the study's mistake; one that several have, a profile's
        alone = [f for path, part in named if times[part] == 1 for f in known(path, "part", part, played)]
        yield from alone
        for name, profile in profiles.items() if not alone else ():
            path = ("profiles", name, kind)
            unused = [f for part in profile[kind] for f in known(path, "part that no study names,", part, times, part)]
            yield from unused
            if kind == "tasks" and not unused:
                missing = [part for part in times if part not in profile[kind]]
                yield from (Fault(path, f"{part!r} is missing, a part that studies name; add it.") for part in missing)
        if kind == "backbones":
            yield from (f for path, part in named for f in known(path, "part", part, played))


def segmentation_schema() -> dict:
    """`segmentation.yaml`; the settings of a variant are in `segmentation_faults`."""
    seed = {"type": "integer", "minimum": 0}
    profile = mapping(
        {
            "backbone": TEXT,
            "tasks": named(TEXT),
            "prompts": mapping({"few": COUNT, "many": COUNT}),
            "factors": listed({"type": "number", "exclusiveMinimum": 0}, uniqueItems=True),
            "seeds": listed(seed, uniqueItems=True),
        }
    )
    variant = {"type": "object", "properties": {"method": method()}, "required": ["method"]}
    return mapping({"profiles": mapping({name: profile for name in PROFILES}), "variants": named(variant)})


def segmentation_faults(content: dict, file: Path) -> Iterable[Fault]:
    """Recipes exist, and settings are the methods'."""
    recipes = manifests.load_yaml(file.parent / "segmentation_recipes.yaml")
    for name, profile in content["profiles"].items():
        for task, recipe in profile["tasks"].items():
            yield from known(("profiles", name, "tasks"), "segmentation recipe", recipe, recipes, task)
    for variant, given in content["variants"].items():
        yield from method_settings(("variants", variant), given["method"], given, ("few", "many"), ("method",))
