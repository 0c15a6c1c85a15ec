"""Training and validation images as one training split, for the runs that are reported once
everything is chosen."""

from dataclasses import replace

import torch

from ..errors import BadInput
from .tasks import Task, balanced_order

JOINED = "train and val"  # what a record says such a run was trained on; "train" else


def joined(task: Task) -> Task:
    """The task with train and val as its training split: VTAB's train800val200.

    Its val is the same as before and is trained on, so its accuracy chooses nothing: what is
    reported is the last epoch's.
    """
    images, labels = (torch.cat(parts) for parts in zip(task.train, task.val, strict=True))
    return Task(task.name, task.class_names, (images, labels), task.val, task.test, task.resize)


def first(task: Task, count: int) -> Task:
    """The task with so many of its training images, as balanced over the classes as they allow."""
    images, labels = task.train
    if not 1 <= count <= len(labels):
        raise BadInput(
            f"train_size must be 1 to {task.name}'s {len(labels)} training images, not {count}."
        )
    order = balanced_order(labels)[:count]
    return replace(task, train=(images[order], labels[order]))
