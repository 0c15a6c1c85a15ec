"""Where to put the prompt, and in which form: AP at every block, on several blocks, by its
variants."""

from collections.abc import Sequence
from dataclasses import dataclass

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import torch
from matplotlib.figure import Figure

from visprompt.data.tasks import normalise
from visprompt.measure.attention import attention_distance
from visprompt.measure.similarity import linear_cka
from visprompt.models.backbones import Backbone
from visprompt.records import Record, recorded

from ..pages import plots
from ..pages.friendly import named, signed
from ..studies.lab import Lab
from ..studies.statistics import interval, spread
from .ap import judge_over_norm
from .ap_blocks import LINES, chosen, every_block
from .chapter import Chapter
from .parameters import ChapterParameters


def judge_best(chapter: Chapter, rows: pd.DataFrame, part: str, on: Sequence[str]) -> None:
    """Judge what Figure 2 says of the best block of a ResNet, chosen on validation, and how far it
    is above two methods."""
    claim, every = "ap.figure-2.best-layer-deep", every_block(chapter.scope, part)
    found = chapter.answers(claim, rows, every, on, [part])
    if not len(found) or found.val.isna().all():  # none where it was trained on
        return
    blocks = found.groupby("block").val.mean()
    best, used = blocks.idxmax(), [*found.record]
    chapter.page.judge(
        claim, best / (len(every) - 1), evidence=chapter.evidence(used)[0], records=used
    )
    pair = rows[rows.variant.isin(["VP", "NORM-TUNE", f"ap, block {best:.0f}"])]
    pair = pair.assign(variant=pair.variant.replace(f"ap, block {best:.0f}", "AP"))
    name, about = chapter.scope.backbones[part], {"on": on, "parts": [part]}
    chapter.judge("ap.figure-2.best-ap-over-vp", pair, "AP", "VP", **about)
    judge_over_norm(chapter, "ap.figure-2.best-ap-over-norm", name, pair, **about)


def best_table(rows: pd.DataFrame) -> pd.DataFrame:
    """AP at the block that validation chose, beside the other methods: mean and spread of
    accuracy."""
    block = chosen(rows, "ap")
    names = {} if block is None else {f"ap, block {block:.0f}": f"AP at block {block:.0f}"}
    table = [
        {
            "method": name,
            "test accuracy, %": spread(runs.groupby("seed").test.mean(), runs.record, runs),
        }
        for variant, name in (names | dict(zip(LINES, LINES))).items()
        if len(runs := rows[rows.variant == variant])
    ]
    return pd.DataFrame(table)


def show_forms(chapter: Chapter, artifact: str, claims: dict[str, tuple[str, str]]) -> None:
    """Show a table of AP's forms beside the other methods of small cost, and judge claims on how
    far one is above another."""
    rows, on = chapter.planned(artifact), chapter.of_study("ap-forms")
    table = [
        {
            "method": variant,
            "entries": f"{runs.parameters.iloc[0]:,.0f}",
            "test accuracy, %": spread(runs.groupby("seed").test.mean(), runs.record, runs),
        }
        for variant, runs in rows.groupby("variant", sort=False)
    ]
    caption = "Forms of AP beside other cheap methods: mean ± standard deviation over seeds."
    chapter.show(artifact, pd.DataFrame(table), rows, caption)
    for claim, (a, b) in claims.items():
        chapter.judge(f"{artifact}.{claim}", rows, a, b, on=on)


@dataclass(frozen=True)
class Pair:
    """The networks whose features are dissected on a task: the first of each list."""

    lab: Lab
    p: ChapterParameters
    vits: list[str]
    resnets: list[str]

    def dissection(self) -> tuple[Record, int]:
        """The record of the features of the first ViT and the first ResNet, and how many images it
        is about."""
        vit, resnet = (self.lab.backbone(names[0]) for names in (self.vits, self.resnets))
        tasks = [self.lab.task(self.p.tasks[0], backbone.image_size) for backbone in (vit, resnet)]
        images = [task.test[0][:400] for task in tasks]
        record = recorded(
            "dissection",
            {
                "vit": self.vits[0],
                "resnet": self.resnets[0],
                "task": self.p.tasks[0],
                "images": 400,
            },
            lambda: dissect((vit, resnet), images, self.p.device),
            data=tasks[0].fingerprint,
            weights=f"{vit.fingerprint} {resnet.fingerprint}",
            made=[vit, resnet],
        )
        return record, len(images[0])


def cost_figure(rows: pd.DataFrame) -> Figure:
    """Figure 2's exact part: prompt entries and training operations by block of a ResNet-101."""
    fig, (left, right) = plt.subplots(1, 2, figsize=(7, 3))
    left.step(rows.block, rows.parameters / 1e3, where="mid", color=plots.PALETTE["ap"], label="AP")
    left.axhline(3 * 224 * 224 / 1e3, color=plots.PALETTE["vp"], ls="--", label="VP, every pixel")
    left.set(xlabel="block of ResNet-101", ylabel="prompt entries, thousands", yscale="log")
    left.set_title("Deep prompts have fewer entries")
    left.set_yticks([100, 200, 400, 800], ["100", "200", "400", "800"])
    left.minorticks_off()
    left.legend()
    right.step(rows.block, 100 * rows.share, where="mid", color=plots.PALETTE["ap"], label="AP")
    right.axhline(100, color=plots.PALETTE["vp"], ls="--", label="VP")
    right.set(xlabel="block of ResNet-101", ylabel="training FLOPs, % of VP's", ylim=(0, 110))
    right.set_title("and are cheaper to train")
    right.legend(loc="lower left")
    return fig


def kept_features(backbone: Backbone, images: torch.Tensor) -> list[torch.Tensor]:
    """What leaves each block, flattened to (B, features)."""
    kept = []
    with torch.no_grad():
        last = backbone.run(backbone.stem(images), keep=kept)
    return [x.flatten(1) for x in [*kept[1:], last]]


def dissect(backbones: Sequence[Backbone], images: Sequence[torch.Tensor], device: str) -> dict:
    """CKA between what leaves the blocks (L_vit, L_resnet), and attention distance in patches
    (L_vit, heads).

    Args:
        backbones: a ViT and a ResNet.
        images: the same pictures (B, 3, H, W), as bytes, at the size of each.
    """
    ready = [
        normalise(x, backbone.mean, backbone.std).to(device)
        for x, backbone in zip(images, backbones)
    ]
    mine, other = (kept_features(backbone, x) for backbone, x in zip(backbones, ready))
    distance = (
        attention_distance(backbones[0], ready[0]) / backbones[0].model.patch_embed.patch_size[0]
    )
    return {"cka": [[linear_cka(x, y) for y in other] for x in mine], "distance": distance.tolist()}


def dissection_figure(vit: str, resnet: str, cka: np.ndarray, distance: np.ndarray) -> Figure:
    """Figure 5: CKA of every pair of blocks (L_vit, L_resnet), and attention distance (L_vit,
    heads)."""
    fig, (left, right) = plt.subplots(1, 2, figsize=(7, 3.2))
    image = left.imshow(cka, origin="lower", cmap="magma", vmin=0, vmax=1, aspect="auto")
    closest = cka[:, -2:].mean(1).argmax()
    left.set(xlabel=f"block of {named(resnet)}", ylabel=f"block of {named(vit)}")
    left.set_title(f"(A) Deep ResNet features are\nclosest to block {closest} of the ViT")
    left.grid(False)
    fig.colorbar(image, ax=left, label="linear CKA")
    blocks = np.arange(len(distance))
    mean = distance.mean(1)
    right.plot(blocks, distance, ".", color="#999999")
    right.plot(blocks, mean, "o-", color=plots.PALETTE["ap"])
    right.set(xlabel=f"block of {named(vit)}", ylabel="attention distance, patches")
    ends = f"in the first block, {mean[-1]:.1f} in the last"
    right.set_title(f"(B) Attention reaches {mean[0]:.1f} patches\n{ends}")
    return fig


def fewest(rows: pd.DataFrame) -> pd.DataFrame:
    """The runs on the smaller half of the numbers of images."""
    sizes = sorted(set(rows.train_size))
    return rows[rows.train_size.isin(sizes[: (len(sizes) + 1) // 2])]


def size_figure(rows: pd.DataFrame) -> Figure:
    """Figure 6: accuracy against the number of training images, a line for each of two blocks."""
    fig, ax = plt.subplots(figsize=(7, 3.2))
    colours, means = (plots.PALETTE["ap"], plots.PALETTE["norm-tune"]), []
    for (variant, mine), color in zip(rows.groupby("variant", sort=False), colours):
        line = mine.groupby("train_size").test.agg(["mean", "min", "max"])
        ax.fill_between(line.index, line["min"], line["max"], color=color, alpha=0.2, lw=0)
        ax.plot(line.index, line["mean"], "o-", color=color)
        label = f"{variant} ({mine.block.iloc[0]})"
        plots.at_end(ax, line.index, line["mean"].array, label, color)
        means.append(line["mean"])
    sizes = sorted(set(rows.train_size))
    ax.set_xscale("log")
    ax.set_xticks(sizes, [str(size) for size in sizes])
    ax.minorticks_off()
    ax.set(xlabel="training images", ylabel="test accuracy, %")
    if len(means) == 2:
        leads = (means[0] - means[1]).dropna()
        told = [f"{signed(leads[n])} with {n} images" for n in leads.index[[0, -1]]]
        ax.set_title(f"Shallow minus deep, in points: {', '.join(told)}")
    return fig


def size_alt(rows: pd.DataFrame) -> str:
    """What `size_figure` shows, in words."""
    lines = [
        f"{variant}: "
        + ", ".join(
            f"{mean:.1f} % with {size}"
            for size, mean in mine.groupby("train_size").test.mean().items()
        )
        for variant, mine in rows.groupby("variant", sort=False)
    ]
    return f"Mean test accuracy by training images. {'; '.join(lines)}."


def slope(distance: np.ndarray) -> tuple[float, float, float]:
    """Slope over blocks of (L, heads) with an interval over the heads, each head one value a
    block."""
    x = np.arange(len(distance))
    return interval([np.polyfit(x, distance[:, head], 1)[0] for head in range(distance.shape[1])])
