"""What each table and figure of the papers takes: which runs, and where no run is needed, what
makes it.

`data_manifests/plan.yaml` says which cells of which studies an artifact shows. Nothing is built or
loaded to plan.
"""

import difflib
import functools
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from functools import cached_property
from types import SimpleNamespace
from typing import ClassVar

from visprompt import paths
from visprompt.data import catalogue
from visprompt.data.tasks import embedded_tasks
from visprompt.errors import BadInput, choose
from visprompt.manifests import load_yaml
from visprompt.models import embedded
from visprompt.papers import papers
from visprompt.training.recipe import Recipe

from .case import Case, Run
from .grids import MASKS, Scope, cells, depth_of, family_of, form, scope_of
from .lab import Lab, LabSettings
from .mask_runs import MaskLab, mask_scope
from .roles import under

NO_SEARCH = "none"  # in the place of the variant whose rate is taken
SELECTION = "rate: highest accuracy on the validation split, seed 0; weights: last epoch"
GIVEN = "rate: the recipe's; weights: last epoch"
STATED = "rate: the recipe's for this task; weights: last epoch"


@dataclass(frozen=True)
class Artifact:
    """An entry of plan.yaml; what the fields hold is said at its head."""

    id: str
    made: tuple[str, ...]
    studies: dict = field(default_factory=dict)
    data: tuple[str, ...] = ()
    networks: tuple[str, ...] = ()
    masks: tuple[str, ...] = ()
    command: str = ""
    note: str = ""

    @property
    def paper(self) -> str:
        """The slug of its paper."""
        return self.id.partition(".")[0]


@dataclass(frozen=True)
class Cell:
    """What stands in one place of a table: a method on a task, once a seed."""

    study: str
    variant: str
    run: Run  # backbone, data, method and its options; seed 0, and no rate yet
    recipe: str  # of recipes.yaml
    profile: str
    seeds: tuple[int, ...]
    grid: str  # which of the recipe's searches is done with seed 0; "": none, its own rate is taken
    like: Run | None  # the run whose search gives the rate, where it is not this cell's own
    selection: str


@dataclass(frozen=True)
class Planned:
    """One training. `key` tells two of them apart, whatever study they come from."""

    study: str
    variant: str
    run: Run  # of a search with the rate that is tried; else without, and `ready` gives it
    recipe: str
    profile: str
    stage: str  # "search", of which the best is the cell's run of seed 0, or "final"
    # of a final run: the run whose search gives its rate; None: the recipe's rate
    like: Run | None = None

    @cached_property
    def key(self) -> tuple[str, str, str]:
        """Stage, recipe and run."""
        return self.stage, self.recipe, repr(self.run)


@functools.cache
def written() -> dict:
    """plan.yaml."""
    return load_yaml(paths.MANIFESTS / "plan.yaml")


@functools.cache
def artifacts() -> dict[str, Artifact]:
    """What makes each artifact of the papers, by its id."""
    found = written()["artifacts"]
    lists = ("made", "data", "networks", "masks")
    return {
        id: Artifact(
            id, **{key: tuple(value) if key in lists else value for key, value in entry.items()}
        )
        for id, entry in found.items()
    }


def artifact(id: str) -> Artifact:
    """One of `artifacts`.

    Raises:
        BadInput: there is none of that id; the message names the nearest.
    """
    known = artifacts()
    if id not in known:
        near = difflib.get_close_matches(str(id), known, n=1, cutoff=0)[0]
        raise BadInput(
            f"unknown artifact {id!r}. Did you mean {near!r}? `visprompt artifacts` lists "
            f"all {len(known)}."
        )
    return known[id]


WAYS = {  # of plan.yaml, in words
    "runs": "trainings",
    "weights": "a look at networks and images, without training",
    "masks": "trainings of segmentation",
    "counted": "counting on architectures",
    "measured": "measuring on the machine at hand",
    "theory": "its page's own experiments",
    "printed": "printed cells",
    "drawn": "a drawing",
}


def told(entry: Artifact) -> str:
    """What makes an artifact, in words."""
    return ", ".join(WAYS[way] for way in entry.made)


@functools.cache
def notebooks() -> dict[str, str]:
    """Artifact -> the notebook that shows it."""
    pages = load_yaml(paths.MANIFESTS / "notebooks.yaml")
    return {id: name for name, entry in pages.items() for id in entry["artifacts"]}


BENCH = 'make bench ARGS="--device cuda"'


def command(id: str, profile: str = "paper") -> str:
    """The commands that make an artifact in a profile, one a line. FOLDER stands for the folder of
    the data sets."""
    entry, name, quick = artifact(id), notebooks()[id], profile == "quick"
    if entry.command and not quick:
        return entry.command
    whole = f'make notebook NAME={name} PROFILE={profile} ARGS="-p data_dir FOLDER'
    if "runs" in entry.made and not quick:
        # that have no address
        files = sorted({cell.run.backbone for cell in cells_of(id)} & {*embedded.from_files()})
        given = " ".join(f"{file}=FILE" for file in files)
        lines = [
            f"visprompt study {id} --profile {profile} --data-dir FOLDER"
            + f" --weights {given}" * bool(given)
        ]
        if name.startswith(tuple(written()["shown"])):
            lines.append(whole + f" -p weights '[{given}]'" * bool(given) + " -p studies '[]'\"")
        return "\n".join(lines + [BENCH] * ("measured" in entry.made))
    if (entry.data or entry.networks) and not quick:
        return f'{whole}"'
    profiled = "" if quick or "theory" not in entry.made else f" PROFILE={profile}"
    return f"make notebook NAME={name}{profiled}" + (
        ' ARGS="-p larger True"' if name in written()["larger"] else ""
    )


def cells_of(id: str, profile: str = "paper", scope: Scope | None = None) -> list[Cell]:
    """The cells of an artifact in a profile, each once; none where nothing is trained for it.

    Args:
        scope: a narrower scope than the profile's.

    Raises:
        BadInput: unknown artifact or profile.
    """
    entry, scope = artifact(id), scope or whole_scope(profile)
    found = [
        cell
        for name, what in entry.studies.items()
        for cell in study_cells(name, what, entry.paper, scope)
    ]
    return list({(cell.recipe, repr(cell.run), repr(cell.like)): cell for cell in found}.values())


def study_cells(name: str, what: dict, paper: str, scope: Scope) -> list[Cell]:
    """The cells of a study that `what`, an entry of plan.yaml, takes, with the recipe of a
    paper."""
    recipe, seeds = conditions(paper, scope.profile)
    scope = under(recipe, scope)
    tasks = (
        None
        if "tasks" not in what
        else {task for part in what["tasks"] for task in scope.tasks_for(part)}
    )
    only = set(what.get("only", ())) & {
        task for part in scope.tasks for task in scope.tasks_for(part)
    }
    networks = (
        None
        if "backbones" not in what
        else {scope.backbones.get(part) for part in what["backbones"]}
    )
    found = []
    for variant, run, rate_of in all_cells(name, scope):
        if (tasks is not None and run.task not in tasks) or (only and run.task not in only):
            continue
        if (networks is not None and run.backbone not in networks) or variant in what.get(
            "without", ()
        ):
            continue
        if variant not in what.get("variants", [variant]) or run.method not in what.get(
            "methods", [run.method]
        ):
            continue
        stated = lab_of(recipe).resolve(run).stated
        none = stated or rate_of in (None, NO_SEARCH)
        like = None if none else nearest_search(run, rate_of, scope)
        searched = like or (rate_of is None and not stated)
        grid = LabSettings().search if searched else ""
        how = SELECTION if searched else STATED if stated else GIVEN
        found.append(Cell(name, variant, run, recipe, scope.profile, seeds, grid, like, how))
    return found


def mask_cells(id: str, profile: str = "paper") -> list[Cell]:
    """The cells of segmentation that an artifact shows."""
    profile, entry = "quick" if profile == "quick" else "paper", artifact(id)
    lab, scope = mask_lab(profile), mask_scope(profile)
    shown = scope.tasks[MASKS] if profile == "quick" else entry.data
    searched = len(lab.profile["factors"]) > 1
    how = (LabSettings().search, SELECTION) if searched else ("", GIVEN)
    seeds = tuple(lab.profile["seeds"])
    return [
        Cell(MASKS, variant, run, MASKS, profile, seeds, how[0], None, how[1])
        for variant, run, _ in cells(MASKS, scope)
        if variant in entry.masks and run.task in shown
    ]


def recipes() -> dict[str, str]:
    """Paper -> the recipe of its runs, of the papers that have runs."""
    entry = written()["papers"]
    return {slug: entry[slug]["recipe"] for slug in papers() if slug in entry}


def conditions(paper: str, profile: str) -> tuple[str, tuple[int, ...]]:
    """The recipe and the seeds of a paper's runs in a profile."""
    entry = written()["papers"]
    if profile == "quick":
        return "quick", tuple(range(entry["quick"]["seeds"]))
    chosen = entry[choose("paper with runs", paper, entry)]
    return chosen["recipe"], tuple(range(chosen["seeds"]))


def nearest_search(run: Run, variant: str, scope: Scope) -> Run | None:
    """The run whose search gives the rate of another: a variant of the benchmark on the nearest
    backbone that is searched.

    As in `grids.with_rates`: a larger masked autoencoder takes the rate of the smaller one, other
    backbones that of the supervised one. None where the task is not searched; then the recipe's
    rate is taken.
    """
    parts = {name: part for part, name in scope.backbones.items()}
    given = dict(study_form("benchmark", scope.profile)["variants"][variant])
    method = given.pop("method")
    given = {key: scope.prompts.get(value, value) for key, value in given.items()}
    near = "mae" if "mae" in parts[run.backbone] else "supervised"
    for backbone in (run.backbone, scope.backbones.get(near), scope.backbones.get("supervised")):
        like = Run(backbone, run.task, method, settings=given)
        if repr(like) in searched_runs(scope):
            return like
    return None


@functools.cache
def searched_runs(scope: Scope) -> set[str]:
    """The runs of the benchmark, under every pre-training, that have a search of their own."""
    scope = replace(scope, only_tasks=(), only_methods=())
    every = [cell for name in ("benchmark", "pretraining") for cell in all_cells(name, scope)]
    return {repr(run) for _, run, rate_of in every if rate_of is None}


used_whole = functools.cache(catalogue.used_whole)
averages = functools.cache(embedded.averages)


class Outline(Case):
    """A case of which nothing is loaded: val is taken to be cut out of the authors' train."""

    val_of_train: ClassVar[bool] = True

    @cached_property
    def whole(self) -> bool:
        return used_whole(self.run.task)

    @property
    def averages(self) -> bool:
        return averages(self.run.backbone)

    @cached_property
    def recipe(self) -> Recipe:
        run, read = self.run, self.lab.read
        more = repr((run.changes, self.of_task[1]))
        kind = self.backbone.family, self.averages
        key = kind, run.method, self.group, run.rate, more
        if key not in read:
            read[key] = super().recipe
        return read[key]


class Paper(Lab):
    """A lab that loads nothing: of a backbone it knows the family, and it reads each recipe
    once."""

    def __init__(self, bench: LabSettings):
        super().__init__(bench)
        self.read: dict[tuple, Recipe] = {}

    def backbone(self, name: str, scratch: bool = False):
        return SimpleNamespace(family=family_of(name), depth=0)

    def group(self, task: str) -> str:
        return groups().get(task, "other")

    def resolve(self, run: Run) -> Outline:
        return Outline(run, self)


@functools.cache
def lab_of(recipe: str) -> Paper:
    """The lab of a recipe that loads nothing."""
    return Paper(LabSettings(recipe))


mask_lab = functools.cache(MaskLab)


@functools.cache
def groups() -> dict[str, str]:
    """The group of every task, of the papers and embedded."""
    found = {
        task: about["group"]
        for one in catalogue.datasets().values()
        for task, about in one.tasks.items()
    }
    return found | {task: about["group"] for task, about in embedded_tasks().items()}


@functools.cache
def all_cells(name: str, scope: Scope) -> list[tuple[str, Run, str | None]]:
    """The cells of a study; see `grids.cells`."""
    return cells(
        name,
        scope,
        depth_of("supervised", scope) if "blocks" in study_form(name, scope.profile) else None,
    )


study_form = functools.cache(form)
whole_scope = functools.cache(scope_of)


def runs_of(found: Iterable[Cell]) -> list[Planned]:
    """The trainings that cells take, each once; a search comes before the runs that need its rate.

    The best run of a search is the cell's run with seed 0, unless final runs are trained on the
    validation images too.
    """
    runs = []
    for cell in found:
        searched = cell.like or cell.run
        lab = mask_lab(cell.profile) if cell.study == MASKS else lab_of(cell.recipe)
        if cell.grid:
            runs += [planned(cell, tried, "search") for tried in lab.trials(searched)]
        # whose seed 0 is one of the search
        own = cell.grid and cell.like is None and not lab.resolve(cell.run).joined
        for seed in cell.seeds[1:] if own else cell.seeds:
            runs.append(
                planned(
                    cell, replace(cell.run, seed=seed), "final", searched if cell.grid else None
                )
            )
    return list({run.key: run for run in runs}.values())


def planned(cell: Cell, run: Run, stage: str, like: Run | None = None) -> Planned:
    """A training of a cell."""
    return Planned(cell.study, cell.variant, run, cell.recipe, cell.profile, stage, like)
