"""The cell "Try it" that ends a page: one method or one toy model, trained in seconds, beside what
the book has.

What comes out is no evidence: one seed, few images, few epochs. It is a record like any other.
"""

import html
from dataclasses import replace

import pandas as pd
from IPython.display import HTML, display

from visprompt import paths
from visprompt.data.tasks import embedded_tasks
from visprompt.errors import choose
from visprompt.methods import METHODS, settings_of
from visprompt.models.embedded import networks
from visprompt.records import Record

from ..pages import plots
from ..pages.page import boxed
from ..studies import grids, statistics
from ..studies.case import Run
from ..studies.lab import Lab, LabSettings
from ..studies.roles import recipe_scope

NETWORK = "vit_micro_patch4_24"  # on which the book has most runs
SEEDS = range(5)


def try_it(
    method: str,
    task: str = "position",
    *,
    network: str = NETWORK,
    images: int | None = 200,
    epochs: int = 5,
    seed: int = 0,
    rate: float | None = None,
    **settings,
) -> None:
    """Train a method on a drawn task for seconds and show its accuracy beside the book's.

    Args:
        network: one of the book's own.
        images: number of training images; None: all 800.
        rate: learning rate; None: the recipe's.
        settings: of the method, such as `prompt_tokens=5`.

    Raises:
        BadInput: unknown method, task, network or setting.
    """
    choose("method", method, METHODS)
    choose("drawn task", task, embedded_tasks())
    choose("network", network, networks())
    if paths.REHEARSAL:
        return
    lab = Lab(LabSettings(changes={"epochs": epochs}))
    like = Run(network, task, method, settings=settings)
    record = lab.do(replace(like, seed=seed, train_size=images, rate=rate))
    told = [plots.NAMES.get(method, method), *(f"{key} = {v!r}" for key, v in settings.items())]
    mine = {
        "": "this run",
        "what": ", ".join(told),
        "trained on": f"{record.settings['train_size']} images, {epochs} epochs",
        "test accuracy, %": f"{record.values['test']:.1f}",
    }
    shown(f"Task {task}, seed {seed}", [mine, *recorded_row(like)], record)


def recorded_row(like: Run) -> list[dict]:
    """The book's mean of the same method on the same task and network, at the same settings where
    it has them; no row where it has no run."""
    scope = recipe_scope("quick", "quick", tasks=[like.task], methods=[like.method])
    found = [
        (name, variant, run)
        for name in grids.studies()
        for variant, run, _ in grids.cells(name, scope)
        if run == replace(like, settings=run.settings)
    ]
    wanted = settings_of(like.method, **like.settings)
    found.sort(key=lambda cell: settings_of(like.method, **cell[2].settings) != wanted)
    for name, variant, run in found[:1]:
        rows = grids.study(name, scope, Lab(LabSettings()), kept_seeds=SEEDS)
        rows = rows[[is_cell(row, run) for row in rows.run]] if len(rows) else rows
        if len(rows):
            first = rows.record.iloc[0].settings
            size, recipe = first["train_size"], first["recipe"]
            return [
                {
                    "": "in the book",
                    "what": f"{variant}, {len(rows)} seeds",
                    "trained on": f"{size} images, {recipe['epochs']} epochs",
                    "test accuracy, %": str(statistics.spread(rows.test)),
                }
            ]
    return []


def is_cell(run: Run, cell: Run) -> bool:
    """Whether a run is of a cell of a study, whatever its seed and its searched rate."""
    return replace(run, seed=0, rate=None, changes={}) == cell


def shown(title: str, rows: list[dict], record: Record) -> None:
    """Display what was tried above what the book has, and where the record lies."""
    table = boxed(pd.DataFrame(rows).to_html(border=0, index=False))
    note = f"{title}. No evidence: one short run. Record {record.id}."
    display(HTML(f'<div class="vp-try">{table}<p>{html.escape(note)}</p></div>'))
