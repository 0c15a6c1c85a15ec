"""Figure 6 of the shallow ViT: tokens of the background removed from real images."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure

from visprompt.models.backbones import load_backbone
from visprompt.progress import progress
from visprompt.records import Record, recorded

from ..studies.statistics import interval
from ..theory import pasted_images
from .shallow_runs import BLUE, GREEN, RED, SKY, ImageParameters, Runs

GRIDS = {  # seeds, shares of the background removed, N, steps
    "small": (3, [0.0, 1.0], [200, 800], 80),
    "large": (5, [0.0, 0.25, 0.5, 0.75, 1.0], [100, 200, 400, 800], 400),
    "printed": (10, [0.0, 0.25, 0.5, 0.75, 1.0], [5_000, 10_000, 20_000, 50_000], 10_000),
}
PRINTED_IMAGES = {
    "front": "cifar10",
    "back": "plants",
    "backbone": "vit_tiny_patch16_224",
    "side": 176,
    "batch": 128,
}
STARTS = ["pretrained", "random"]
SMALL = "Digits on photographs"


def examples(count: int = 6) -> Figure:
    """Training images, with none, half and all of the background tokens removed, which are drawn
    white."""
    import torch

    s, g = pasted_images.Settings(), torch.Generator().manual_seed(0)
    front, back, _ = pasted_images.sources(s.front, s.back, s.backbone)
    pieces = pasted_images.scene(
        s, tuple(part[:count] for part in front.train), back.train[0], True, g
    )
    images, relevant = pasted_images.paste(*pieces[:2], s.side, 4, g)
    fig, axes = plt.subplots(3, count, figsize=(6, 3.1))
    for row, share in zip(axes, (0.0, 0.5, 1.0)):
        seen = torch.zeros(count, 36, dtype=torch.bool).scatter(
            1, pasted_images.staying(relevant, share, g), True
        )
        seen = seen.view(count, 1, 6, 6).repeat_interleave(4, 2).repeat_interleave(4, 3)
        for axis, image in zip(row, torch.where(seen, images, 255)):
            axis.imshow(image.permute(1, 2, 0).numpy())
            axis.set_axis_off()
    return fig


def pasted(p: ImageParameters, grid: str, run: bool = True, **more) -> Record | None:
    """The record of Figure 6: percent right, one value a seed, for each settings."""
    data_dir = p.data_dir if grid == "printed" else None
    seeds, removed, counts, steps = GRIDS[grid]
    first = pasted_images.Settings(steps=steps, **more)
    cells = [replace(first, removed=r, train_size=n) for n in counts for r in removed]
    pair = (
        {"backed": (2,), "clean": (0,)}
        if data_dir
        else {"backed": (0, 2, 4, 6, 8), "clean": (1, 3, 5, 7, 9)}
    )
    cells += [
        replace(first, removed=r, start=s, train_size=counts[-1], **pair)
        for s in STARTS
        for r in removed
    ]
    tasks = pasted_images.sources(first.front, first.back, first.backbone, data_dir)

    def compute():
        found = [
            [
                pasted_images.accuracy(s, seed, device=p.device, data_dir=data_dir)
                for seed in range(seeds)
            ]
            for s in progress(cells, "pasted images")
        ]
        return {"accuracy": found}

    return recorded(
        "shallow-images",
        {"cells": cells, "seeds": seeds},
        compute,
        run=run,
        data="+".join(task.fingerprint for task in tasks[:2]),
        weights=tasks[2].fingerprint,
    )


def at_hand(p: ImageParameters) -> tuple[Record | None, str]:
    """The record of Figure 6 and what it is about: as printed where its images are there, else in
    small; None: not run."""
    if p.data_dir and all((Path(p.data_dir) / name).is_dir() for name in ("cifar10", "plants")):
        return pasted(p, "printed", **PRINTED_IMAGES), "CIFAR-10 on plants"
    return pasted(p, "small") if p.profile == "rehearsal" else pasted(
        p, "large", run=p.larger
    ), SMALL


class Images:
    """Accuracies of Figure 6 by start, background, N and share removed.

    Attributes:
        right: (start, spurious background?, N, share removed) -> percent right, one value a seed.
    """

    def __init__(self, record: Record):
        self.record = record
        cells = [pasted_images.Settings(**s) for s in record.settings["cells"]]
        self.first, self.seeds = cells[0], record.settings["seeds"]
        self.right = {
            (s.start, bool(s.backed), s.train_size, s.removed): np.array(values)
            for s, values in zip(cells, record.values["accuracy"])
        }
        self.removed, self.counts = (
            sorted({s.removed for s in cells}),
            sorted({s.train_size for s in cells}),
        )
        backbone = load_backbone(self.first.backbone)
        self.stars = [
            pasted_images.alpha(replace(self.first, removed=r), backbone) for r in self.removed
        ]
        self.goal = self.right["pretrained", False, self.counts[-1], 0.0]
        self.need = [self.needed(r) for r in self.removed]

    def needed(self, removed: float) -> np.ndarray:
        """For each seed the N, interpolated in logarithms, at which the accuracy reaches its goal;
        at most the largest."""
        found = []
        for seed, wanted in enumerate(self.goal):
            rising = np.maximum.accumulate(
                [self.right["pretrained", False, n, removed][seed] for n in self.counts]
            )
            found.append(np.exp(np.interp(wanted, rising, np.log(self.counts))))
        return np.array(found)

    def gains(self) -> list[np.ndarray]:
        """Accuracy with all of the background removed minus with none, for each N."""
        return [
            self.right["pretrained", False, n, self.removed[-1]]
            - self.right["pretrained", False, n, 0.0]
            for n in self.counts
        ]

    def spurious(self, start: str) -> np.ndarray:
        """Accuracies with a spurious background from one start, `(shares removed, seeds)`."""
        return np.array([self.right[start, True, self.counts[-1], r] for r in self.removed])

    def band(self, axis: plt.Axes, values: Sequence[np.ndarray], **look) -> None:
        """Mean and 95 % interval over seeds against alpha*."""
        found = np.array([interval(v) for v in values])
        axis.plot(self.stars, found[:, 0], "o-", **look)
        axis.fill_between(self.stars, found[:, 1], found[:, 2], color=look["color"], alpha=0.15)

    def figure(self) -> Figure:
        """The three parts of Figure 6."""
        fig, (left, middle, last) = plt.subplots(1, 3, figsize=(8.2, 3.6))
        for n, colour in zip(self.counts, (SKY, BLUE, GREEN, "0.2")):
            values = [self.right["pretrained", False, n, r] for r in self.removed]
            self.band(left, values, color=colour, label=f"N = {n}")
        self.band(middle, self.need, color=BLUE)
        for start, colour, name in (
            ("pretrained", BLUE, "better initial model"),
            ("random", RED, "worse initial model"),
        ):
            self.band(last, self.spurious(start), color=colour, label=name)
        left.set(
            ylabel="test accuracy, %", title="(a) Less background,\nmore accuracy", ylim=(0, 100)
        )
        middle.set(
            ylabel=f"images for {self.goal.mean():.0f} %",
            title="(b) fewer images\nneeded",
            ylim=(0, None),
        )
        last.set(title="(c) and less misled by a\nspurious background")
        for axis in (left, middle, last):
            axis.set_xlabel(r"$\alpha_*$")
        left.legend(loc="lower center", ncols=2, fontsize=9, columnspacing=0.6, handlelength=1)
        last.set_ylim(bottom=last.get_ylim()[0] - 9)  # room for the legend
        last.legend(loc="lower right", fontsize=9, handlelength=1)
        return fig

    def judge(self, runs: Runs) -> None:
        """Judge the four statements of Section 4.2."""
        gains, need = self.gains(), self.need
        runs.judge(
            "shallowvit.figure-6.fewer-background-tokens",
            interval(np.mean(gains, 0)),
            self.record,
            evidence="trend",
            note=f"Mean over N; at N = {', '.join(map(str, self.counts))}: "
            f"{', '.join(f'{g.mean():.1f}' for g in gains)}.",
        )
        runs.judge(
            "shallowvit.figure-6.fewer-samples",
            interval(np.log(need[0] / need[-1])),
            self.record,
            evidence="trend",
            note=f"{need[0].mean():.0f} against {need[-1].mean():.0f} images, interpolated; the "
            f"fewest tried are {self.counts[0]}.",
        )
        spurious = {start: self.spurious(start) for start in STARTS}
        runs.judge(
            "shallowvit.figure-6.spurious-background",
            min(interval(v[-1] - v[0]) for v in spurious.values()),
            self.record,
            evidence="trend",
            note="; ".join(
                f"{start}: {100 - v[0].mean():.0f} % wrong with the background, "
                f"{100 - v[-1].mean():.0f} % without"
                for start, v in spurious.items()
            )
            + ".",
        )
        runs.page.not_judged(
            "shallowvit.figure-6.better-start",
            "the paper's two initial models are trained on more and on fewer photographs, while "
            "our "
            f"worse one is random ({(spurious['pretrained'] - spurious['random']).mean():.0f} "
            f"points "
            f"below)",
        )
