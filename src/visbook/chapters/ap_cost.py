"""What AP costs: parameters, memory and operations counted on shapes, and times measured (Table 2,
Figure 3)."""

from dataclasses import dataclass

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from visprompt import papers
from visprompt.measure.cost import count_flops, training_memory
from visprompt.methods import build_method
from visprompt.methods.parameters import count_parameters
from visprompt.models.backbones import load_backbone
from visprompt.progress import progress
from visprompt.records import Record, recorded

from ..auditing.counts import printed_counts
from ..pages import plots
from ..pages.friendly import counted
from ..pages.page import Page
from ..pages.parameters import Parameters, read_parameters
from ..studies.statistics import interval
from ..timing import ap_tables
from ..timing.ap_tables import FRAME, LARGE, SHORT, batch_size

PRINTED = {"resnet": "ResNet-101", "vit": "ViT-Large/16"}


@dataclass(frozen=True)
class CostParameters(Parameters):
    """What a page on AP's cost takes."""

    # time the methods at the papers' model sizes on this machine (about half an hour on two cores)
    measure: bool = False


def opened(name: str, namespace: dict) -> tuple[CostParameters, Page]:
    """Parameters and page of a notebook, from its variables (`globals()`)."""
    plots.style()
    p = read_parameters(CostParameters, namespace)
    return p, Page(name, p)


def counted_cost(name: str, slug: str, settings: dict) -> dict:
    """Trained parameters, memory of a training step by part, and FLOPs of one image, on shapes
    alone."""
    backbone = load_backbone(name, device="meta")
    backbone.trims = False  # every token of the last block, as the paper runs it
    model = build_method(slug, backbone, 10, **settings)
    return {
        "parameters": count_parameters(model),
        "memory_gib": {key: value / 2**30 for key, value in training_memory(model, 128).items()},
        "train_flops": count_flops(model, training=True)["flops"],
        "infer_flops": count_flops(model)["flops"],
    }


def cost_record(name: str, slug: str) -> Record:
    """The record of a method's counts for CIFAR-10 with batches of 128."""
    settings = FRAME.get(slug, {})
    told = {"what": "cost", "backbone": name, "method": slug, "method_settings": settings}
    told |= {"classes": 10, "batch": 128, "last_block": "all tokens"}
    return recorded("count", told, lambda: counted_cost(name, slug, settings))


def count_all() -> dict[tuple[str, str], Record]:
    """(word of LARGE, word of SHORT) -> the record of that method's counts."""
    pairs = [(word, slug) for word in LARGE for slug in SHORT]
    return {
        (word, SHORT[slug]): cost_record(LARGE[word], slug)
        for word, slug in progress(pairs, "counting Table 2")
    }


def fitted(word: str, short: str) -> str:
    """How a printed count of Table 2 was read, where the paper leaves open what it would take; ""
    where it does not."""
    slug = next(slug for slug, name in SHORT.items() if name == short)
    row = (
        printed_counts()
        .set_index("id")
        .loc[f"ap.table-2.{PRINTED[word].lower().replace('/', '-')}-{slug}"]
    )
    return row.reading if pd.isna(row.agrees) else ""


def total(record: Record) -> int:
    """All trained parameters of a count."""
    return record.values["parameters"]["total"]


def counted_table(counted: dict[tuple[str, str], Record]) -> pd.DataFrame:
    """Table 2: the counts beside the printed cells."""
    printed, rows = papers.published("ap.table-2"), []
    for word, name in LARGE.items():
        cells = printed[printed.architecture == PRINTED[word]]
        for (slug, short), (_, cell) in zip(SHORT.items(), cells.iterrows(), strict=True):
            values = counted[word, short].values
            rows.append(
                {
                    "backbone": name,
                    "method": plots.NAMES[slug],
                    "parameters, M": f"{values['parameters']['total'] / 1e6:.3f}",
                    "printed, M": cell.parameters_m,
                    "memory, GiB": f"{values['memory_gib']['total']:.2f}",
                    "printed, G": cell.memory_g,
                    "training GFLOPs per image": f"{values['train_flops'] / 1e9:.1f}",
                    "inference GFLOPs per image": f"{values['infer_flops'] / 1e9:.1f}",
                    "printed, s/epoch": cell.time_s_per_epoch,
                    "printed, images/s": cell.throughput_image_per_s,
                }
            )
    return pd.DataFrame(rows)


def readings(counted: dict[tuple[str, str], Record]) -> dict[str, str]:
    """What explains a printed parameter count of Table 2 that is off."""
    last = int(np.prod(load_backbone(LARGE["resnet"], device="meta").shapes()[-1]))
    base, large = (
        load_backbone(f"vit_{size}_patch16_224", device="meta") for size in ("base", "large")
    )
    # full fine-tuning in millions, ImageNet's 1000-way head in place of the 10-way one
    resnet, vit = (
        (total(counted[word, "full"]) + 990 * (width + 1)) / 1e6
        for word, width in (("resnet", 2048), ("vit", large.width))
    )
    return {
        "resnet-full": f"With the 1,000-way ImageNet head it would be {resnet:.2f}.",
        "resnet-ap": f"The printed number fits the inputs of the last two blocks, {last:,} "
        f"values, with the head.",
        "vit-full": f"With the 1,000-way ImageNet head it is {vit:.2f}.",
        "vit-norm": "The printed 0.06 fits scales alone, or shifts alone.",
        "vit-ap": "197 tokens × 1024 and the head; the printed number fits a ViT-Base's patches, "
        f"{(base.shapes()[0][0] - 1) * base.width:,} values, or every pixel of the image, "
        f"{3 * 224**2:,}.",
    }


def timings(device: str, run: bool) -> tuple[dict[str, Record], dict[str, dict[str, Record]]]:
    """What was measured of Table 2's methods on a device; with `run` what is missing is timed.

    Returns:
        Word of LARGE -> record of the times in turns; and word -> slug -> record of the peak
            memory. Without one of its records a backbone is left out.
    """
    timed, peaks = {}, {}
    for word in LARGE:
        turns = ap_tables.turns_of_table_2(word, device, run)
        found = {slug: ap_tables.peak_of_table_2(word, slug, device, run) for slug in SHORT}
        if turns is not None and None not in found.values():
            timed[word], peaks[word] = turns, found
    return timed, peaks


def medians(turns: Record, slug: str) -> tuple[float, float]:
    """Seconds of a training step and of an inference step."""
    train, infer = (
        float(np.median(turns.values[slug][what])) for what in ("train_seconds", "infer_seconds")
    )
    return train, infer


def measured_table(
    timed: dict[str, Record], peaks: dict[str, dict[str, Record]], device: str
) -> pd.DataFrame:
    """Table 2: time and peak memory as measured."""
    rows = []
    for word, turns in timed.items():
        batch, full = batch_size(word, device), medians(turns, "full-finetune")[0]
        for slug in SHORT:
            train, infer = medians(turns, slug)
            rows.append(
                {
                    "backbone": LARGE[word],
                    "method": plots.NAMES[slug],
                    "batch": batch,
                    "training, s/image": f"{train / batch:.2f}",
                    "of full": f"{100 * train / full:.0f} %",
                    "inference, images/s": f"{batch / infer:.3g}",
                    "peak memory, GiB": f"{peaks[word][slug].values['peak_mb'] / 1024:.2f}",
                }
            )
    return pd.DataFrame(rows)


def ratio(turns: Record, what: str, a: str, b: str) -> tuple[float, float, float]:
    """Interval of the ratio of two methods minus 1, paired by round."""
    pairs = zip(turns.values[a][what], turns.values[b][what], strict=True)
    return interval([x / y - 1 for x, y in pairs])


def machine(record: Record) -> str:
    """What a record was measured on."""
    what = record.hardware["gpu"] or record.hardware["cpu"]
    return f"{what}, {counted(record.hardware['threads'], 'thread')}"


def shapes_figure() -> Figure:
    """Figure 3: which features share a trained value, in NORM-TUNE and in AP."""
    fig, axes = plt.subplots(1, 2, figsize=(7, 2.6))
    channels, positions = 5, 8
    axes[0].imshow(
        np.repeat(np.arange(channels)[:, None], positions, 1),
        cmap="tab10",
        vmin=0,
        vmax=9,
        aspect="auto",
    )
    axes[0].set_title(f"NORM-TUNE: {channels} shifts for {channels} × {positions} features")
    axes[1].imshow(
        np.arange(channels * positions).reshape(channels, positions), cmap="viridis", aspect="auto"
    )
    axes[1].set_title(f"AP: {channels * positions} values for {channels} × {positions} features")
    for ax in axes:
        ax.set(
            xlabel="position (pixel or token)",
            ylabel="channel",
            xticks=range(positions),
            yticks=range(channels),
        )
        ax.grid(False)
    return fig


def printed_share_gap() -> float:
    """The largest difference in Table 2 between AP's and VP's printed parameters, in per cent of
    full fine-tuning's."""
    cells = (
        papers.published("ap.table-2")
        .pivot(index="architecture", columns="method", values="parameters_m")
        .astype(float)
    )
    return float((100 * (cells["AP"] - cells["VP"]).abs() / cells["FULL-FINETUNE"]).max())
