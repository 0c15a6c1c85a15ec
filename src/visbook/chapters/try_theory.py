"""The cell "Try it" of the pages on theory: a few trials of a toy model, trained in seconds, beside
the page's own."""

from dataclasses import replace

from visprompt.errors import choose
from visprompt.records import Record

from ..theory import ap_toy, shallow_vit
from . import ap_theory_runs, shallow_runs
from .try_it import shown

MOST = 2_000  # steps


def try_toy(
    toy: ap_theory_runs.ToyRuns, layer: int = 2, tokens: int = 8, trials: int = 8, **changes
) -> None:
    """Train AP's toy model and show the steps that it needed beside the page's at the same P.

    Args:
        changes: other fields of `ap_toy.Settings`, such as `noise=0.5`.

    Raises:
        BadInput: a field or a value that the model does not have.
    """
    check_fields(changes, ap_toy.Settings)
    settings = ap_toy.Settings(tokens=tokens, layer=layer, **{"max_steps": MOST, **changes})
    record = ap_theory_runs.toy_record([settings], list(range(trials)), False, True)
    rows = [row("this run", said(changes), record.values["cells"][0]["steps"])]
    page = toy.trials(ap_theory_runs.MAIN, layer, "steps").get(tokens)
    rows += [row("on this page", "the page's own", page)] if page else []
    shown(f"Layer {layer}, P = {tokens}", rows, record)


def try_vit(
    runs: shallow_runs.Runs,
    like: str,
    cell: int = 0,
    *,
    neurons: int = 100,
    trials: int = 4,
    **changes,
) -> None:
    """Train the shallow ViT and show the steps that it needed beside the page's.

    Args:
        like: the name of a record of the page, of which a cell is changed.
        changes: fields of `shallow_vit.Settings`, such as `relevant=0.3`.

    Raises:
        BadInput: a field or a value that the model does not have.
    """
    check_fields(changes, shallow_vit.Settings)
    record = runs[choose("record of this page", like, runs.made)]
    usual = record.settings["cells"][cell]
    most = min(usual["max_steps"], MOST)
    job = shallow_runs.scan([{**usual, "max_steps": most, **changes, "neurons": neurons}])
    mine: Record = job(replace(runs.page.settings, seeds=list(range(trials))))
    rows = [
        vit_row("this run", said({**changes, "neurons": neurons}), mine.values["cells"][0]),
        vit_row("on this page", f"neurons = {usual['neurons']}", record.values["cells"][cell]),
    ]
    shown(f"α* = {usual['relevant']:g}, batches of {usual['batch']} unless changed", rows, mine)


def check_fields(changes: dict, settings: type) -> None:
    """That all names are fields of some settings.

    Raises:
        BadInput: one is not; the message names the nearest.
    """
    for name in changes:
        choose("setting", name, settings.__dataclass_fields__)


def vit_row(which: str, what: str, trials: list[dict]) -> dict:
    """Some trials of the shallow ViT as a row."""
    loss = sum(trial["loss"] for trial in trials) / len(trials)
    return row(which, what, [trial["steps"] for trial in trials]) | {"test loss": f"{loss:.4f}"}


def said(changes: dict) -> str:
    """Changed settings in words."""
    return ", ".join(f"{name} = {value!r}" for name, value in changes.items()) or "unchanged"


def row(which: str, what: str, steps: list[int | None]) -> dict:
    """Some trials as a row."""
    done = [step for step in steps if step is not None]
    middle = ap_theory_runs.median(steps)
    return {
        "": which,
        "settings": what,
        "trials": len(steps),
        "that reached the goal": len(done),
        "steps, median": "over the cap" if middle == float("inf") else f"{middle:,.0f}",
    }
