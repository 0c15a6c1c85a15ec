"""Training and validation images as one training split, for final runs after all choices."""

from dataclasses import replace

import torch

from ..errors import BadInput
from .tasks import Task, balanced_order

JOINED = "train and val"  # what a record says such a run was trained on; "train" else


def joined(task: Task) -> Task:
    """The task with train and val as its training split: VTAB's train800val200.

    Its val is unchanged and is trained on, so its accuracy must choose nothing: the last epoch is
    reported.
    """
    images, labels = (torch.cat(parts) for parts in zip(task.train, task.val, strict=True))
    return Task(task.name, task.class_names, (images, labels), task.val, task.test, task.resize)


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
    return replace(task, train=(images[order], labels[order]))
