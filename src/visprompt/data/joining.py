"""Training and validation images as one training split, for final runs after all choices.

Mapped images stay mapped: what is joined or shortened is read batch by batch, as its parts are.
"""

import itertools
import math
from dataclasses import replace

import torch

from ..errors import BadInput
from . import stored
from .tasks import Task, balanced_order

JOINED = "train and val"  # what a record says such a run was trained on; "train" else


def joined(task: Task) -> Task:
    """The task with train and val as its training split: VTAB's train800val200.

    Its val is unchanged and is trained on, so its accuracy must choose nothing: the last epoch is
    reported.
    """
    (images, labels), (more, others) = task.train, task.val
    both = (together([images, more]), torch.cat([labels, others]))
    return Task(task.name, task.class_names, both, task.val, task.test, task.resize)


def first(task: Task, count: int) -> Task:
    """The task with `count` of its training images, as balanced over the classes as they allow.

    Raises:
        BadInput: not a number from 1 to that of the training images.
    """
    images, labels = task.train
    if not 1 <= count <= len(labels):
        raise BadInput(
            f"train_size must be 1 to {task.name}'s {len(labels)} training images, not {count}."
        )
    order = balanced_order(labels)[:count]
    large = count * math.prod(images.shape[1:]) > stored.WHOLE
    chosen = Mapped([images], order) if large and is_mapped(images) else images[order]
    return replace(task, train=(chosen, labels[order]))  # type: ignore[arg-type]


def is_mapped(images) -> bool:
    """Whether images lie in a file, from which batches are read."""
    return isinstance(images, (stored.Stored, Mapped))


def together(parts: list):
    """Images of several parts, one after the other; mapped if one of them is."""
    return Mapped(parts) if any(map(is_mapped, parts)) else torch.cat(parts)


class Mapped:
    """Mapped images (N, 3, S, S) uint8 of several parts, as if they were one `stored.Stored`.

    Args:
        parts: mapped images, or tensors.
        rows: which images of the parts these are, in this order (N,); all unless given.
    """

    dtype, device = torch.uint8, torch.device("cpu")

    def __init__(self, parts: list, rows: torch.Tensor | None = None):
        self.parts = parts
        self.ends = list(itertools.accumulate(map(len, parts)))
        self.rows = torch.arange(self.ends[-1]) if rows is None else rows
        self.shape = torch.Size((len(self.rows), *parts[0].shape[1:]))
        self.nbytes = math.prod(self.shape)

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, index) -> torch.Tensor:
        rows = self.rows[index]
        return self.read(rows) if rows.dim() else self.read(rows[None])[0]

    def read(self, rows: torch.Tensor) -> torch.Tensor:
        """Images (B, 3, S, S) at these rows (B,) of the parts."""
        found = torch.empty(len(rows), *self.shape[1:], dtype=torch.uint8)
        for part, end in zip(self.parts, self.ends, strict=True):
            here = (rows >= end - len(part)) & (rows < end)
            if here.any():
                found[here] = part[rows[here] - end + len(part)]
        return found

    @property
    def plain(self) -> torch.Tensor:
        """The same images as a tensor in memory."""
        return self[:]

    split, piece = stored.Stored.split, stored.Stored.piece
    to, float = stored.Stored.to, stored.Stored.float
