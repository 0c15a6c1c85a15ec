"""The steps of a pretraining: shuffled batches that are moved a little, AdamW, a warm-up and a
cosine."""

import contextlib
import ctypes

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

from visprompt.data.tasks import normalise


def augment(images: torch.Tensor, shift: int, swap: bool = True) -> torch.Tensor:
    """Bytes (B, 3, S, S) moved by up to `shift` pixels, with `swap` the colours swapped, alike in
    groups of eight."""
    size = images.shape[-1]
    padded = F.pad(images.float(), (shift,) * 4, mode="replicate")
    moved = []
    for part in padded.split(8):
        dy, dx = torch.randint(0, 2 * shift + 1, (2,)).tolist()
        part = part[:, torch.randperm(3)] if swap else part  # captions name colours
        moved.append(part[..., dy : dy + size, dx : dx + size])
    return torch.cat(moved)


def fit(loss_of, parameters, data, recipe, epochs: int, rate: float, log, stage: str) -> None:
    """Minimise `loss_of(images, labels)` as a `Pretraining` says; `log(row)` is told every 100
    steps."""
    images, labels = data
    parameters = list(parameters)
    groups = [
        {"params": [p for p in parameters if p.ndim > 1], "weight_decay": recipe.weight_decay},
        {"params": [p for p in parameters if p.ndim <= 1], "weight_decay": 0.0},
    ]
    optimiser = torch.optim.AdamW(groups, lr=rate, betas=(0.9, 0.98))
    steps = epochs * (len(images) // recipe.batch)
    rising = max(1, round(recipe.warmup * steps))
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimiser,
        lambda s: min(
            (s + 1) / rising,
            0.5 + 0.5 * np.cos(np.pi * max(0, s - rising) / max(1, steps - rising)),
        ),
    )
    step, recent = 0, []
    for _ in range(epochs):
        order = torch.randperm(len(images))
        for index in order[: len(order) // recipe.batch * recipe.batch].split(recipe.batch):
            batch = normalise(
                augment(images[index], recipe.shift, stage != "captions"), recipe.mean, recipe.std
            )
            loss = loss_of(batch, labels[index])
            optimiser.zero_grad(set_to_none=True)
            loss.backward()
            nn.utils.clip_grad_norm_(parameters, 1.0)
            optimiser.step()
            schedule.step()
            step, recent = step + 1, [*recent, loss.item()]
            if step % 100 == 0 or step == steps:
                log(
                    {
                        "stage": stage,
                        "step": step,
                        "of": steps,
                        "loss": round(sum(recent) / len(recent), 4),
                    }
                )
                recent = []


def keep_memory() -> None:
    """Let glibc reuse freed memory; handing every activation back to the system cost a third of the
    time."""
    with contextlib.suppress(OSError, AttributeError, TypeError):
        libc = ctypes.CDLL(None)
        libc.mallopt(-3, 1 << 30)  # M_MMAP_THRESHOLD
        libc.mallopt(-1, 1 << 30)  # M_TRIM_THRESHOLD
