"""What `studies`'s files of `data_manifests/` may hold."""

from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from visprompt import paths
from visprompt.data import catalogue
from visprompt.data.joining import JOINED
from visprompt.data.resizing import RULES
from visprompt.manifests import load_yaml, read_table
from visprompt.manifests.schema import (
    COUNT,
    FLAG,
    TEXT,
    either,
    known,
    listed,
    mapping,
    named,
    one_of,
)
from visprompt.manifests.wording import Fault
from visprompt.methods import METHODS
from visprompt.methods.method_fields import method, method_settings
from visprompt.models.loading import STATISTICS
from visprompt.training.recipe_files import field_schemas
from visprompt.words import PLANS, REAL

from .plan import WAYS

# what kept runs say of a factor: another seed, another choice among a search's learning rates
KEPT = ("seed", "higher", "lower", "unsearched", "smallest", "test")
WORDS = ("deep", "shallow", "place")  # in the place of a number that the profile has


def studies_schema() -> dict:
    """`studies.yaml`; the settings of a variant are in `studies_faults`."""
    profile = mapping(
        {
            "prompts": mapping({"deep": COUNT, "shallow": COUNT}),
            "backbones": named(TEXT),
            "tasks": named(listed(TEXT, uniqueItems=True)),
        },
        {"places": named({"type": "integer", "minimum": 0}), "blocks": named(COUNT)},
    )
    studies = named(study_schema())
    return mapping(
        {
            "profiles": mapping({name: profile for name in (*PLANS, REAL)}),
            "studies": studies | {"required": ["benchmark"]},
        }
    )


def study_schema() -> dict:
    """A study; the settings of a variant are in `study_faults`."""
    rate_of = {
        "enum": [True],
        "description": "true, none or the name of a variant of the benchmark",
    }
    rate_of = either(rate_of, TEXT) | {"description": rate_of["description"]}
    variant = {
        "type": "object",
        "properties": {"method": method(), "rate_of": rate_of, "scratch": FLAG},
        "required": ["method"],
    }
    parts, sizes = listed(TEXT, uniqueItems=True), listed(COUNT, uniqueItems=True)
    more = {
        "rate_of": rate_of,
        "blocks": method(),
        "each_block": listed(method(), uniqueItems=True),
        "differences": FLAG,
        "prepared_on": either(TEXT, parts),
        "train_sizes": mapping({}, {"quick": sizes, "rehearsal": sizes, "paper": named(sizes)}),
    }
    what = {"backbones": parts, "tasks": either(TEXT, parts), "variants": named(variant, 0)}
    return mapping({"title": TEXT, **what}, {**more, "paper": mapping({}, what | more)})


def own_studies_schema() -> dict:
    """`own_studies.yaml`, of a folder of one's own: studies by name."""
    return mapping({"studies": named(study_schema())})


def own_studies_faults(content: dict, file: Path) -> Iterable[Fault]:
    """Names are new, parts are those of the profiles; the rest is as in `studies_faults`."""
    every = load_yaml(paths.MANIFESTS / "studies.yaml")
    profiles, found = every["profiles"].values(), content["studies"]
    for name, study in found.items():
        if name in every["studies"]:
            yield Fault(("studies", name), f"{name} is a study of the book; give another name.")
        for key, kind in (("backbones", "backbones"), ("tasks", "tasks"), ("prepared_on", "tasks")):
            parts = [part for profile in profiles for part in profile[kind]]
            for part in [study[key]] if isinstance(study.get(key), str) else study.get(key, ()):
                yield from known(("studies", name, key), "part", part, dict.fromkeys(parts))
    yield from study_faults(found, every["studies"]["benchmark"]["variants"])


def studies_faults(content: dict, file: Path) -> Iterable[Fault]:
    """Roles are filled, rates are the benchmark's, settings are the methods'."""
    found = content["studies"]
    yield from filled_roles(content["profiles"], found)
    yield from known_tasks(
        content["profiles"], [*load_yaml(file.parent / "tasks.yaml")["embedded"]]
    )
    yield from study_faults(found, found["benchmark"]["variants"])


def study_faults(found: dict, variants: dict) -> Iterable[Fault]:
    """Rates are the benchmark's, settings are the methods'; `variants` are the benchmark's."""
    more = ("method", "rate_of", "scratch")
    for name, study in found.items():
        if not study["variants"] and not {"blocks", "each_block", "differences"} & {*study}:
            yield Fault(
                ("studies", name, "variants"), "nothing is given; write at least one variant."
            )
        for path, given in (
            (("studies", name), study),
            (("studies", name, "paper"), study.get("paper", {})),
        ):
            own = given.get("variants", {})
            rates = [((*path, "rate_of"), given.get("rate_of", True))]
            rates += [
                ((*path, "variants", v, "rate_of"), one.get("rate_of", True))
                for v, one in own.items()
            ]
            for place, rate_of in rates:
                if rate_of is not True:
                    yield from known(
                        place, "variant of the benchmark", rate_of, [*variants, "none"]
                    )
            for variant, one in own.items():
                yield from method_settings(
                    (*path, "variants", variant), one["method"], one, WORDS, more
                )


def known_tasks(profiles: dict, embedded: list[str]) -> Iterable[Fault]:
    """Every task is an embedded one or stands in a data set's manifest; those of `real` are folders
    of lists."""
    every = [*embedded, *(task for one in catalogue.datasets().values() for task in one.tasks)]
    for profile in PLANS:
        for part, tasks in profiles[profile]["tasks"].items():
            for task in tasks:
                yield from known(("profiles", profile, "tasks", part), "task", task, every)


def filled_roles(profiles: dict, found: dict) -> Iterable[Fault]:
    """Studies and profiles name the same parts.

    A profile may lack a part, so that its runs are left out there; but some profile has it, and
    each part of a profile is named by some study.
    """
    for kind, keys in (("backbones", ("backbones",)), ("tasks", ("tasks", "prepared_on"))):
        named = [
            ((*path, key), part)
            for study, entry in found.items()
            for path, given in (
                (("studies", study), entry),
                (("studies", study, "paper"), entry.get("paper", {})),
            )
            for key in keys
            if key in given
            for part in (given[key] if isinstance(given[key], list) else [given[key]])
        ]
        filled = [part for profile in profiles.values() for part in profile[kind]]
        times = Counter(part for _, part in named)
        # a name that one study has and no profile is the study's mistake; one that several have, a
        # profile's
        alone = [
            f for path, part in named if times[part] == 1 for f in known(path, "part", part, filled)
        ]
        yield from alone
        for name, profile in profiles.items() if not alone else ():
            path = ("profiles", name, kind)
            yield from (
                f
                for part in profile[kind]
                for f in known(path, "part that no study names,", part, times, part)
            )
        yield from (
            f for path, part in named if times[part] > 1 for f in known(path, "part", part, filled)
        )


def factors_schema() -> dict:
    """`factors.yaml`; what an option changes is in `factors_faults`."""
    names = listed(TEXT, uniqueItems=True)
    option = mapping(
        {},
        {
            "recipe": mapping({}, field_schemas()),
            "statistics": one_of(STATISTICS),
            "resize": one_of(RULES),
            "trained_on": one_of([JOINED]),
            "settings": named({"type": "object"}),
            "measure": one_of(["epochs"]),
            "tasks": names,
        },
        minProperties=1,
    )
    done = TEXT | {"pattern": r"^[^|]+ \| [^|]+ \| \S+$", "description": "who | does what | where"}
    more = {"option": option, "kept": one_of(KEPT), "why": TEXT}
    factor = mapping({"changed": TEXT, "done": listed(done)}, more)
    return mapping({"tasks": names, "methods": names, "factors": named(factor)})


def factors_faults(content: dict, file: Path) -> Iterable[Fault]:
    """Tasks and methods are the study real's, and a factor is measured in one way or in none."""
    every = load_yaml(file.parent / "studies.yaml")
    tasks, variants = every["profiles"][REAL]["tasks"]["real"], every["studies"]["real"]["variants"]
    for task in content["tasks"]:
        yield from known(("tasks",), "task of the study real", task, tasks)
    for variant in content["methods"]:
        yield from known(("methods",), "variant of the study real", variant, variants)
    for name, factor in content["factors"].items():
        path = ("factors", name)
        if len({"option", "kept", "why"} & {*factor}) != 1:
            yield Fault(path, "write one of `option`, `kept` and `why`.")
        option = factor.get("option", {})
        for task in option.get("tasks", ()):
            yield from known((*path, "option", "tasks"), "task", task, content["tasks"])
        for slug, settings in option.get("settings", {}).items():
            yield from method_settings((*path, "option", "settings"), slug, settings, WORDS, ())


def devices_schema() -> dict:
    """`devices.yaml`."""
    rate = {"type": "number", "exclusiveMinimum": 0}
    return named(mapping({"title": TEXT, "float32": rate, "bf16": rate, "memory_gb": rate}))


def plan_schema() -> dict:
    """`plan.yaml`; what its entries agree on with the studies is in `plan_faults`."""
    names = listed(TEXT, uniqueItems=True)
    what = mapping(
        {}, dict.fromkeys(("tasks", "backbones", "only", "variants", "without", "methods"), names)
    )
    paper = mapping({"recipe": TEXT, "seeds": COUNT, "source": TEXT})
    entry = mapping(
        {"made": listed(one_of(WAYS, "way"), uniqueItems=True)},
        {
            "studies": named(what),
            "data": names,
            "networks": names,
            "masks": names,
            "command": TEXT,
            "note": TEXT,
        },
    )
    return mapping(
        {"papers": named(paper), "shown": names, "larger": names, "artifacts": named(entry)}
    )


def plan_faults(content: dict, file: Path) -> Iterable[Fault]:
    """Every artifact has an entry, and what an entry names is there."""
    every, given = load_yaml(file.parent / "studies.yaml"), content["artifacts"]
    masks = load_yaml(file.parent / "segmentation.yaml")["variants"]
    artifacts = read_table(file.parent / "artifacts.csv").set_index("id")
    for id in given:
        yield from known(("artifacts", id), "artifact", id, artifacts.index)
    missing = [id for id in artifacts.index if id not in given]
    if missing:
        yield Fault(
            ("artifacts",),
            f"{missing[0]!r} is missing ({len(missing)} of {len(artifacts)}); write what makes it.",
        )
    profiles = every["profiles"].values()
    parts = {
        kind: {part for profile in profiles for part in profile[kind]}
        for kind in ("backbones", "tasks")
    }
    for id, entry in given.items():
        path = ("artifacts", id)
        if ("studies" in entry) != ("runs" in entry["made"]):
            yield Fault((*path, "made"), "`runs` and `studies` go together; give both or neither.")
        if ("masks" in entry) != ("masks" in entry["made"]):
            yield Fault((*path, "made"), "`masks` stands in both places or in neither.")
        for variant in entry.get("masks", ()):
            yield from known((*path, "masks"), "variant", variant, masks)
        for part in entry.get("networks", ()):
            yield from known((*path, "networks"), "part", part, parts["backbones"])
        for name, what in entry.get("studies", {}).items():
            yield from known((*path, "studies"), "study", name, every["studies"])
            if name not in every["studies"]:
                continue
            study = every["studies"][name]
            variants = [*study["variants"], *study.get("paper", {}).get("variants", {})]
            for key, allowed in {
                **parts,
                "variants": variants,
                "without": variants,
                "methods": METHODS,
            }.items():
                for given_name in what.get(key, ()):
                    yield from known(
                        (*path, "studies", name, key), key.rstrip("s"), given_name, allowed
                    )


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
    return mapping(
        {"profiles": mapping({name: profile for name in PLANS}), "variants": named(variant)}
    )


def segmentation_faults(content: dict, file: Path) -> Iterable[Fault]:
    """Recipes exist, and settings are the methods'."""
    recipes = load_yaml(file.parent / "segmentation_recipes.yaml")
    for name, profile in content["profiles"].items():
        for task, recipe in profile["tasks"].items():
            yield from known(
                ("profiles", name, "tasks"), "segmentation recipe", recipe, recipes, task
            )
    for variant, given in content["variants"].items():
        yield from method_settings(
            ("variants", variant), given["method"], given, ("few", "many"), ("method",)
        )
