"""A page shows the runs that the plan lists for an artifact, and no others.

Every notebook is run on made-up rows: no record is read and nothing is trained.
"""

import re
from collections import defaultdict
from dataclasses import replace
from types import SimpleNamespace

import jupytext
import matplotlib.pyplot as plt
import pandas as pd
import pytest

from visbook.auditing import counts
from visbook.auditing.counts import printed_counts
from visbook.chapters import ap, ap_cost, ap_peft, cost_papers, ivpt, small_and_real, try_it
from visbook.chapters.chapter import Chapter
from visbook.pages.page import Page
from visbook.studies import grids, plan
from visprompt import paths
from visprompt.data.tasks import group_of

HEADING = [""]  # the artifact whose section is run
SHOWN = {id: plan.notebooks()[id] for id, entry in plan.artifacts().items() if entry.studies}
PAGES = sorted({*SHOWN.values()})


def cell_of(run) -> str:
    """A run whatever its seed and its searched rate."""
    return repr(replace(run, seed=0, rate=None, changes={}))


def row_of(variant, run, seed, number) -> dict:
    """A made-up row of a study."""
    run = replace(run, seed=seed)
    values = {"parameters": defaultdict(lambda: 100), "loss": [2.0, 1.0, 0.5]}
    settings = {"task": run.task, "backbone": run.backbone, "pool": 100}
    record = SimpleNamespace(id=repr(run), run=run, settings=settings, values=values)
    names = ("backbone", "task", "method", "seed")
    return {name: getattr(run, name) for name in names} | {
        "train_size": run.train_size or 800,
        "test": 90 + (7 * number + seed) % 10,
        "val": 90.0,
        "parameters": 100,
        "rate": 0.1,
        "record": record,
        "run": run,
        **run.settings,
        "variant": variant,
        "group": group_of(run.task),
    }


def study(name, scope, lab, **_) -> pd.DataFrame:
    """`grids.study` with made-up rows of every cell, for three seeds."""
    cells = list(enumerate(grids.cells(name, scope, 8)))
    frame = pd.DataFrame(
        [row_of(*cell[:2], seed, number) for number, cell in cells for seed in range(3)]
    )
    frame.attrs["left_out"] = {}
    return frame


def quietly(monkeypatch) -> None:
    """Leave out what takes long on a page and shows no run of a study."""
    for module, name in ((small_and_real, "show"), (ivpt, "audit"), (ap, "judge_averages")):
        monkeypatch.setattr(module, name, lambda *_: None)
    monkeypatch.setattr(try_it, "try_it", lambda *_, **__: None)
    monkeypatch.setattr(cost_papers, "ap_shares", lambda: ([], []))
    # of one table where a page asks for all; chapters keep the one that they have imported
    assert ap_cost.printed_counts is ap_peft.printed_counts is printed_counts
    few = lambda source="ivpt.table-8": printed_counts(source)
    monkeypatch.setattr(counts, "printed_counts", few)


@pytest.fixture
def shown(monkeypatch):
    """Artifact -> the runs that are shown or looked at for it, of the pages that are run."""
    found = defaultdict(dict)

    def show(self, artifact, thing, *, records=(), **_):
        runs = [record.run for record in records if hasattr(record, "run")]
        found[artifact].update({cell_of(run): run for run in runs})
        self.artifacts[artifact]["shows"].append("")

    quietly(monkeypatch)
    monkeypatch.setattr(grids, "study", study)
    monkeypatch.setattr(Page, "show", show)
    monkeypatch.setattr(
        Chapter,
        "show",
        lambda self, artifact, thing, frame, *_, **__: (
            self.page.show(artifact, thing, records=frame.record) if len(frame) else None
        ),
    )
    monkeypatch.setattr(
        Chapter, "look", lambda self, _, run, compute: found[HEADING[0]].update({cell_of(run): run})
    )
    for kind, names in {
        Chapter: ["show_recipe", "show_rates"],
        Page: ["present", "judge", "not_judged", "printed", "judge_count", "checked", "not_run"],
    }.items():
        for name in names:
            monkeypatch.setattr(kind, name, lambda *_, **__: None)
    monkeypatch.setattr(Page, "close", lambda _: plt.close("all"))
    return found


def run_page(name: str) -> None:
    """Run the code of a notebook in the quick profile."""
    cells = jupytext.read(paths.ROOT / "notebooks" / f"{name}.py").cells
    names = {"__name__": "__main__"}
    for cell in cells:
        HEADING[:] = re.findall(r"^\((\w+\.[a-z0-9-]+)\)=$", cell.source, re.MULTILINE) or HEADING
        if cell.cell_type == "code":
            exec(compile(cell.source, name, "exec"), names)


def first_difference(id: str, runs: dict) -> str:
    """The first run that an artifact's plan or page has alone; nothing where they agree."""
    planned = {cell_of(cell.run): cell.run for cell in plan.cells_of(id, "quick")}
    for who, mine, other in (("plan", planned, runs), ("page", runs, planned)):
        for cell in (cell for cell in mine if cell not in other):
            run, size = (
                mine[cell],
                f", {mine[cell].train_size} images" * bool(mine[cell].train_size),
            )
            return f"{id}: only the {who} has {run.label}{size}"
    return ""


@pytest.mark.parametrize("name", PAGES)
def test_a_page_shows_the_runs_that_the_plan_lists(name, shown):
    run_page(name)
    found = [first_difference(id, shown[id]) for id, page in SHOWN.items() if page == name]
    assert not any(found), "; ".join(filter(None, found))


@pytest.mark.parametrize("name", PAGES)
def test_a_page_without_any_run_is_whole(name, monkeypatch):
    """Nothing is made of no row, and every artifact is shown in part or said to be not run."""

    def study(*_, **__):
        frame = pd.DataFrame()
        frame.attrs["left_out"] = {}
        return frame

    quietly(monkeypatch)
    monkeypatch.setattr(grids, "study", study)
    monkeypatch.setattr(Chapter, "look", lambda *_, **__: None)
    run_page(name)
