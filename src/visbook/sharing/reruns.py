"""Sent runs done again here, a few drawn ones, and whether they come out alike."""

import math
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from visprompt import records
from visprompt.errors import BadInput
from visprompt.records import Record, lists, store, test_images
from visprompt.training.loop import accuracy, fitting_of

from ..studies.from_record import ready
from .origins import Origins
from .possible import run_of

# What two machines may differ by. Another number of threads gives the same digits here; bf16 in the
# place of float32 moved 0.2 points of accuracy, 1.4 % of the images and 5 % of a loss.
POINTS = 1.0  # of test accuracy
IMAGES = 0.05  # share of the test images
LOSS = 0.15  # of a loss, relative, and so much more as the loss itself is small
SMALL = 0.02
VALIDATION = 3.0  # points of validation accuracy, which has fewer images


@dataclass(frozen=True)
class Rerun:
    """A sent run that was done again."""

    record: str
    run: str
    epochs: int  # that were done again
    sent: float  # accuracy in percent, of test or, after a few epochs, of validation
    here: float
    images: float  # share of test images that only one of the two has right
    why: str  # in what they differ too much; "" where they agree


class Enough(Exception):
    """The epochs that are compared are done."""


def draw(found: Sequence[Record], count: int, seed: int, origins: Origins) -> list[Record]:
    """A random few of the runs that can be done here."""
    able = [record for record in found if origins.here(record)]
    return random.Random(seed).sample(able, min(count, len(able)))


def rerun(record: Record, origins: Origins, epochs: int | None, listed: Mapping) -> Rerun:
    """Do a run again, or its first epochs.

    Args:
        listed: the list of code of the record.

    Raises:
        BadInput: its weights or images are not here.
    """
    made = ready(record, origins.files, origins.data_dir)
    whole = record.settings["recipe"]["epochs"]
    if epochs is not None and epochs < whole:
        return first_epochs(record, made, epochs)
    fitting = partial(fitting_of(made["recipe"], made["model"]), **made)
    now, ran = records.watched(fitting, [made["model"], made["model"].source])
    share = float(np.mean(test_images.unpacked(now) != record.right))
    why = apart(record, now, share)
    if not why and record.commit == store.commit():
        why = unlisted(listed, ran)
    return made_of(record, whole, record.values["test"], now["test"], share, why)


def first_epochs(record: Record, made: dict, epochs: int) -> Rerun:
    """Do the first epochs of a run again and compare the accuracy on the validation images."""
    model, task = made["model"], made["task"]

    def watch(done: int) -> None:
        if done == epochs:
            raise Enough

    try:
        fitting_of(made["recipe"], model)(**made, watch=watch)
    except Enough:
        model.eval()
    here, sent = accuracy(model, *task.val), record.values["val_by_epoch"][epochs - 1]
    why = "" if abs(here - sent) <= VALIDATION else f"validation accuracy {sent}, here {here}"
    return made_of(record, epochs, sent, here, math.nan, why)


def made_of(record: Record, epochs: int, sent, here, share: float, why: str) -> Rerun:
    """What became of a run."""
    share = 0.0 if math.isnan(share) else round(share, 4)
    return Rerun(record.id, run_of(record), epochs, sent, here, share, why)


def apart(record: Record, now: dict, share: float) -> str:
    """In what a run differs from the one here by more than two machines do; "" where in nothing."""
    then = record.values
    if abs(then["test"] - now["test"]) > POINTS:
        return f"test accuracy {then['test']}, here {now['test']}"
    if share > IMAGES:
        return f"{100 * share:.0f} % of the test images come out otherwise here"
    for epoch, (a, b) in enumerate(zip(then["loss"], now["loss"], strict=True), 1):
        if abs(a - b) > SMALL + LOSS * abs(b):
            return f"loss of epoch {epoch} {a}, here {b}"
    for epoch, (a, b) in enumerate(zip(then["val_by_epoch"], now["val_by_epoch"]), 1):
        if abs(a - b) > VALIDATION:
            return f"validation accuracy of epoch {epoch} {a}, here {b}"
    return ""


def unlisted(listed: Mapping[str, str], ran: Mapping[str, str]) -> str:
    """A function that ran here, by the code of the same commit, and is not in the list sent."""
    bare = {place: lists.bare(said) for place, said in listed.items()}
    others = [place for place, said in ran.items() if bare.get(place) != lists.bare(said)]
    return f"its list of code lacks {others[0]}" if others else ""


def all_agree(done: Sequence[Rerun]) -> None:
    """Raise BadInput, naming the first run that came out otherwise."""
    for one in done:
        if one.why:
            raise BadInput(f"record {one.record} ({one.run}) was run again: {one.why}.")
