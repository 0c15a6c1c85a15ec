"""A reader's own accuracy beside what the papers print and what this project ran: the data for the
script."""

import functools
import html
import json
import re
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path

import pandas as pd

from visprompt import papers

from ..auditing.quoted import named_cells
from ..chapters import why_different
from ..chapters.real import photographs
from ..pages.friendly import counted
from ..pages.judging import badge
from ..pages.page import with_age
from ..pages.plots import NAMES
from ..studies import grids
from ..studies.lab import Lab, LabSettings
from ..studies.roles import recipe_scope
from .tables import link, printed_name, table

# in which a method has its usual settings
STUDIES, SEEDS = (("tasks", "benchmark", "pretraining"), range(5))
# another method of the same letters, of which iVPT prints numbers
SENSITIVITY = "SPT (sensitivity-aware tuning)"
PERCENT = 3  # the place of the number in a line
# printed word -> slug
OTHERWISE = {"linearprobing": "linear-probe", "fullfinetuning": "full-finetune"}
PRINTED = {  # task -> the papers' name, where letters and digits do not tell
    "kitti": "KITTI/distance",
    "dsprites_label_x_position": "dSprites/location",
    "dsprites_label_orientation": "dSprites/orientation",
}


def key(text: str) -> str:
    """Letters and digits of a name, by which a task or method is known under its several
    spellings."""
    return re.sub("[^a-z0-9]", "", text.lower())


def printed(results: dict) -> list[list]:
    """[data set, method, network, percent, spread, where] of the papers' accuracies; tables that
    agree share a line."""
    slugs = OTHERWISE | {key(slug): slug for slug in NAMES}
    short = {name: paper["short"] for name, paper in papers.papers().items()}
    tables, where = papers.artifacts(), defaultdict(list)
    frame = named_cells()
    for row in frame[frame.measure == "accuracy"].itertuples():
        if row.cell.amount is None:
            continue
        told = tables.loc[row.artifact]
        network = f"{row.backbone}, {row.pretraining}{', ' + row.setting if row.setting else ''}"
        there = where[
            row.data,
            NAMES.get(
                slugs.get(key(row.method)), SENSITIVITY if row.method == "SPT" else row.method
            ),
            network,
            row.cell.amount.value,
        ]
        there.append(link(row.artifact, f"{short[told['paper']]}, {printed_name(told)}", results))
    return [[*about, "", "; ".join(dict.fromkeys(links))] for about, links in where.items()]


@functools.cache
def drawn_runs(study: str) -> pd.DataFrame:
    """The kept runs of a study on embedded tasks."""
    return grids.study(study, recipe_scope("quick", "quick"), Lab(LabSettings()), kept_seeds=SEEDS)


def ours() -> list[list]:
    """The same of the kept runs, at the rates that their searches chose: the mean over seeds and
    its standard deviation."""
    rows = []
    for study in STUDIES:
        frame = drawn_runs(study)
        if len(frame):
            for (task, variant, backbone), group in frame.groupby(
                ["task", "variant", "backbone"], sort=False
            ):
                spread = f"{group.test.std():.1f}" if len(group) > 1 else ""
                how = f"Kept runs, {counted(len(group), 'seed')}."
                where = f"{badge('trend')} {html.escape(with_age(how, [*group.record]))}"
                rows.append(
                    [task, variant, backbone, round(float(group.test.mean()), 1), spread, where]
                )
    return [list(row) for row in dict.fromkeys(map(tuple, rows))]


def on_photographs(printed_names: Iterable[str]) -> list[list]:
    """The same of the kept runs on photographs; a data set that papers print has their name."""
    known, rows, frame = {key(name): name for name in printed_names}, [], photographs()
    for (task, variant, backbone), group in frame.groupby(["task", "variant", "backbone"]):
        settings = group.record.iloc[0].settings
        how = (
            f"Kept runs on photographs of {settings['image_size']} pixels, "
            f"{settings['train_size']} training images, {settings['recipe']['epochs']} epochs, "
            f"{len(group)} {'seed' if len(group) == 1 else 'seeds'}."
        )
        where = (
            f"{badge('trend')} {html.escape(with_age(how, [*group.record]))} "
            f'<a href="which-method.html">Beside other methods</a>'
        )
        spread = f"{group.test.std():.1f}" if len(group) > 1 else ""
        name = known.get(key(task), task)
        mean = round(float(group.test.mean()), 1)
        rows.append([name, variant, backbone, mean, spread, where])
    return rows


def compare(results: dict, root: Path) -> str:
    """Where a reader pastes a record or types a number, as HTML; without scripts it says where the
    numbers are."""
    # other profiles make no kept runs
    rows = printed(results)
    if results["profile"] == "quick":
        rows += ours() + on_photographs([*dict.fromkeys(row[0] for row in rows)])
    # each once: a third of the bytes
    words = [*dict.fromkeys(cell for row in rows for cell in row if isinstance(cell, str))]
    number = {word: place for place, word in enumerate(words)}
    short = [
        [cell if place == PERCENT else number[cell] for place, cell in enumerate(row)]
        for row in rows
    ]
    given = {"rows": short, "words": words, "methods": NAMES, "tasks": PRINTED}
    given = json.dumps(given, separators=(",", ":")).replace("<", r"\u003c")
    told = (
        "Without scripts, the same numbers are in the tables of each paper's numbers, "
        "and ours in its chapter."
    )
    return (
        f'<div class="vp-compare"><script '
        f'type="application/json">{given}</script><p>{html.escape(told)}</p></div>'
    )


def moved(results: dict, root: Path) -> str:
    """What clearly moves a method by more than another seed, the largest first."""
    methods = [*why_different.LOOKS]
    rows = [
        [html.escape(row.entry["changed"]), *(why_different.cell(row, name) for name in methods)]
        for row in why_different.clear(why_different.rows())
    ]
    if not rows:
        return "<p>No run with such a change is kept.</p>"
    how = f"{badge('trend')} Points of test accuracy, with intervals of 95 % for other seeds."
    return f"<p>{how}</p>" + table(
        ["What is changed", *(f"{name}, points" for name in methods)], rows
    )


MAKERS = {"compare": compare, "moved": moved}
