"""The experiments of data_manifests/studies.yaml: grids of runs, and what may be said of them."""

import copy
import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import pandas as pd

from visprompt import paths
from visprompt.data.tasks import embedded_tasks, group_of
from visprompt.errors import BadInput, choose
from visprompt.manifests import load_yaml, stamp
from visprompt.methods import METHODS, method_class
from visprompt.models import embedded
from visprompt.models.backbones import load_backbone

from .case import Run
from .lab import Lab
from .sweeps import at_best_rates, row_of, sweep

MASKS = "segmentation"  # the one study that is written in a file of its own


@dataclass(frozen=True, eq=False)
class Scope:
    """Which backbones and tasks fill the roles of the studies, and how much of them is run."""

    backbones: dict[str, str]  # part -> backbone
    tasks: dict[str, list[str]]  # part -> tasks
    prompts: dict[str, int]  # "deep" and "shallow" -> prompt tokens
    profile: str = "quick"
    only_tasks: tuple[str, ...] = ()  # none but these; empty: all
    only_methods: tuple[str, ...] = ()  # likewise, slugs
    foreign: tuple[
        str, ...
    ] = ()  # of only_tasks those that no study names: run in every part, and part of none
    # part of a backbone -> the block of AP's prompt on it
    places: dict[str, int] = field(default_factory=dict)
    # likewise -> how many it has; others are asked
    blocks: dict[str, int] = field(default_factory=dict)

    def tasks_for(self, part: str) -> list[str]:
        """The tasks that are run for a part: its own, or, where there are foreign ones, what was
        asked for of both."""
        own = self.tasks.get(part, [])
        return (
            [*(task for task in own if task in self.only_tasks), *self.foreign]
            if self.foreign
            else own
        )


def scope_of(
    profile: str,
    *,
    backbone: str | None = None,
    tasks: Sequence[str] = (),
    methods: Sequence[str] = (),
) -> Scope:
    """The scope of a profile.

    Args:
        backbone: is "supervised" and AP's ViT or ResNet in place of the profile's, and no other
            role is filled.
        tasks: none but these; those that no study names, such as a folder's, are run in every part.
        methods: slugs; no variants but theirs.

    Raises:
        BadInput: unknown profile.
    """
    profiles = load_yaml(paths.MANIFESTS / "studies.yaml")["profiles"]
    entry = profiles["paper" if profile == "rehearsal" else choose("profile", profile, profiles)]
    backbones = (
        entry["backbones"] if backbone is None else dict.fromkeys(roles_of(backbone), backbone)
    )
    own = {task for part in entry["tasks"].values() for task in part}
    foreign = tuple(task for task in tasks if task not in own)
    known = (entry.get("places", {}), entry.get("blocks", {})) if backbone is None else ({}, {})
    return Scope(
        backbones,
        entry["tasks"],
        entry["prompts"],
        profile,
        tuple(tasks),
        tuple(methods),
        foreign,
        *known,
    )


def check_foreign(scope: Scope, data_dir: str | None) -> None:
    """That the tasks which no study names are embedded ones or folders.

    Raises:
        BadInput: one is neither; the message names the nearest match.
    """
    folder = Path(data_dir) if data_dir else None
    there = (
        [path.name for path in folder.iterdir() if path.is_dir()]
        if folder and folder.is_dir()
        else []
    )
    for task in scope.foreign:
        named = [task for part in scope.tasks.values() for task in part]
        choose(
            "task" if folder else "task (a folder of images also needs --data-dir)",
            task,
            dict.fromkeys([*embedded_tasks(), *named, *there]),
        )


def studies() -> dict[str, dict]:
    """All studies by name, as written: the book's, and those of own_studies.yaml in the folder."""
    found, own = load_yaml(paths.MANIFESTS / "studies.yaml")["studies"], own_file()
    return found | load_yaml(own)["studies"] if own.is_file() else found


def own_file() -> Path:
    """Where studies of one's own are: outside the repository, in the folder that one works in."""
    return paths.ROOT / "own_studies.yaml"


@functools.lru_cache(maxsize=1)
def written(*changed: tuple | None) -> dict[str, dict]:
    """The studies of a state of the files; to be read only, since copies of all take a while."""
    return studies()


def form(name: str, profile: str) -> dict:
    """A study as a profile has it: what stands below `paper` holds in every profile but quick.

    Returns:
        its entry, with "tasks" and "prepared_on" as lists of parts.

    Raises:
        BadInput: no study has that name.
    """
    known = written(stamp(paths.MANIFESTS / "studies.yaml"), stamp(own_file()))
    if name == MASKS:
        variants = load_yaml(paths.MANIFESTS / "segmentation.yaml")["variants"]
        known = {MASKS: {"backbones": ["supervised"], "tasks": MASKS, "variants": variants}}
    entry = copy.deepcopy(known[choose("study", name, known)])
    own = entry.pop("paper", {})
    if profile != "quick":
        entry |= own | {"variants": entry["variants"] | own.get("variants", {})}
    for key in [key for key in ("tasks", "prepared_on") if isinstance(entry.get(key), str)]:
        entry[key] = [entry[key]]
    return entry


def tasks_of(name: str, scope: Scope) -> list[str]:
    """The tasks of a study, each once."""
    return list(
        dict.fromkeys(
            task for part in form(name, scope.profile)["tasks"] for task in scope.tasks_for(part)
        )
    )


@functools.cache
def family_of(backbone: str) -> str:
    """ "vit", "resnet" or "swin", by the backbone's name, so that nothing is built to plan."""
    kind = (
        embedded.networks()[backbone]["timm_class"] if backbone in embedded.networks() else backbone
    )
    return next((family for family in ("resnet", "swin") if kind.lower().startswith(family)), "vit")


def roles_of(backbone: str) -> tuple[str, str]:
    """The roles that a backbone of one's own takes."""
    return "supervised", "ap-resnet" if family_of(backbone) == "resnet" else "ap-vit"


def carries(backbone: str, method: str) -> bool:
    """Whether a method is defined for a backbone's family."""
    return family_of(backbone) in method_class(method).families


def depth_of(part: str, scope: Scope) -> int:
    """Blocks of the backbone in a role, from its shapes alone where the profile does not
    say."""
    return scope.blocks.get(part) or load_backbone(scope.backbones[part], device="meta").depth


def variants_of(study: dict, depth: int | None, part: str, scope: Scope) -> dict[str, dict]:
    """The variants of a study on a backbone, those of its blocks after those that are written."""
    found = dict(study["variants"])
    for block in range(depth or 0) if "blocks" in study else ():
        base = {"method": study["blocks"], "prompt_tokens": "deep", "guided_from": block}
        found |= {
            f"block {block} alone": {**base, "guided_to": block},
            f"blocks {block} to the last": {**base, "rate_of": True},
        }
    for method in study.get("each_block", ()):
        found |= {
            f"{method}, block {block}": {"method": method, "block": block}
            for block in range(depth_of(part, scope))
        }
    return found | (pairs(part) if study.get("differences") else {})


def pairs(part: str) -> dict[str, dict]:
    """The variants of differences.yaml on a part: each method as its paper has it, and with each
    option, at one rate."""
    found = {}
    for slug, entries in load_yaml(paths.MANIFESTS / "differences.yaml").items():
        for entry in entries:
            if "option" in entry and entry.get("backbone", "supervised") == part:
                off, on = pair(slug, entry)
                beside, option = entry.get("beside", {}), entry["option"]
                found[off] = {"method": slug, "recipe": beside}
                found[on] = {"method": slug, **option}
                found[on]["recipe"] = beside | option.get("recipe", {})
    return found


def pair(slug: str, entry: dict) -> tuple[str, str]:
    """The two variants of a difference: without its option and with it."""
    beside = ", ".join(f"{name} {value}" for name, value in entry.get("beside", {}).items())
    return ", ".join(filter(None, [slug, beside])), f"{slug}: {entry['what']}"


def cells(name: str, scope: Scope, depth: int | None = None) -> list[tuple[str, Run, str | None]]:
    """The cells of a study: (variant, run with seed 0, variant of the benchmark whose rate it takes
    or None).

    Args:
        depth: blocks of the backbone, for a study that goes through them.

    Raises:
        BadInput: no study has that name.
    """
    study, benchmark = form(name, scope.profile), form("benchmark", scope.profile)["variants"]
    others = [
        other for part in study.get("prepared_on", ()) for other in scope.tasks_for(part)
    ] or [None]
    found = []
    for part in [part for part in study["backbones"] if part in scope.backbones]:
        variants = variants_of(study, depth, part, scope)
        words = scope.prompts | {"place": scope.places.get(part)}
        for task in tasks_of(name, scope):
            sizes = study.get("train_sizes", {}).get(scope.profile, [None])
            sizes = sizes.get(task, [None]) if isinstance(sizes, dict) else sizes
            for variant, given in variants.items():
                if (scope.only_tasks and task not in scope.only_tasks) or not carries(
                    scope.backbones[part], given["method"]
                ):
                    continue
                if scope.only_methods and given["method"] not in scope.only_methods:
                    continue
                given = {
                    key: words.get(value, value) if isinstance(value, str) else value
                    for key, value in given.items()
                }
                given = {
                    key: tuple(value) if isinstance(value, list) else value
                    for key, value in given.items()
                }
                method, scratch = given.pop("method"), given.pop("scratch", False)
                changes = given.pop("recipe", {})
                rate_of = given.pop("rate_of", study.get("rate_of"))
                if rate_of is True:
                    rate_of = next((v for v, g in benchmark.items() if g["method"] == method), None)
                for size in sizes:
                    for other in others:
                        run = Run(
                            scope.backbones[part], task, method, 0, size, given, None, scratch
                        )
                        run = replace(run, prepared_on=other, changes=changes)
                        found.append((variant, run, rate_of))
    return found


def check_cells(names: Sequence[str], scope: Scope, data_dir: str | None = None) -> None:
    """That what was asked for leaves something to run.

    Args:
        names: the studies that were asked for, each of which must have cells; none: all of them
            together must.

    Raises:
        BadInput: an unknown study, task or method, or nothing to run; the message says what there
            is.
    """
    for method in scope.only_methods:
        choose("method", method, METHODS)
    check_foreign(scope, data_dir)
    every = replace(scope, only_tasks=(), only_methods=(), foreign=())
    has = {name: [run for _, run, _ in cells(name, every, 1)] for name in names or studies()}
    for kind, given in (("task", scope.only_tasks), ("method", scope.only_methods)):
        known = [*scope.foreign, *(getattr(run, kind) for runs in has.values() for run in runs)]
        for missing in [
            name for name in given if len(known) > len(scope.foreign) and name not in known
        ]:
            where = " or ".join(names) or "any study"
            raise BadInput(
                f"no {kind} {missing} in {where}; there is {', '.join(dict.fromkeys(known))}."
            )
    empty = [name for name in has if not cells(name, scope, 1)]
    for name in empty if names else empty[: len(empty) == len(has)]:
        parts = form(name, scope.profile)["backbones"]
        if not has[name]:
            why = (
                f"its backbones have the roles {', '.join(parts)}, and only "
                f"{', '.join(scope.backbones)} is filled"
            )
        else:
            tasks, methods = (
                dict.fromkeys(getattr(run, kind) for run in has[name])
                for kind in ("task", "method")
            )
            why = f"it has the tasks {', '.join(tasks)} and the methods {', '.join(methods)}"
        raise BadInput(f"nothing to run of study {name}: {why}.")


def unable(run: Run, lab: Lab) -> str:
    """Why a run is not possible on the data at hand; "" where it is."""
    try:
        lab.prepare(run)
    except BadInput as error:
        return f"{run.method} on {run.task}, {run.backbone}: {error}"
    return ""


def looked_up(find: Callable, run: Run, lab: Lab):
    """(what `find` gives, a look-up of a run, and why the run is not possible on the data at hand,
    "" where it is).

    Raises:
        BadInput: the look-up failed though the run is possible, such as on a damaged record.
    """
    try:
        return find(), ""
    except BadInput:
        if why := unable(run, lab):
            return None, why
        raise


def possible(found: list[tuple], lab: Lab) -> tuple[list[tuple], dict[str, list[str]]]:
    """The cells whose data and weights are at hand, and for each thing that is lacking the variants
    that need it."""
    there, lacking = [], {}
    for cell in found:
        if why := lab.resolve(cell[1]).lacking:
            lacking.setdefault(why, []).append(cell[0])
        else:
            there.append(cell)
    return there, lacking


def with_rates(
    name: str,
    scope: Scope,
    lab: Lab,
    compute: bool,
    part: str = "1/1",
    left_out: dict | None = None,
) -> list[tuple[str, Run]]:
    """The cells of a study at their learning rates: (variant, run with seed 0). See
    `sweeps.at_best_rates`.

    Args:
        left_out: takes up the cells whose data or weights are not at hand, variants by the reason;
            None: none is left out.

    A cell that the data at hand cannot carry keeps the recipe's rate.
    """
    number, parts = share(part)
    depth = None
    if "blocks" in form(name, scope.profile):
        try:
            if left_out is not None and not possible(cells(name, scope, 1), lab)[0]:
                raise BadInput("no weights need be fetched for this")
            depth = lab.backbone(scope.backbones["supervised"]).depth
        except BadInput:
            depth = 1  # so that there are cells, which say why they are not possible
    found = cells(name, scope, depth)[number - 1 :: parts]
    if left_out is not None:
        found, lacking = possible(found, lab)
        left_out |= lacking
    searched = {i: run for i, (_, run, rate_of) in enumerate(found) if rate_of is None}
    if compute:
        at_best_rates(
            [run for run in searched.values() if not unable(run, lab)],
            lab,
            True,
            f"search of {name}",
        )

    result, known = [], {}
    for i, (variant, run, rate_of) in enumerate(found):
        if rate_of not in (None, "none"):
            run = at_rate_of_benchmark(run, rate_of, scope, lab, known)
        elif i in searched:
            run = at_searched_rate(run, run, lab)
        result.append((variant, run))
    return result


def at_searched_rate(run: Run, like: Run, lab: Lab) -> Run:
    """A run at what the search of another, or its own, gave; as it is where that search is not
    whole."""
    best, _ = looked_up(lambda: at_best_rates([like], lab, False)[0], like, lab)
    best = best or like
    return replace(run, rate=best.rate, changes=best.changes)


def at_rate_of_benchmark(
    run: Run, variant: str, scope: Scope, lab: Lab, known: dict[str, Run]
) -> Run:
    """A run at the search's choice for a variant of the benchmark on its backbone and task, else on
    the nearest backbone.

    Args:
        known: takes up what was looked up.
    """
    if lab.resolve(run).stated:
        return run
    parts = {name: part for part, name in scope.backbones.items()}
    near = "mae" if "mae" in parts[run.backbone] else "supervised"
    given = {**studies()["benchmark"]["variants"][variant]}
    method = given.pop("method")
    given = {key: scope.prompts.get(value, value) for key, value in given.items()}
    for backbone in dict.fromkeys(
        [run.backbone, scope.backbones.get(near), scope.backbones.get("supervised")]
    ):
        like = Run(backbone, run.task, method, settings=given)
        if repr(like) not in known:
            known[repr(like)] = at_searched_rate(like, like, lab)
        best = known[repr(like)]
        if best.rate is not None:
            return replace(run, rate=best.rate, changes=best.changes)
    return replace(run, rate=None, changes={})


def study(
    name: str,
    scope: Scope,
    lab: Lab,
    *,
    seeds: Sequence[int] = (),
    kept_seeds: Sequence[int] = (),
    part: str = "1/1",
    search: bool = False,
    lenient: bool = False,
) -> pd.DataFrame:
    """Do a study's runs with `seeds` that have no record yet, look up those with `kept_seeds`, and
    return all.

    Args:
        part: "2/3" takes the second of every three cells.
        search: do the search for learning rates too; else rates come from the records that there
            are.
        lenient: leave out the cells whose data or weights are not at hand.

    Returns:
        The columns of `sweeps.sweep`, "variant" and "group"; empty where there is no record. Its
        `attrs["left_out"]` has the variants whose look-up is not possible on the data at hand, by
        the reason.

    Raises:
        BadInput: unknown study, an impossible part, or runs that failed.
    """
    rows, left_out = [], {}
    known = with_rates(name, scope, lab, search, part, left_out if lenient else None)
    kept_seeds = [seed for seed in kept_seeds if seed not in seeds]
    wanted = [(variant, replace(run, seed=seed)) for seed in seeds for variant, run in known]
    if wanted:
        frame = sweep([run for _, run in wanted], lab, name)
        rows = [
            {**row, "variant": variant}
            for (variant, _), row in zip(wanted, frame.to_dict("records"), strict=True)
        ]
    for variant, run in known:
        for seed in kept_seeds:
            run = replace(run, seed=seed)
            record, why = looked_up(lambda run=run: lab.do(run, compute=False), run, lab)
            if record is None and seed == kept_seeds[0]:
                why = why or unable(run, lab)
            if why:  # the other seeds are not possible either
                left_out.setdefault(why, []).append(variant)
                break
            if record is not None:
                rows.append({**row_of(run, record), "variant": variant})
    frame = pd.DataFrame(rows)
    if len(frame):
        frame["group"] = frame.task.map(group_of)
    frame.attrs["left_out"] = left_out
    return frame


def share(part: str) -> tuple[int, int]:
    """The two numbers of "2/3".

    Raises:
        BadInput: anything else.
    """
    try:
        number, parts = (int(n) for n in part.split("/"))
    except ValueError:
        number, parts = 0, 0
    if not 1 <= number <= parts:
        raise BadInput(f"part must be written 1/2, the first of two, not {part!r}.")
    return number, parts
