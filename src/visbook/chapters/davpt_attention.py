"""Where DA-VPT's class token and prompts look, and which classes the prompts stand for (Figures 1,
3, 6)."""

from collections.abc import Callable, Sequence

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from visprompt import records

from ..pages import plots
from ..studies import guidance, insights
from .chapter import Chapter


class Looks:
    """Measurements on the benchmark's runs of VPT-Deep and DA-VPT on the fine-grained task, by
    method and seed."""

    def __init__(self, chapter: Chapter):
        self.chapter, cells = chapter, chapter.cells("davpt.figure-3")
        self.task = cells[0].run.task if cells else None
        self.attention = self.of("davpt.figure-3", insights.attention_maps)

    def of(
        self, artifact: str, measurement: Callable, *variants: str
    ) -> dict[str, dict[int, records.Record]]:
        """Records by variant and seed of a measurement on an artifact's runs, see
        `Chapter.measured`."""
        found = self.chapter.measured(artifact, measurement, variants)
        by_variant = found[found.task == self.task].groupby("variant", sort=False)
        return {name: dict(zip(rows.seed, rows.record)) for name, rows in by_variant}

    def judge(
        self, claim: str, used: Sequence[records.Record], values: pd.Series, note: str = ""
    ) -> None:
        """Hold values by seed against a claim on the fine-grained task."""
        frame = pd.DataFrame({"variant": "", "task": self.task, "seed": [*values.index]})
        if len(self.chapter.answers(claim, frame, [""], self.chapter.scope.tasks["fine"][:1])):
            self.chapter.judge_values(claim, values, used, note)

    def picture(self, ax, image: int, title: str) -> None:
        """A test image of the task."""
        lab, backbone = self.chapter.lab, self.chapter.scope.backbones["supervised"]
        ax.imshow(
            lab.task(self.task, lab.backbone(backbone).image_size)
            .test[0][image]
            .permute(1, 2, 0)
            .numpy()
        )
        ax.set_title(title, fontsize=9)
        ax.axis("off")

    def grid(self, image: int, blocks: Sequence[int]):
        """A row for each method and block: picture, class token, three prompts, the assigned one
        first."""
        rows = [(name, block) for block in blocks for name in self.attention]
        fig, axes = plt.subplots(len(rows), 5, figsize=(7, 1.55 * len(rows)), squeeze=False)
        for line, (name, block) in zip(axes, rows, strict=True):
            record = next(iter(self.attention[name].values()))
            star = assigned(record, image) if block == blocks[-1] else None
            self.picture(line[0], image, f"{name}, block {block}")
            map_row(line[1:], record, image, block, star)
        return fig

    def more_images(self, record: records.Record):
        """The other test images of a record, last block."""
        images, last = range(1, len(record.values["labels"])), len(record.values["entropy"]) - 1
        fig, axes = plt.subplots(len(images), 5, figsize=(7, 1.55 * len(images)), squeeze=False)
        for line, image in zip(axes, images, strict=True):
            self.picture(line[0], image, f"class {record.values['labels'][image]}")
            map_row(line[1:], record, image, last, assigned(record, image))
        return fig

    def numbers(self, shallow: int, deep: int) -> pd.DataFrame:
        """Entropy, share of prompts and agreement of maps by method and seed, mean over images."""
        rows = []
        for name, by_seed in self.attention.items():
            for seed, record in by_seed.items():
                values = record.values
                for image in range(len(values["labels"])):
                    match, star = agreement(record, image, deep), assigned(record, image)
                    others = match if star is None else np.delete(match, star)
                    row = {"method": name, "seed": seed}
                    row |= {
                        "entropy, shallow": values["entropy"][shallow],
                        "entropy, deep": values["entropy"][deep],
                    }
                    row |= {"to prompts, %": 100 * values["to_prompts"][deep]}
                    row["agreement, assigned"] = np.nan if star is None else match[star]
                    row["agreement, others"] = others.mean() if len(others) else np.nan
                    rows.append(row)
        return pd.DataFrame(rows).groupby(["method", "seed"]).mean()

    def entropy_told(self, shallow: int, deep: int) -> str:
        """The mean entropy of the class token's attention in both blocks, as text."""
        means = self.numbers(shallow, deep).groupby("method", sort=False).mean()
        return "Entropy in bits, shallow and deep: " + "; ".join(
            f"{name} {row['entropy, shallow']:.2f} and {row['entropy, deep']:.2f}"
            for name, row in means.iterrows()
        ) + "."  # fmt: skip

    def guidance(self) -> pd.DataFrame:
        """What the prompts of the last block have to do with their classes, a row a method and
        seed."""
        found = self.of("davpt.figure-3", guidance.class_guidance)
        return pd.DataFrame(
            [
                {"method": name, "seed": seed, "record": record, **record.values}
                for name, by_seed in found.items()
                for seed, record in by_seed.items()
            ]
        )


def maps(record: records.Record, image: int, block: int) -> tuple[np.ndarray, np.ndarray]:
    """Attention to patches: the class token's (N,) and the prompts' (N_p, N)."""
    own = np.array(record.values["class"][image][block])
    return own, np.array(record.values["prompts"][image][block]).reshape(-1, len(own))


def assigned(record: records.Record, image: int) -> int | None:
    """The prompt of the image's class, or None where prompts have no classes."""
    cluster = record.values["cluster"]
    return None if cluster is None else cluster[record.values["labels"][image]]


def map_row(axes, record: records.Record, image: int, block: int, star: int | None) -> None:
    """The class token's map and those of three prompts, the assigned one (`star`) first."""
    own, prompts = maps(record, image, block)
    order = list(dict.fromkeys([*([] if star is None else [star]), *range(len(prompts))]))[
        : len(axes) - 1
    ]
    plots.heat_map(axes[0], own, "class token")
    for ax, index in zip(axes[1:], order, strict=False):
        plots.heat_map(ax, prompts[index], f"{'*' if index == star else ''}p{index}")
    for ax in axes[1 + len(order) :]:
        ax.axis("off")


def agreement(record: records.Record, image: int, block: int) -> np.ndarray:
    """Correlation over patches of each prompt's map with the class token's."""
    own, prompts = maps(record, image, block)
    return np.array(
        [np.corrcoef(own, prompt)[0, 1] if prompt.std() > 0 else 0.0 for prompt in prompts]
    )


def lift(record: records.Record) -> float:
    """How often the assigned prompt's map is, of all, most like the class token's, times the
    prompts; 1 is chance."""
    last, images = len(record.values["entropy"]) - 1, range(len(record.values["labels"]))
    matches = [agreement(record, image, last) for image in images]
    hits = [
        match.argmax() == assigned(record, image)
        for match, image in zip(matches, images, strict=True)
    ]
    return len(matches[0]) * np.mean(hits)


def guidance_table(guided: pd.DataFrame) -> pd.DataFrame:
    """`Looks.guidance` meaned over seeds, as text."""
    means = guided.groupby("method", sort=False)[
        ["to_own", "to_other", "own_patches", "other_patches"]
    ].mean()
    table = {
        "attention to the prompt of its class, %": (100 * means.to_own).map("{:.2f}".format),
        "to another prompt, %": (100 * means.to_other).map("{:.2f}".format),
        "similarity to patches of own classes": means.own_patches.map("{:.3f}".format),
        "to patches of other classes": means.other_patches.map("{:.3f}".format),
        "seeds": guided.groupby("method").size(),
    }
    return pd.DataFrame(table).reset_index()
