"""Of which study, and of which paper, a record is a run: by what it says of itself, whoever made
it."""

import functools
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, fields

from visprompt import paths
from visprompt.data.catalogue import entry_of
from visprompt.data.tasks import embedded_tasks
from visprompt.errors import choose
from visprompt.manifests import load_yaml
from visprompt.methods import settings_of
from visprompt.papers import papers, theories
from visprompt.records.index import flat

from . import plan
from .case import Run, rate_name
from .evidence import FREE
from .factors import is_of_factor
from .grids import studies
from .roles import under

# (backbone, task, method) -> runs, with the settings that their records have
Cells = dict[tuple, list[tuple[Run, dict]]]


def of_study(name: str) -> Callable[[Mapping], bool]:
    """Whether an entry of `records.index` is a run of a study of studies.yaml, any seed, its search
    included.

    Raises:
        BadInput: no study has that name.
    """
    choose("study", name, studies())
    return lambda entry: any(
        fits(entry, *run) for run in alike(entry, study_runs(name, *conditions_of(entry)))
    )


def of_paper(slug: str) -> Callable[[Mapping], bool]:
    """Whether an entry of `records.index` is a run that the paper's tables and figures show, or one
    of its theory's.

    Raises:
        BadInput: no paper has that slug.
    """
    choose("paper", slug, papers())
    theory = theories().get(slug)

    def shown(entry: Mapping) -> bool:
        if theory and entry["kind"].startswith(theory):
            return True
        profile, recipe = conditions_of(entry)
        if entry["kind"] == "segment":
            return any(
                method_settings(entry) == wanted
                for wanted in masks(slug, profile, entry["settings"]["method"])
            )
        return any(fits(entry, *run) for run in alike(entry, paper_runs(slug, profile, recipe)))

    return shown


def conditions_of(entry: Mapping) -> tuple[str, str]:
    """Profile and recipe of a record; "" where it says none."""
    return entry["about"].get("profile", ""), entry["about"].get("recipe", "")


def alike(entry: Mapping, cells: Cells) -> list[tuple[Run, dict]]:
    """The runs of a record's backbone, task and method; none for one of `factors`."""
    if is_of_factor(entry["about"]):
        return []
    return cells.get(
        tuple(entry["settings"].get(name) for name in ("backbone", "task", "method")), []
    )


@functools.cache
def study_runs(name: str, profile: str, recipe: str) -> Cells:
    """The runs of a study in a profile under a recipe; none where one of them is unknown."""
    if not known(profile, recipe):
        return {}
    scope = under(recipe, plan.whole_scope(profile))
    filled = set(plan.study_form(name, profile)["backbones"]) & {*scope.backbones}
    return by_cell((run for _, run, _ in plan.all_cells(name, scope)), recipe) if filled else {}


@functools.cache
def paper_runs(slug: str, profile: str, recipe: str) -> Cells:
    """The runs that the artifacts of a paper show in a profile, where their recipe is this one."""
    if profile not in ("quick", "paper") or not known(profile, recipe):
        return {}
    cells = [
        cell
        for id, entry in plan.artifacts().items()
        if entry.paper == slug
        for cell in plan.cells_of(id, profile)
    ]
    runs = [
        run
        for cell in cells
        if cell.recipe == recipe
        for run in (cell.run, cell.like)
        if run is not None
    ]
    return by_cell({repr(run): run for run in runs}.values(), recipe)


def known(profile: str, recipe: str) -> bool:
    """Whether manifests have a profile and a recipe."""
    profiles = load_yaml(paths.MANIFESTS / "studies.yaml")["profiles"]
    return profile in (*profiles, "rehearsal") and recipe in load_yaml(
        paths.MANIFESTS / "recipes.yaml"
    )


def by_cell(runs: Iterable[Run], recipe: str) -> Cells:
    """Runs by backbone, task and method, each with the settings that a search leaves as they are:
    (value, default)."""
    lab, found = plan.lab_of(recipe), {}
    searched = {name for grid in lab.protocol.searches.values() for name in grid}
    for run in runs:
        case = lab.resolve(run)
        parts = {
            "method_settings": settings_of(run.method, **case.settings),
            "recipe": case.recipe,
        }
        free = {f"recipe.{name}" for name in (*FREE, *searched, rate_name(run.method))}
        usual = flat(
            {name: {f.name: f.default for f in fields(part)} for name, part in parts.items()}
        )
        wanted = flat({name: asdict(part) for name, part in parts.items()})
        told = {name: (value, usual[name]) for name, value in wanted.items() if name not in free}
        found.setdefault((run.backbone, run.task, run.method), []).append((run, told))
    return found


def fits(entry: Mapping, run: Run, wanted: Mapping) -> bool:
    """Whether a record is one of a run but for seed and searched rate; a setting that it lacks had
    the default."""
    settings = entry["settings"]
    if (
        settings.get("prepared_on") != run.prepared_on
        or entry["weights"].startswith("random") != run.scratch
    ):
        return False
    size = settings.get("train_size")
    if size != run.train_size if run.train_size is not None else size not in whole_sizes(entry):
        return False
    return all(settings.get(name, default) == value for name, (value, default) in wanted.items())


def whole_sizes(entry: Mapping) -> set[int]:
    """How many images a record's whole training split may have: without those of the validation
    split, or with them."""
    split = entry["about"].get("split")
    train, val = split["counts"][:2] if split else splits_of(entry["settings"]["task"])
    return {train, train + val}


@functools.cache
def splits_of(task: str) -> tuple[int, int]:
    """How many images to train on and to validate on a task has by its manifest; 0 where it does
    not say."""
    if task in embedded_tasks():
        return tuple(embedded_tasks()[task]["splits"][:2])
    return tuple(entry_of(task).get("splits", {}).get(part, 0) for part in ("train", "val"))


@functools.cache
def masks(slug: str, profile: str, method: str) -> list[dict]:
    """The settings of a method in the variants of segmentation that a paper's artifacts show."""
    shown = [id for id, entry in plan.artifacts().items() if entry.paper == slug]
    runs = [cell.run for id in shown for cell in plan.mask_cells(id, profile)]
    chosen = {repr(run.settings): run.settings for run in runs if run.method == method}
    return [flat(asdict(settings_of(method, **settings))) for settings in chosen.values()]


def method_settings(entry: Mapping) -> dict:
    """The settings of a record's method, flattened."""
    start = "method_settings."
    return {
        name.removeprefix(start): value
        for name, value in entry["settings"].items()
        if name.startswith(start)
    }
