"""The papers' own costs beside ours: iVPT's Table 8, SPT's Table 1, AP's Table 2, DA-VPT's Table 4,
printed counts."""

import statistics

import pandas as pd

from visprompt import manifests, papers, paths
from visprompt.measure.cost import training_memory
from visprompt.methods import build_method
from visprompt.models.backbones import load_backbone
from visprompt.progress import progress
from visprompt.records import Record

from ..studies import bench, bench_table
from ..studies.statistics import group_table, interval
from ..timing.side_by_side import speeds_in_turns
from .cost import CostPage, where

# claim of iVPT's Table 8 -> what it prints, the column, what was timed, and the page's word for
# that
TIMED = {
    "latency": ("latency, ms", "latency_ms", "infer_seconds", "inference"),
    "training-time": ("training, minutes", "training_time_min", "seconds", "training step"),
}
# of AP's Table 2, and a batch
LARGE = {"ResNet-101": ("resnet101", 8), "ViT-Large/16": ("vit_large_patch16_224", 2)}
SLUGS = {
    "FULL-FINETUNE": ("full-finetune", {}),
    "LINEAR-PROBE": ("linear-probe", {}),
    "NORM-TUNE": ("norm-tune", {}),
    "VP": ("vp", {"padding": 48}),
    "AP": ("ap", {}),
}
# of iVPT's Table 8
COSTS = ["params_m", "workload_gflops", "latency_ms", "training_time_min", "memory_mb"]
SPT_EPOCHS = 100  # of SPT's trainings, Section 4.1
STARTS = {"mean": "mean pooling", "max": "max pooling", "one iteration": "k-means, one iteration"}


def table_8() -> pd.DataFrame:
    """iVPT's Table 8 as printed, by method."""
    return papers.published("ivpt.table-8").set_index("method")


def accuracy_table(rows: pd.DataFrame) -> pd.DataFrame:
    """Accuracy of VPT-Deep and iVPT by group of tasks, and what Table 8 prints for them."""
    printed = table_8().accuracy.rename({"VPT": "VPT-Deep"})
    table = group_table(rows)
    return table.assign(**{"printed, VTAB-1k": [printed[name] for name in table.method]})


def printed_ratio(column: str) -> float:
    """iVPT over VPT in a column of Table 8."""
    ours, theirs = (
        float(table_8().loc[method, column].replace(",", "")) for method in ("iVPT", "VPT")
    )
    return ours / theirs


def aggregation_gmacs() -> dict[str, float]:
    """Multiply-adds of DA for one image, billions: with ten prompts, and with those of Table 16,
    mean over VTAB-1K."""
    printed = (
        papers.published("ivpt.table-16")
        .set_index("hyper_parameter")
        .drop(columns="doubt")
        .astype(int)
    )
    backbone = load_backbone(bench.BASE, device="meta")
    each = (backbone.depth - 1) * backbone.width / 1e9
    return {"N = 10": 100 * each, "Table 16's N": float((printed.loc["N"] ** 2).mean()) * each}


def not_below_dam_vp() -> list[str]:
    """The costs of Table 8 in which iVPT is not printed below DAM-VP."""
    ours, theirs = (table_8().loc[name] for name in ("iVPT", "DAM-VP"))
    number = {name: [float(row[name].replace(",", "")) for row in (ours, theirs)] for name in COSTS}
    return [name for name, (mine, other) in number.items() if mine >= other]


def counted_rows(counts: pd.DataFrame) -> list[dict]:
    """Parameters and operations of Table 8, printed and counted."""
    rows = []
    for column, what in (("params_m", "parameters, M"), ("workload_gflops", "multiply-adds, G")):
        kind = "parameters" if column == "params_m" else "operations"
        for method in ("VPT", "iVPT"):
            count = counts.loc[f"ivpt.table-8.{method.lower()}-{kind}"]
            printed = {"method": method, "what": what, "printed": table_8().loc[method, column]}
            rows.append({**printed, "counted": f"{count.computed:.3f}", "reading": count.reading})
    return rows


def memory_share(record: Record) -> float:
    """iVPT's counted memory over VPT's."""
    return record.values["first"]["memory"] / record.values["second"]["memory"]


def timed_rows(record: Record) -> list[dict]:
    """iVPT over VPT in time and memory, printed and here."""

    def printed(what, column, digits):
        over = {"iVPT / VPT, printed": f"{printed_ratio(column):.{digits}f}"}
        return {
            "what": what,
            **{f"{name}, printed": table_8().loc[name, column] for name in ("VPT", "iVPT")},
            **over,
        }

    rows = []
    for what, column, timed, step in TIMED.values():
        ratios = bench_table.ratios(record, timed)
        here = f"{statistics.median(ratios):.3f}"
        spread = f"{min(ratios):.3f} to {max(ratios):.3f}"
        rows.append(
            {
                **printed(what, column, 3),
                "iVPT / VPT, ours": here,
                "our range": spread,
                "ours is for": step,
            }
        )
    share = {
        "iVPT / VPT, ours": f"{memory_share(record):.4f}",
        "our range": "counted",
        "ours is for": "training step",
    }
    return [*rows, {**printed("memory, MB", "memory_mb", 4), **share}]


def judge_table_8(page: CostPage, record: Record) -> None:
    """The claims on time and memory of iVPT's Table 8."""
    for claim, (_, _, timed, step) in TIMED.items():
        page.judge(
            f"ivpt.table-8.{claim}",
            *interval([ratio - 1 for ratio in bench_table.ratios(record, timed)]),
            evidence="measured",
            records=[record],
            note=f"{step.capitalize()} of {bench.BASE} with random weights. {where(record)}",
        )
    page.judge(
        "ivpt.table-8.memory",
        memory_share(record) - 1,
        evidence="derived",
        records=[record],
        note=f"Counted at batch {record.settings['batch_size']}.",
    )


def start_shares() -> list[dict]:
    """What the printed times of SPT's Table 1 say of each other."""
    cells = papers.published("spt.table-1").set_index("strategy").drop(columns="doubt")
    seconds = cells.map(lambda text: float(text[:-1]) * (86400 if text.endswith("d") else 1))
    rows = []
    for strategy in seconds.index:
        own = seconds.loc[strategy]
        over = own / seconds.loc["Mean pooling"]
        rows.append(
            {
                "strategy": strategy,
                **{
                    f"time / mean pooling's, {share} of the images": f"{over[share]:,.2f}"
                    for share in ("10%", "100%")
                },
                "time with 100 % / with 10 % of the images": f"{own['100%'] / own['10%']:.1f}",
            }
        )
    return rows


def start_rows(record: Record) -> list[dict]:
    """Seconds to initialise SPT-Deep's prompts; for the whole pool extrapolated where only a part
    was seen."""
    median = {name: statistics.median(times) for name, times in record.values["seconds"].items()}
    pool, images = record.settings["pool"], record.settings["images"]
    grown, whole = record.values["growth_mb"] / 1024, record.values["pool_mb"] / 1024
    column = f"{pool:,} images, s"
    drawn = f"{median['random from all']:.2f}"
    memory = f"grows by {grown:.2f} GiB; all tokens together are {whole:.1f} GiB"
    rows = [
        {
            "initialisation": "random sample",
            "images": f"sampled from {pool:,}",
            "seconds": drawn,
            column: drawn,
            "memory": memory,
        }
    ]
    for name, label in STARTS.items():
        of_all = f"{median[name] / images * pool:,.0f}{'' if images == pool else ' (extrapolated)'}"
        seen = {
            "initialisation": label,
            "images": f"{images:,}",
            "seconds": f"{median[name]:.2f}",
            column: of_all,
        }
        rows.append({**seen, "memory": "one batch and the result"})
    return rows


def judge_starts(page: CostPage, record: Record) -> None:
    """The claims of SPT's Table 1."""
    times, chosen = record.values["seconds"], record.settings
    rounds = list(
        zip(times["one iteration"], times["mean"], times["max"], times["random"], strict=True)
    )
    shown = f"{chosen['images']:,} images on {chosen['machine']}"
    clustered = statistics.median((50 * once + mean) / mean for once, mean, _, _ in rounds)
    page.not_judged(
        "spt.table-1.k-means-over-mean",
        f"50 iterations of our k-means take {clustered:.0f} times as long as mean pooling "
        f"({shown}), the paper's took 55,330 times as long. Such a ratio depends on the "
        "implementation, and images, iterations and hardware are not stated",
    )
    for claim, ratios, note in (
        (
            "max-over-mean",
            [most / mean - 1 for _, mean, most, _ in rounds],
            f"{shown}; nearly all of the time is the forward pass, which both share.",
        ),
        (
            "random-over-mean",
            [drawn / mean - 1 for _, mean, _, drawn in rounds],
            f"{shown}; only images with a sampled token are run, so sampling gains more with "
            f"more images.",
        ),
    ):
        page.judge(
            f"spt.table-1.{claim}",
            *interval(ratios),
            evidence="measured",
            records=[record],
            note=note,
        )
    steps = page.best("methods")
    if steps is not None and steps.settings["machine"] == chosen["machine"]:
        a_step = statistics.median(steps.values["vpt-deep"]["seconds"])
        training = SPT_EPOCHS * chosen["images"] / steps.settings["batch_size"] * a_step
        page.judge(
            "spt.table-1.random-cost-beside-vpt",
            *interval([drawn / training for _, _, _, drawn in rounds]),
            evidence="measured",
            records=[record, steps],
            note=f"{shown}; {SPT_EPOCHS} epochs computed from measured steps of VPT-Deep, "
            f"batch {steps.settings['batch_size']}.",
        )


def of_full(architecture: str, turns: Record | None, bytes_of: dict[str, int]) -> list[dict]:
    """Time and memory over those of full fine-tuning, printed in AP's Table 2 and here."""
    cells, rows = papers.published("ap.table-2"), []
    numbers = (
        cells[cells.architecture == architecture]
        .set_index("method")[["time_s_per_epoch", "memory_g"]]
        .astype(float)
    )
    for method, (slug, _) in list(SLUGS.items())[1:]:
        time_here, ratio = "not timed", numbers.loc[method] / numbers.loc["FULL-FINETUNE"]
        if turns is not None:
            time_here = f"{median_ratio(turns, slug, 'full-finetune', 'train_seconds'):.2f}"
        rows.append(
            {
                "architecture": architecture,
                "method": method,
                "time / full's, printed": f"{ratio['time_s_per_epoch']:.2f}",
                "time / full's, ours": time_here,
                "memory / full's, printed": f"{ratio['memory_g']:.2f}",
                "memory / full's, counted": f"{bytes_of[method] / bytes_of['FULL-FINETUNE']:.2f}",
            }
        )
    return rows


def median_ratio(record: Record, first: str, second: str, what: str) -> float:
    """Median over rounds of one method's time over another's."""
    both = zip(record.values[first][what], record.values[second][what], strict=True)
    return statistics.median(a / b for a, b in both)


def ap_shares() -> tuple[list[dict], list[Record]]:
    """`of_full` of both architectures, and the records of their times."""
    rows, used = [], []
    for architecture, (name, batch) in progress(LARGE.items(), "counting AP's Table 2"):
        backbone = load_backbone(name, device="meta")
        models = {
            method: build_method(slug, backbone, 10, **settings)
            for method, (slug, settings) in SLUGS.items()
        }
        bytes_of = {
            method: training_memory(model, 128)["total"] for method, model in models.items()
        }
        turns = speeds_in_turns(name, dict(SLUGS.values()), batch_size=batch, repeats=4, run=False)
        used += [turns] if turns is not None else []
        rows += of_full(architecture, turns, bytes_of)
    return rows, used


def davpt_shares(page: CostPage) -> tuple[list[dict], list[Record]]:
    """DA-VPT's latency over VPT's as its text gives it, our steps over VPT-Deep's, and the records
    of these."""
    prose = (
        manifests.read_table(paths.MANIFESTS / "papers" / "davpt" / "prose.csv")
        .set_index("id")
        .value
    )
    before, after = (float(prose[f"latency-{name}"].split()[0]) for name in ("before", "after"))
    rows = [
        {
            "source": "DA-VPT, Section 4.3.1",
            "with": "all components",
            "time / VPT's": f"{after / before:.3g}",
        }
    ]
    pair, methods = page.best("da-vpt"), page.best("methods")
    if pair is not None:
        ratio = statistics.median(bench_table.ratios(pair))
        here = {"source": f"ours, {pair.settings['machine']}", "with": "DA-VPT, training step"}
        rows.append({**here, "time / VPT's": f"{ratio:.3g}"})
    if methods is not None:
        ratio = median_ratio(methods, "da-vpt-plus", "vpt-deep", "seconds")
        here = {
            "source": f"ours, {methods.settings['machine']}",
            "with": "DA-VPT+, training step",
        }
        rows.append({**here, "time / VPT's": f"{ratio:.3g}"})
    return rows, [record for record in (pair, methods) if record is not None]


def told_counts(counts: pd.DataFrame) -> pd.DataFrame:
    """The printed counts with their verdict and their paper's name."""
    verdicts = counts.agrees.map(
        lambda agrees: {True: "agrees", False: "disagrees"}.get(agrees, "cannot be judged")
    )
    paper = (
        counts.artifact.str.split(".")
        .str[0]
        .map({slug: entry["short"] for slug, entry in papers.papers().items()})
    )
    return counts.assign(verdict=verdicts, paper=paper)


def shown_number(value: float, printed: float = 0) -> str:
    """A count with three digits, or as many as the printed one has."""
    digits = max(3, len(f"{printed:.6g}".replace(".", "").lstrip("0")))
    return "–" if pd.isna(value) else f"{value:.{digits}g}"


def with_numbers(rows: pd.DataFrame) -> pd.DataFrame:
    """Counts whose printed and computed numbers are text."""
    both = list(zip(rows.printed, rows.computed, strict=True))
    return rows.assign(
        printed=[shown_number(printed, printed) for printed, _ in both],
        computed=[shown_number(computed, printed) for printed, computed in both],
    )


def wrong_counts(told: pd.DataFrame) -> pd.DataFrame:
    """The printed counts that disagree, those with the same numbers together."""
    wrong = told[told.verdict == "disagrees"]
    keys = ["paper", "method", "unit", "printed", "computed", "reading"]
    rows = (
        wrong.groupby(keys, sort=False)["where"]
        .agg(lambda places: ", ".join(dict.fromkeys(places)))
        .reset_index()
    )
    rows = rows[["paper", "where", "method", "unit", "printed", "computed", "reading"]]
    return with_numbers(rows)


def every_count(told: pd.DataFrame) -> pd.DataFrame:
    """All printed counts, for reading."""
    whole = with_numbers(told)
    return whole[["paper", "where", "method", "unit", "printed", "computed", "verdict", "reading"]]
