"""Kept runs on real images, as every chapter shows them."""

from __future__ import annotations

import html
import json
from collections.abc import Iterable
from typing import TYPE_CHECKING

import pandas as pd
from IPython.display import HTML, display

from visprompt import records
from visprompt.methods import METHODS
from visprompt.records import store
from visprompt.training.recipe import recorded_recipe
from visprompt.words import REAL as PROFILE

from ..pages.plots import NAMES
from ..studies import comparable, grids
from ..studies.case import rate_name
from ..studies.factors import is_of_factor
from ..studies.statistics import spread

if TYPE_CHECKING:
    from .chapter import Chapter

REAL = grids.scope_of(PROFILE).backbones["real"]  # a published ViT small enough for a processor
# AP's block in the study `real`; the others are of `real-layers`
PLACE = grids.scope_of(PROFILE).places["real"]
ABOUT = (
    "A ViT-Tiny with published ImageNet weights, on photographs. The splits may differ from "
    "VTAB-1k's, so these numbers do not compare with published ones."
)


def real_images(chapter: Chapter) -> None:
    """Show the kept runs of REAL on real images, each method at its best rate on validation, and
    how to make more."""
    display(HTML(f"<p>{ABOUT}</p>"))
    best = [at_best_rate(part) for part in alike(of_variants(kept_rows("tune", backbone=REAL)))]
    if best:
        table = pd.DataFrame([row(*found) for found in best])
        cells = table.groupby(["task", "method"])
        plain = [
            name
            for name in ("settings", "batch", "precision", "data", "weights")
            if cells[name].nunique().max() == 1
        ]
        # said below, for the table's width
        same = [name for name in ("pixels", "epochs") if table[name].nunique() == 1]
        told = "".join(f", {table[name][0]} {name}" for name in same)
        used = [record for records_, _ in best for record in records_]
        norms = [record.settings["normalisation"] for record in used]
        pixels = dict.fromkeys(
            f"mean {norm['mean']}, standard deviation {norm['std']}" for norm in norms
        )
        known = sorted(set(table.task) & set(grids.scope_of("paper").tasks["vtab"]))
        whose = (
            f"we do not know whose splits of {comparable.listed(known)} these are"
            if known
            else "not VTAB-1k's own splits"
        )
        chapter.page.present(
            table.drop(columns=[*plain, *same]),
            evidence="trend",
            records=used,
            cell="real",
            how=f"{REAL}{told}; normalised with {'; '.join(pixels)}. Data: {chapter.data(used)}; "
            f"{whose}.",
            caption="All kept runs on photographs, mean and standard deviation over seeds.",
        )
    command = (
        f"visprompt study real real-layers --profile {PROFILE} --data-dir FOLDER "
        f"--weights {REAL}=FILE --search --seeds 0 1 2 3 4"
    )
    more = "To run more of this:" if best else "No such run is kept yet. To run it:"
    display(HTML(f'<div class="vp-notrun">{more}<pre>{html.escape(command)}</pre></div>'))


def alike(kept: list[records.Record]) -> list[list[records.Record]]:
    """Runs that agree in everything but the searched rate and the seed, by task and method."""
    found, order = {}, {slug: place for place, slug in enumerate(METHODS)}
    for record in sorted(
        kept, key=lambda r: (r.settings["task"], order[r.settings["method"]], r.settings["seed"])
    ):
        searched = {rate_name(record.settings["method"]): None}
        same = {
            **record.settings,
            "recipe": recorded_recipe(record.settings) | searched,
            "seed": None,
        }
        found.setdefault(
            json.dumps([same, record.data, record.weights], sort_keys=True), []
        ).append(record)
    return list(found.values())


def of_variants(kept: list[records.Record]) -> list[records.Record]:
    """Those of the study `real`: of AP at a single block none but its place. VPT-Deep's block, too,
    is none."""
    return [
        record
        for record in kept
        if record.settings["method_settings"].get("block") in (None, PLACE)
    ]


def at_best_rate(part: list[records.Record]) -> tuple[list[records.Record], list[float]]:
    """(those with the rate that did best on validation with the first seed, the rates that were
    tried, rising).

    Of rates that did equally well it is the one that the other seeds were run with.
    """
    field = rate_name(part[0].settings["method"])
    with_rate = {}
    for record in part:
        with_rate.setdefault(record.settings["recipe"][field], []).append(record)
    first = part[0].settings["seed"]
    val = {
        rate: r.values["val"]
        for rate, mine in with_rate.items()
        for r in mine
        if r.settings["seed"] == first
    }
    best = max(val, key=lambda rate: (val[rate], len(with_rate[rate])))
    return with_rate[best], sorted(val)


def row(best: list[records.Record], tried: list[float]) -> dict:
    """A row of the table: the seeds of one method's settings on one task."""
    s = best[0].settings
    return {
        "task": s["task"],
        "method": NAMES[s["method"]],
        "settings": ", ".join(f"{k} {v}" for k, v in s["method_settings"].items() if v is not None),
        "pixels": s["image_size"],
        "epochs": s["recipe"]["epochs"],
        "batch": s["recipe"]["batch_size"],
        "precision": s["recipe"].get("precision", "float32"),
        "training images": s["train_size"],
        "data": best[0].data,
        "weights": best[0].weights,
        "learning rate": f"{s['recipe'][rate_name(s['method'])]:g}",
        "learning rates tried": ", ".join(f"{rate:g}" for rate in tried),
        "test accuracy, %": spread([record.values["test"] for record in best]),
        "seeds": len(best),
    }


def kept_rows(kind: str, *, tasks: Iterable[str] = (), **settings) -> list[records.Record]:
    """The records of a kind with these settings that the project keeps, also of data that is not on
    this machine; none of `studies.factors`, and whole seeds alone.

    Args:
        tasks: in whose folders alone to look.
    """
    kept = [
        store.read_record(path)
        for folder in store.stores()[1:]
        for path in store.files(folder, kind)
        if not tasks or {*tasks} & {*path.parts}
    ]
    kept = [r for r in kept if all(r.settings.get(key) == value for key, value in settings.items())]
    return of_whole_seeds([r for r in kept if not is_of_factor(r.about)])


def of_whole_seeds(kept: list[records.Record]) -> list[records.Record]:
    """Those of the seeds with which every method was run on each of its tasks, AP at every block:
    further seeds, of which some runs are missing, wait until they are whole."""
    seeds = {}
    for best, _ in map(at_best_rate, alike(kept)):
        s = best[0].settings
        cell = (s["method"], str(s["method_settings"].get("block")), s["task"])
        seeds.setdefault(cell, set()).update(record.settings["seed"] for record in best)
    whole = set.intersection(*seeds.values()) if seeds else set()
    return [record for record in kept if record.settings["seed"] in whole]


def photographs(precision: str = "float32", every_block: bool = False) -> pd.DataFrame:
    """A row of every kept run of the study `real`, each method at its best rate, as
    `studies.statistics.gain` takes them.

    Args:
        every_block: AP's runs of the study `real-layers` too, as variants "ap, block 0" and so on.
    """
    names = {
        settings["method"]: variant
        for variant, settings in grids.studies()["real"]["variants"].items()
    }
    tasks = grids.scope_of(PROFILE).tasks["real"]
    kept = kept_rows("tune", tasks=tasks, backbone=REAL)
    kept = [r for r in kept if r.about.get("profile") == PROFILE]
    kept = [r for r in kept if r.settings["recipe"]["precision"] == precision]
    rows = []
    for part in alike(kept):
        best, tried = at_best_rate(part)
        for record in best:
            same = {key: record.settings[key] for key in ("backbone", "task", "train_size", "seed")}
            found = {
                "test": record.values["test"],
                "val": record.values["val"],
                "record": record,
                "tried": tried,
            }
            if of_variants(part):
                rows.append({**same, "variant": names[record.settings["method"]], **found})
            if (
                every_block
                and (block := record.settings["method_settings"].get("block")) is not None
            ):
                rows.append({**same, "variant": f"ap, block {block}", "block": block, **found})
    columns = ["backbone", "task", "train_size", "seed", "variant", "block"]
    return pd.DataFrame(rows, columns=[*columns, "test", "val", "record", "tried"])
