"""Where to put the prompt, and in which form: AP at every block, on several blocks, by its
variants."""

from collections.abc import Sequence
from dataclasses import dataclass

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from visprompt.data.tasks import normalise
from visprompt.measure.attention import attention_distance
from visprompt.measure.cost import count_flops
from visprompt.measure.similarity import linear_cka
from visprompt.methods import build_method
from visprompt.methods.parameters import count_parameters
from visprompt.models.backbones import Backbone, load_backbone
from visprompt.models.embedded import networks
from visprompt.records import Record, recorded

from ..pages import plots
from ..studies.ap_rates import variant
from ..studies.comparable import listed
from ..studies.lab import Run
from ..studies.statistics import interval, spread
from .ap_runs import COMPACT, LAYER_TASKS, NINETEEN, ApParameters, ApRuns, records_of


@dataclass(frozen=True)
class LayerParameters(ApParameters):
    """What the page on AP's place takes; its tasks are those on which every block is tried."""

    def of_profile(self) -> dict:
        return super().of_profile() | {"tasks": LAYER_TASKS[self.plan]}


class LayerRuns(ApRuns):
    """AP at every block; on a ViT its variants, and two blocks with fewer images; and the other
    methods."""

    takes = LayerParameters

    def is_run_here(self, run: Run) -> bool:
        """In the quick profile one block for each run; variants and several blocks take as long
        again."""
        return not self.is_short or run.method != "ap" or variant(run.settings) == "add"

    def runs_of(self, backbone: str, seed: int) -> list[Run]:
        found, place, depth = [], self.place(backbone), self.lab.backbone(backbone).depth
        for task in self.tasks:
            given = [(None, {"block": block}) for block in range(depth)]
            if self.is_vit(backbone):
                few = self.amounts(backbone, task, self.sizes)
                given += [(size, {"block": block}) for size in few for block in (place, depth - 2)]
                given += [
                    (None, {"block": place, "kind": kind}) for kind in ("product", "concatenate")
                ]
                given += [(None, {"block": blocks}) for blocks in ([0, 1, 2], [0, 1, 2, 3, 4])]
            found += [self.ap(backbone, seed, task, size, **settings) for size, settings in given]
            found += [Run(backbone, task, method, seed) for method in self.others(backbone)]
        return found

    @property
    def sizes(self) -> list[int]:
        """Numbers of training images beside the whole split."""
        return [self.p.few_shot // 2, self.p.few_shot, 2 * self.p.few_shot]

    def layers(self, backbone: str, task: str | None = None) -> pd.DataFrame:
        """AP's runs by block."""
        frame = self.frame
        rows = frame[
            (frame.backbone == backbone) & (frame.method == "ap") & frame.full & frame.single
        ]
        return rows[
            (rows.kind == "add") & rows.task.isin(self.tasks if task is None else [task])
        ].copy()

    def layer_plot(self, ax: Axes, backbone: str, task: str) -> None:
        """Accuracy by block with the spread over seeds, the other methods as lines, a star on the
        block best on validation."""
        rows = self.layers(backbone, task)
        mean = rows.groupby("block").test.agg(["mean", "min", "max"])
        ax.fill_between(
            mean.index, mean["min"], mean["max"], color=plots.PALETTE["ap"], alpha=0.2, lw=0
        )
        ax.plot(mean.index, mean["mean"], "o-", color=plots.PALETTE["ap"], label="AP", ms=4)
        best = rows.groupby("block").val.mean().idxmax()
        ax.plot(
            best, mean["mean"][best], "*", ms=16, color=plots.PALETTE["ap"], mec="black", mew=0.6
        )
        for method in ("linear-probe", "norm-tune", "vp", "full-finetune"):
            other = self.part(backbone, method, task=task)
            if len(other):
                ax.axhline(
                    other.test.mean(),
                    ls="--",
                    lw=1.4,
                    color=plots.PALETTE[method],
                    label=plots.NAMES[method],
                )
        ax.set(xlabel="block with the prompt", ylabel="test accuracy, %")
        ax.set_xticks(list(mean.index))

    def layer_table(self, backbone: str, rows: pd.DataFrame) -> tuple[int, pd.Series, pd.Series]:
        """Of runs by block: the best (chosen on validation); by seed its accuracy, and deep third
        minus shallow third."""
        best = rows.groupby("block").val.mean().idxmax()
        depth = self.lab.backbone(backbone).depth
        third = max(1, depth // 3)
        by_seed = rows.groupby(["seed", "block"]).test.mean().unstack()
        deep, shallow = by_seed.columns >= depth - third, by_seed.columns < third
        return (
            best,
            by_seed[best],
            by_seed.loc[:, deep].mean(axis=1) - by_seed.loc[:, shallow].mean(axis=1),
        )

    def layer_figure(self, backbone: str, task: str) -> Figure:
        """AP by block on one backbone and task."""
        fig, ax = plt.subplots(figsize=(7, 3.2))
        self.layer_plot(ax, backbone, task)
        ax.legend(loc="center left", bbox_to_anchor=(1, 0.5))
        return fig

    def layer_grid(self, task: str) -> Figure:
        """AP by block on one task, a panel for every backbone."""
        fig, axes = plt.subplots(1, len(self.backbones), figsize=(7, 3.3), squeeze=False)
        for ax, name in zip(axes.flat, self.backbones, strict=True):
            self.layer_plot(ax, name, task)
            ax.set_title(name)
        handles, labels = axes[0][0].get_legend_handles_labels()
        fig.legend(handles, labels, loc="outside lower center", ncols=5, fontsize=8)
        return fig

    def judge_preference(self, claim: str, names: Sequence[str]) -> None:
        """Hold AP in the deep third of a backbone's blocks, minus the shallow third, against a
        claim."""
        if names and (found := self.answers(claim, self.layers(names[0]))):
            lead = self.layer_table(names[0], *found)[2]
            self.page.judge(
                claim,
                *interval(lead),
                evidence=self.evidence(records_of(*found))[0],
                records=records_of(*found),
            )

    def judge_best(self, name: str) -> None:
        """Judge what Figure 2 says of the best block of a ResNet, and how far it is above two
        methods."""
        claim = "ap.figure-2.best-layer-deep"
        if found := self.answers(claim, self.layers(name)):
            depth = self.layer_table(name, *found)[0] / (self.lab.backbone(name).depth - 1)
            self.page.judge(
                claim,
                depth,
                evidence=self.evidence(records_of(*found))[0],
                records=records_of(*found),
            )
        for claim, method in (("best-ap-over-vp", "vp"), ("best-ap-over-norm", "norm-tune")):
            claim = f"ap.figure-2.{claim}"
            if method == "norm-tune" and name in networks():
                self.page.not_judged(claim, f"{COMPACT} {name} is smaller still")
                continue
            if found := self.answers(
                claim, self.layers(name), self.part(name, method, task=self.tasks)
            ):
                mine, other = found
                gain = self.layer_table(name, mine)[1] - other.groupby("seed").test.mean()
                self.page.judge(
                    claim,
                    *interval(gain.dropna()),
                    evidence=self.evidence(records_of(mine, other))[0],
                    records=records_of(mine, other),
                )

    def by_size(self, blocks: Sequence[int]) -> pd.DataFrame:
        """AP's runs on the first ViT and task at two blocks, with few images, more, and all."""
        name, task = self.vits[0], self.tasks[0]
        parts = [
            self.part(name, "ap", size=n, block=b, task=task)
            for n in (*self.sizes, None)
            for b in blocks
        ]
        used = pd.concat(parts)
        return used[~used.index.duplicated()]  # one of the sizes may be the whole split

    def compare(
        self,
        artifact: str,
        variants: dict[str, dict],
        claims: dict[str, tuple[str, str]],
        caption: str,
    ) -> None:
        """Show a table of AP's variants on the first ViT, and judge claims on how far one is above
        another."""
        found = {
            label: self.part(self.vits[0], "ap", task=self.tasks, **choice)
            for label, choice in variants.items()
        }
        table = pd.DataFrame(
            [
                {
                    "variant": label,
                    "entries": f"{runs.parameters.iloc[0]:,.0f}",
                    "test accuracy, %": spread(runs.groupby("seed").test.mean(), runs.record),
                }
                for label, runs in found.items()
                if len(runs)
            ]
        )
        self.show(artifact, table, records_of(*found.values()), caption)
        if self.is_short and (missing := [label for label, runs in found.items() if not len(runs)]):
            self.show_left_out(
                [self.without_records(f"{listed(missing)} of {artifact}", self.vits[0])]
            )
        for claim, (a, b) in claims.items():
            on = LAYER_TASKS["quick"] if self.p.profile == "quick" else NINETEEN
            self.judge_lead(f"{artifact}.{claim}", found[a], found[b], on)

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


def cost_by_block(backbone: Backbone, blocks: Sequence[int]) -> pd.DataFrame:
    """Prompt entries and training FLOPs (share of VP's) of AP at each of some blocks, on shapes
    alone."""
    vp_flops = count_flops(build_method("vp", backbone, 37), training=True)["flops"]
    models = [build_method("ap", backbone, 37, block=block) for block in blocks]
    return pd.DataFrame(
        {
            "block": blocks,
            "parameters": [count_parameters(model)["method"] for model in models],
            "share": [count_flops(model, training=True)["flops"] / vp_flops for model in models],
        }
    )


def block_costs(name: str, blocks: Sequence[int] | None = None) -> tuple[Record, pd.DataFrame]:
    """What AP costs at some blocks of an architecture, all unless told: the record and its rows,
    see `cost_by_block`."""
    backbone = load_backbone(name, device="meta")
    blocks = range(backbone.depth) if blocks is None else blocks
    named = {"what": "AP by block", "backbone": name, "blocks": list(blocks)}
    exact = recorded(
        "count",
        named,
        lambda: {"rows": cost_by_block(backbone, blocks).to_dict("list")},
        made=[backbone],
    )
    return exact, pd.DataFrame(exact.values["rows"])


def cost_figure(rows: pd.DataFrame) -> Figure:
    """Figure 2's exact part: prompt entries and training operations by block of a ResNet-101."""
    fig, (left, right) = plt.subplots(1, 2, figsize=(7, 3))
    left.step(rows.block, rows.parameters / 1e3, where="mid", color=plots.PALETTE["ap"], label="AP")
    left.axhline(3 * 224 * 224 / 1e3, color=plots.PALETTE["vp"], ls="--", label="VP, every pixel")
    left.set(
        xlabel="block of ResNet-101 (0 to 32)", ylabel="prompt entries, thousands", yscale="log"
    )
    left.set_yticks([100, 200, 400, 800], ["100", "200", "400", "800"])
    left.minorticks_off()
    left.legend()
    right.step(rows.block, 100 * rows.share, where="mid", color=plots.PALETTE["ap"], label="AP")
    right.axhline(100, color=plots.PALETTE["vp"], ls="--", label="VP")
    right.set(
        xlabel="block of ResNet-101 (0 to 32)", ylabel="training FLOPs, % of VP's", ylim=(0, 110)
    )
    right.legend()
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
    left.set(xlabel=f"block of {resnet}", ylabel=f"block of {vit}", title="(A) linear CKA")
    left.grid(False)
    fig.colorbar(image, ax=left)
    blocks = np.arange(len(distance))
    right.plot(blocks, distance, ".", color="#999999")
    right.plot(blocks, distance.mean(1), "o-", color=plots.PALETTE["ap"], label="mean of the heads")
    right.set(
        xlabel=f"block of {vit}",
        ylabel="attention distance, patches",
        title="(B) attention distance",
    )
    right.legend()
    return fig


def size_figure(used: pd.DataFrame, blocks: Sequence[int]) -> Figure:
    """Figure 6: accuracy over the number of training images, a line for each of two blocks."""
    fig, ax = plt.subplots(figsize=(7, 3.2))
    for block, color in zip(blocks, (plots.PALETTE["ap"], plots.PALETTE["norm-tune"])):
        line = used[used.block == block].groupby("train_size").test.agg(["mean", "min", "max"])
        ax.fill_between(line.index, line["min"], line["max"], color=color, alpha=0.2, lw=0)
        ax.plot(line.index, line["mean"], "o-", color=color, label=f"AP at block {block}")
    ax.set_xscale("log")
    ax.set_xticks(
        sorted(used.train_size.unique()), [str(size) for size in sorted(used.train_size.unique())]
    )
    ax.minorticks_off()
    ax.set(xlabel="training images", ylabel="test accuracy, %")
    ax.legend()
    return fig


def slope(distance: np.ndarray) -> tuple[float, float, float]:
    """Slope over blocks of (L, heads) with an interval over the heads, each head one value a
    block."""
    x = np.arange(len(distance))
    return interval([np.polyfit(x, distance[:, head], 1)[0] for head in range(distance.shape[1])])
