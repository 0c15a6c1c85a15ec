"""What a page shows of runs is what the plan lists: neither has a run that the other lacks."""

import re
from dataclasses import replace
from types import SimpleNamespace

import jupytext
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest

from visbook.chapters import chapter as chapters
from visbook.chapters import small_and_real
from visbook.pages import page as pages
from visbook.studies import grids, plan
from visprompt import paths
from visprompt.data.tasks import group_of

HEADING = re.compile(r"^# \(([a-z]+\.[a-z0-9-]+)\)=$", re.MULTILINE)
PAGES = sorted({plan.notebooks()[id] for id, entry in plan.artifacts().items() if entry.studies})


def cell_of(run) -> str:
    """A run whatever its seed and rate."""
    settings = {key: tuple(v) if isinstance(v, list) else v for key, v in run.settings.items()}
    return repr(replace(run, seed=0, rate=None, changes={}, trial=False, settings=settings))


def row_of(variant, run, seed):
    """A made-up row of a study: no record is read, nothing is trained."""
    run = replace(run, seed=seed)
    stream = np.random.default_rng(abs(hash(repr(run))) % 2**32)
    record = SimpleNamespace(
        id=repr(run),
        run=run,
        carried=[],
        about={},
        settings={"task": run.task, "pool": 100, "backbone": run.backbone},
        versions={},
    )
    return {
        "backbone": run.backbone,
        "task": run.task,
        "method": run.method,
        "seed": seed,
        "train_size": run.train_size or 800,
        "test": 95 + stream.uniform(0, 4),
        "val": 90.0,
        "fit_seconds": 1.0,
        "parameters": 100,
        "rate": 0.1,
        "record": record,
        "run": run,
        **run.settings,
        "variant": variant,
        "group": group_of(run.task),
    }


def made_up(name, cast, lab, *, seeds=(), kept_seeds=(), **_):
    """`grids.study` with a row for every cell and two seeds."""
    cells = grids.cells(name, cast, 8)
    frame = pd.DataFrame([row_of(*cell[:2], seed) for cell in cells for seed in (0, 1)])
    frame.attrs["left_out"] = {}
    return frame


class Shown:
    """What a page shows and looks at, by the artifact under whose heading it does."""

    def __init__(self):
        self.runs = {}

    def add(self, artifact, records):
        self.runs.setdefault(artifact, {}).update(
            {cell_of(record.run): record.run for record in records if hasattr(record, "run")}
        )


@pytest.fixture
def shown(monkeypatch):
    found = Shown()
    found.heading = ""
    monkeypatch.setattr(chapters.grids, "study", made_up)
    monkeypatch.setattr(chapters.Chapter, "show_recipe", lambda *_, **__: None)
    monkeypatch.setattr(chapters.Chapter, "show_rates", lambda *_, **__: None)
    monkeypatch.setattr(small_and_real, "show", lambda *_, **__: None)

    def look(self, measurement, run, compute):
        found.add(found.heading, [SimpleNamespace(run=run)])

    monkeypatch.setattr(chapters.Chapter, "look", look)

    def show(self, artifact, thing, *, records=(), **_):
        found.add(artifact, records)
        plt.close("all")
        self.artifacts[artifact]["shows"].append("")

    monkeypatch.setattr(pages.Page, "show", show)
    for name in ("present", "judge", "not_judged", "printed", "judge_count", "checked"):
        monkeypatch.setattr(pages.Page, name, lambda *_, **__: plt.close("all"))
    return found


def run_page(name, shown):
    names = {"__name__": "__main__"}
    for cell in jupytext.read(paths.ROOT / "notebooks" / f"{name}.py").cells:
        if cell.cell_type == "markdown":
            for id in re.findall(r"^\(([a-z]+\.[a-z0-9-]+)\)=$", cell.source, re.MULTILINE):
                shown.heading = id
        else:
            exec(compile(cell.source, name, "exec"), names)


@pytest.mark.parametrize("name", PAGES)
def test_a_page_shows_the_runs_that_the_plan_lists(name, shown):
    run_page(name, shown)
    wrong = []
    for id, entry in plan.artifacts().items():
        if plan.notebooks()[id] != name or not entry.studies:
            continue
        planned = {cell_of(cell.run) for cell in plan.cells_of(id, "quick")}
        there = set(shown.runs.get(id, {}))
        for what, only in (("the plan", planned - there), ("the page", there - planned)):
            if only:
                wrong.append(
                    f"{id}: {len(only)} of {len(planned)}/{len(there)}; only {what} has {sorted(only)[0]}"
                )
    assert not wrong, "\n".join(wrong)
