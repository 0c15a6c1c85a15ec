"""The sections on segmentation, DA-VPT's Table 2 and iVPT's Table 7: their runs, tables, pictures
and claims."""

from collections.abc import Sequence
from dataclasses import dataclass

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.colors import ListedColormap

from visprompt import papers
from visprompt.data.mask_tasks import SegmentationTask
from visprompt.models.backbones import load_backbone
from visprompt.models.embedded import networks
from visprompt.training.overlap import IGNORED
from visprompt.training.segmenter import build_segmenter, count_trained

from ..pages.friendly import spread
from ..studies import statistics
from ..studies.mask_runs import MaskLab, content, mask_scope, runs
from .chapter import Chapter

LARGE, CLASSES = "vit_large_patch16_224", 150  # of both tables; ADE20K's classes
PRINTED = {  # variant -> row of iVPT's Table 7
    "Linear probe": "Linear probing",
    "BIAS": "Bias",
    "VPT-Deep": "VPT",
    "iVPT": "iVPT (N=10)",
    "iVPT, more prompts": "iVPT (N=100)",
}
# in DA-VPT's running text
COMPARED = ("Linear probe", "Full fine-tuning", "BIAS", "VPT-Deep", "DA-VPT", "DA-VPT+")
DAVPT_CLAIMS = (  # claim, what is better in it, and what is worse
    ("over-vpt-deep", "DA-VPT+", "VPT-Deep"),
    ("da-vpt-over-vpt-deep", "DA-VPT", "VPT-Deep"),
    ("full-over-linear", "Full fine-tuning", "Linear probe"),
    ("full-over-bias", "Full fine-tuning", "BIAS"),
)
IVPT_CLAIMS = (
    ("ivpt-over-vpt", "iVPT", "VPT-Deep"),
    ("ivpt-over-linear", "iVPT", "Linear probe"),
    ("ivpt-over-bias", "iVPT", "BIAS"),
    ("more-prompts", "iVPT, more prompts", "iVPT"),
)
COLOURS = [
    "#dddddd",
    "#0072b2",
    "#d55e00",
    "#009e73",
    "#cc79a7",
    "#f0e442",
    "#56b4e9",
    "#e69f00",
    "#000000",
]


@dataclass(frozen=True)
class Found:
    """The runs of the segmentation study that have records."""

    lab: MaskLab
    frame: pd.DataFrame

    def of(self, variants: Sequence[str]) -> pd.DataFrame:
        """The rows of some variants, in their order."""
        parts = (
            [self.frame[self.frame.variant == variant] for variant in variants]
            if len(self.frame)
            else []
        )
        return pd.concat(parts) if parts else self.frame


def found(chapter: Chapter) -> Found:
    """What a page can show. Nothing is run here: `visprompt segment` does that."""
    p = chapter.p
    lab = MaskLab(p.plan, data_dir=p.data_dir, device=p.device)
    # empty where the paper's data or weights are not here; `end` says what would run
    return Found(lab, runs(lab, mask_scope(p.plan), p.kept_seeds, compute=False))


def how(rows: pd.DataFrame) -> str:
    """How the numbers came about, in a sentence."""
    seeds, guess = (
        rows.groupby(["variant", "task"]).seed.nunique(),
        rows.groupby("task").constant.first(),
    )
    counted = f"{seeds.min()}" if seeds.min() == seeds.max() else f"{seeds.min()} to {seeds.max()}"
    own = (
        "Drawn scenes, a small network of this project. "
        if set(rows.backbone) <= {*networks()}
        else ""
    )
    told = [f"{value:.1f} % on {task}" for task, value in guess.items()]
    return (
        f"{own}{counted} seeds per cell. Predicting one class everywhere would give an mIoU of "
        f"{' and '.join(told)}."
    )


def table(rows: pd.DataFrame) -> pd.DataFrame:
    """mIoU by variant and task, single- and multi-scale, mean and standard deviation over seeds, as
    text."""
    lines = []
    for variant in dict.fromkeys(rows.variant):
        mine = rows[rows.variant == variant]
        line = {"method": variant}
        for task in dict.fromkeys(rows.task):
            some = mine[mine.task == task]
            for column, name in (("test", "SS"), ("test_many", "MS")):
                line[f"{task}, {name}"] = (
                    statistics.spread(some[column], some.record) if len(some) else "–"
                )
        trained = mine.record.iloc[0].values["parameters"]["total"]
        lines.append(line | {"trained": f"{trained:,}", "learning rate": rates(mine)})
    return pd.DataFrame(lines)


def rates(rows: pd.DataFrame) -> str:
    """The chosen learning rates by task."""
    return ", ".join(f"{rate:g}" for rate in rows.groupby("task", sort=False).rate.first())


def beside_printed(rows: pd.DataFrame) -> pd.DataFrame:
    """iVPT's Table 7 beside what was found here."""
    cells, here = papers.published("ivpt.table-7").set_index("method"), table(rows)
    for column, name in (("miou_ss", "printed, SS"), ("miou_ms", "printed, MS")):
        here[name] = [
            cells.loc[PRINTED[variant], column] if variant in PRINTED else "–"
            for variant in here.method
        ]
    return here


def parameters() -> pd.DataFrame:
    """Trained parameters on ViT-L/16 with SETR-PUP, counted on shapes, beside iVPT's Table 7; and
    on ViT-B/16."""
    cells, prompts = (
        papers.published("ivpt.table-7").set_index("method"),
        content()["profiles"]["paper"]["prompts"],
    )
    lines = []
    for variant, given in content()["variants"].items():
        settings = {
            key: prompts.get(value, value) for key, value in given.items() if key != "method"
        }
        line = {"method": variant}
        for name, backbone in (("ViT-L/16", LARGE), ("ViT-B/16", "vit_base_patch16_224")):
            counted = count_trained(
                build_segmenter(
                    given["method"], load_backbone(backbone, device="meta"), CLASSES, **settings
                )
            )
            line |= {
                f"{name}, method": f"{counted['method']:,}",
                f"{name}, with SETR-PUP, M": f"{counted['total'] / 1e6:.2f}",
            }
        lines.append(line | {"printed, M": cells.params_m.get(PRINTED.get(variant), "–")})
    return pd.DataFrame(lines)


def pictures(shown: Found, task: SegmentationTask, variants: Sequence[str]):
    """Test pictures, their true masks and the predicted ones, a column a variant; white is ignored.
    Seed 0."""
    rows = shown.of(variants)
    rows = rows[(rows.task == task.name) & (rows.seed == 0)]
    size = task.test[0][1].shape
    columns = {row.variant: row.record.values["predicted"] for row in rows.itertuples()}
    count = min(map(len, columns.values()), default=0)
    if not count:
        return None
    colours = ListedColormap(COLOURS[: task.classes])
    fig, axes = plt.subplots(
        count, 2 + len(columns), figsize=(7, 0.8 + 7 / (2 + len(columns)) * count), squeeze=False
    )
    for i, line in enumerate(axes):
        picture, mask = task.test[i]
        line[0].imshow(picture.permute(1, 2, 0))
        masks = [np.ma.masked_equal(mask.numpy(), IGNORED)]
        masks += [
            np.array([ord(letter) - ord("a") for letter in texts[i]]).reshape(size)
            for texts in columns.values()
        ]
        for ax, labels in zip(line[1:], masks, strict=True):
            ax.imshow(
                labels, cmap=colours, vmin=-0.5, vmax=task.classes - 0.5, interpolation="nearest"
            )
        for ax, title in zip(line, ["picture", "truth", *columns], strict=True):
            ax.set(xticks=[], yticks=[])
            ax.set_title(title.replace(" ", "\n", 1) if i == 0 else "", fontsize=8)
    handles = [
        plt.Line2D([], [], marker="s", ls="", color=c, label=n)
        for c, n in zip(COLOURS, task.class_names)
    ]
    fig.legend(handles=handles, loc="outside lower center", ncols=task.classes, fontsize=8)
    return fig


def show(
    chapter: Chapter, artifact: str, shown: Found, variants: Sequence[str], printed: bool = False
) -> None:
    """The table of an artifact, and its pictures by task."""
    rows = shown.of(variants)
    if not len(rows):
        return
    used = [*rows.record]
    caption = (
        "mIoU in % on the test split, single-scale (SS) and multi-scale (MS), mean "
        "± standard deviation over seeds; "
    )
    caption += "trained parameters with the decoder; learning rates chosen on validation, by task."
    body = beside_printed(rows) if printed else table(rows)
    chapter.page.show(
        artifact, body, evidence="trend", how=how(rows), records=used, caption=caption
    )
    for task in dict.fromkeys(rows.task):
        figure = pictures(shown, shown.lab.masks_of(task), variants)
        if figure is not None:
            caption = (
                f"{task}: the objects are found, but their classes are often confused. First "
                f"test pictures, true masks, and predictions after training with seed 0."
            )
            alt = (
                "One row per picture: the picture, its true mask, then the mask that each method "
                "predicts, one colour per class. Test mIoU: "
            )
            means = rows[rows.task == task].groupby("variant", sort=False).test.mean()
            alt += ", ".join(f"{name} {value:.1f} %" for name, value in means.items()) + "."
            chapter.page.show(
                artifact,
                figure,
                evidence="trend",
                how=how(rows),
                records=used,
                caption=caption,
                alt=alt,
            )


def judge(chapter: Chapter, claim: str, shown: Found, better: str, worse: str) -> None:
    """Hold a difference in mIoU against a claim: the mean over tasks, with an interval over seeds.

    A task on which nothing tried has twice the mIoU of one class for every pixel says nothing and
    is left out.
    """
    rows = shown.of([better, worse])
    if not {better, worse} <= set(rows.variant if len(rows) else ()):
        return
    best = shown.frame.groupby(["task", "variant"]).test.mean().groupby("task").max()
    able = [
        task
        for task in best.index
        if best[task] >= 2 * shown.frame.constant[shown.frame.task == task].iloc[0]
    ]
    rows = rows[rows.task.isin(able)]
    if not (whole := statistics.gain(rows, better, worse)):
        chapter.page.not_judged(claim, "no task is learned well enough to tell methods apart")
        return
    gains = {
        task: found
        for task, part in rows.groupby("task", sort=False)
        if (found := statistics.gain(part, better, worse))
    }
    told = ", ".join(f"{name} {spread(*gain.here)}" for name, gain in gains.items())
    note = f"{better} − {worse}: {whole.counted}; the interval is over seeds alone. By task: "
    note = f"{note}{told}. {chapter.reach(claim, whole)}".strip()
    chapter.page.judge(claim, *whole.here, evidence="trend", records=whole.records, note=note)


def end(chapter: Chapter, artifact: str, *tasks: str) -> None:
    """Say what of the paper's own size was not run, and what runs it."""
    missing = chapter.p.profile == "quick" or not chapter.page.artifacts[artifact]["shows"]
    if missing:
        why = f"The paper's mIoU needs {' and '.join(tasks)} and the published weights of ViT-L/16."
        chapter.page.not_run(artifact, why=why)
