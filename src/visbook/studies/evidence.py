"""What runs are evidence of follows from their records: `replicated` where backbone, data, split,
recipe and number of seeds are the paper's by manifest, else `trend`; and what keeps it from the
other."""

from collections.abc import Sequence
from dataclasses import asdict

from visprompt.data import catalogue
from visprompt.errors import BadInput
from visprompt.models import embedded
from visprompt.records import Record
from visprompt.training.protocol import protocol
from visprompt.training.recipe import heeded, load_recipe, recorded_recipe, settled

from .case import rate_name
from .grids import family_of
from .plan import conditions
from .roles import recipe_scope

# benchmarks whose split only their lists name; of others the data set is split by its authors
LISTED = ("vtab-1k", "fgvc")
# fields of a recipe that change how a run is computed, not which run it is
FREE = ("precision", "compile", "cache_gib")


def of_records(records: Sequence[Record], paper: str, narrowed: str = "") -> tuple[str, str]:
    """(the evidence of some runs for a paper, why it is no more than a trend).

    Args:
        paper: its slug.
        narrowed: what of the paper's list of runs was left out, as a page knows it.
    """
    if not len(records):
        return "trend", "there is no run"
    reasons = dict.fromkeys(why for record in records for why in strays(record, paper))
    few = {} if reasons else too_few(records, conditions(paper, "paper")[1])
    found = [*reasons, *few, *([narrowed] if narrowed else [])]
    return ("trend", found[0]) if found else ("replicated", "")


def strays(record: Record, paper: str) -> list[str]:
    """In what a run is not the paper's; nothing where it is. The first is the one to name."""
    if record.about.get("rehearsal"):
        return [record.about["rehearsal"]]
    return [
        why
        for look in (backbone_strays, data_strays, recipe_strays)
        if (why := look(record, paper))
    ]


def backbone_strays(record: Record, paper: str) -> str:
    """In what the network is not the one that the profile `paper` names."""
    name = record.settings.get("backbone")
    theirs = recipe_scope(conditions(paper, "paper")[0], "paper").backbones.values()
    if name not in theirs or "rehearsal" in record.settings.get("architecture", {}):
        return f"{name} is not a backbone of the paper"
    entry = (embedded.published() | embedded.from_files()).get(name, {})
    if record.about.get("weights") == "published" or record.weights == entry.get("fingerprint"):
        return ""
    scratch = record.weights.startswith("random") and record.about.get("weights") == "random"
    return "" if scratch else f"no manifest knows the weights {record.weights or 'used'} of {name}"


def data_strays(record: Record, paper: str) -> str:
    """In what the images are not the split that the manifest of the data set describes."""
    task, split = record.settings.get("task"), record.about.get("split") or {}
    about = catalogue.entry_of(task)
    if not about:
        return f"{task} is no data set of the paper"
    known = catalogue.counts_of(about)
    printed = known[0] if known else [None] * 3
    given = list(split.get("counts", ()))
    joins = protocol(conditions(paper, "paper")[0]).joins(about["group"])
    # val was held out of train here
    if given and joins and catalogue.used_whole(task) and sum(given[:2]) == printed[0]:
        given = [sum(given[:2]), 0, given[2]]
    if not any(catalogue.agree(given, counts) for counts in known):
        told = [
            ", ".join("-" if count is None else f"{count:,}" for count in counts) or "-"
            for counts in (given, printed)
        ]
        return f"{task} has {told[0]} images, in the paper {told[1]}"
    if about["benchmark"] in LISTED and not (
        about.get("lists") and about["lists"] == split.get("lists")
    ):
        return f"no manifest knows the lists of {task}, so whose split it is is not known"
    together = joins and not catalogue.used_whole(task)
    whole, learned = sum(given[:2]) if together else given[0], record.settings.get("train_size")
    return (
        ""
        if learned == whole
        else f"{task} was learned from {learned} images, in the paper from {whole}"
    )


def recipe_strays(record: Record, paper: str) -> str:
    """In what a run was fitted otherwise than the paper's recipe says, but for the rate that is
    searched."""
    name, settings = conditions(paper, "paper")[0], record.settings
    if record.about.get("recipe") != name:
        return f"its recipe is {record.about.get('recipe')!r}, not {name!r}"
    own, group, family = (
        protocol(name),
        catalogue.group(settings["task"]),
        family_of(settings["backbone"]),
    )
    _, stated = own.of_task(settings["method"], settings["task"], settings["backbone"])
    changes = own.of_group(group) | stated
    try:
        recipe = load_recipe(name, settings["method"], family != "resnet", **changes)
    except BadInput as error:
        return str(error)
    recipe = heeded(recipe, embedded.averages(settings["backbone"]))
    wanted = asdict(settled(recipe, settings["method"], family))
    free = {
        *FREE,
        rate_name(settings["method"]),
        *(key for grid in own.searches.values() for key in grid),
    } - {*stated}
    said = recorded_recipe(settings)
    for key in [key for key in wanted if key not in free and wanted[key] != said[key]]:
        return f"{key} is {said[key]}, in the paper's recipe {wanted[key]}"
    resize = own.resize(group)
    return (
        ""
        if settings.get("resize") == resize
        else f"pictures were resized by {settings.get('resize')!r}, not {resize!r}"
    )


def too_few(records: Sequence[Record], seeds: Sequence[int]) -> list[str]:
    """Whether some cell has fewer seeds than the paper's runs."""
    cells = {}
    for record in records:
        settings = record.settings
        cell = {key: value for key, value in settings.items() if key not in ("seed", "recipe")}
        cells.setdefault(repr(sorted(cell.items())), set()).add(settings.get("seed"))
    least = min(map(len, cells.values()))
    return [f"{least} of {len(seeds)} seeds were run"] if least < len(seeds) else []
