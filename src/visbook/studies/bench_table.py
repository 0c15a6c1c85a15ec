"""The bench's records as a table: ratios with their range, the aim beside them."""

import statistics

import pandas as pd

from visprompt.records import Record, all_records, is_current

from ..timing import host_costs
from ..timing.clock import Side
from ..timing.task_memory import MODEL, NAME, memory_rows
from .bench import BASE, BATCHED, EMBEDDED, MODELS, THEORIES, epochs, forward_macs, pairs


def kept_records() -> list[Record]:
    """All bench records, of any machine: for a row the current ones first, then most rounds, then
    the newest."""
    order = [*pairs(BASE, "cuda"), "methods", "spt-starts", *epochs(), NAME, *THEORIES]
    order += host_costs.LABELS
    models, found = [*MODELS["cpu"], MODELS["cuda"][-1], EMBEDDED, ""], {}
    for record in all_records("bench"):
        name, model = record.settings["name"], record.settings.get("backbone", "")
        if name not in order:
            continue
        place = models.index(model) if model in models else len(models)
        key = (
            record.settings["machine"],
            record.settings["device"],
            place,
            model,
            order.index(name),
        )
        rank = (is_current(record), record.settings["repeats"], record.date)
        if key not in found or rank > found[key][0]:
            found[key] = (rank, record)
    return [found[key][1] for key in sorted(found)]


def rows(records: list[Record]) -> pd.DataFrame:
    """The table: a row or more a record. "a / b" belong to the first and the second of a pair."""
    makers = {
        "pair": pair_rows,
        "epoch": epoch_rows,
        "starts": start_rows,
        "theory": theory_rows,
        NAME: memory_rows,
        host_costs.WHAT: host_costs.host_rows,
        "methods": method_rows,
    }
    found = []
    for record in records:
        settings = record.settings
        if settings["what"] in makers:
            found += makers[settings["what"]](record)
        if settings["name"] == "vpt-deep-100":
            found += [
                macs_row(settings["backbone"], size)
                for size in dict.fromkeys([settings["batch_size"], 64])
            ]
    table = pd.DataFrame(found).fillna("").astype(str)
    return table.loc[:, (table != "").any()]


def ratios(record: Record, what: str = "seconds") -> list[float]:
    """First over second of every round."""
    both = zip(record.values["first"][what], record.values["second"][what], strict=True)
    return [first / second for first, second in both]


def spread(values: list[float]) -> dict:
    """Median and range, as text."""
    return {
        "ratio": f"{statistics.median(values):.2f}",
        "range": f"{min(values):.2f} to {max(values):.2f}",
    }


def two(values: dict, what: str, unit: float, digits: int) -> str:
    """A number of both sides."""
    numbers = [values[key][what] for key in ("first", "second")]
    numbers = [
        statistics.median(number) if isinstance(number, list) else number for number in numbers
    ]
    return " / ".join(
        "–" if number is None else f"{number / unit:.{digits}f}" for number in numbers
    )


def pair_rows(record: Record) -> list[dict]:
    """The step of a pair, and inference where it was timed."""
    values, settings = record.values, record.settings
    pair = pairs(settings["backbone"], settings["device"])[settings["name"]]
    precision = dict.fromkeys(settings[key]["precision"] for key in ("first", "second"))
    macs = [values[key]["training_macs"] for key in ("first", "second")]
    aim = "" if pair.aim is None else f"{'≈' if pair.first.cached else '≤'} {pair.aim:.2f}"
    row = {
        "pair": pair.label,
        "model": settings["backbone"],
        "precision": " / ".join(precision),
        "batch": str(settings["batch_size"]),
        **spread(ratios(record)),
        "aim": aim,
        "by operations": f"{macs[0] / macs[1]:.2f}",
        "seconds": two(values, "seconds", 1, 3),
        "parameters, M": two(values, "parameters", 1e6, 3),
        "forward GMACs": two(values, "macs", 1e9, 2),
        "memory, GiB": two(values, "memory", 2**30, 2) if list(precision) == ["float32"] else "",
        "GPU peak, GiB": ""
        if values["first"]["peak_mb"] is None
        else two(values, "peak_mb", 2**10, 2),
        "note": ""
        if values["difference"] is None
        else f"logits differ by {values['difference']:.0e} at most",
    }
    found = [row]
    if settings["infer"]:
        kept = {
            key: row[key]
            for key in ("model", "precision", "batch", "parameters, M", "forward GMACs")
        }
        found.append(
            {
                **kept,
                "pair": f"{pair.label}, inference",
                **spread(ratios(record, "infer_seconds")),
                "seconds": two(values, "infer_seconds", 1, 3),
            }
        )
    return found


def epoch_rows(record: Record) -> list[dict]:
    """An epoch with cached activations over one without."""
    values, (label, *_, aim) = record.values, epochs()[record.settings["name"]]
    gap = abs(values["first"]["loss"] - values["second"]["loss"])
    return [
        {
            "pair": label,
            "model": record.settings["backbone"],
            "precision": "float32",
            "batch": str(record.settings["batch_size"]),
            **spread(ratios(record)),
            "aim": f"≈ {aim:.2f}",
            "seconds": two(values, "seconds", 1, 3),
            "parameters, M": two(values, "parameters", 1e6, 3),
            "note": f"losses differ by {gap:.0e}; filling the cache once: "
            f"{values['fill_seconds']:.2f} s",
        }
    ]


def start_rows(record: Record) -> list[dict]:
    """SPT's starts over mean pooling of the same images; the whole pool where it is sampled."""
    values, settings = record.values, record.settings
    seconds, count = values["seconds"], settings["images"]
    median = {name: statistics.median(times) for name, times in seconds.items()}
    shared = {"model": settings["backbone"], "precision": "float32"}
    found = [
        {
            "pair": f"SPT-Deep, random start from {settings['pool']:,} images",
            **shared,
            "seconds": f"{median['random from all']:.3f}",
            "note": f"{values['blocks']} blocks, {values['prompts']} prompts each; memory grows by "
            f"{values['growth_mb'] / 1024:.2f} GiB, all tokens would be "
            f"{values['pool_mb'] / 1024:.1f} GiB",
        }
    ]
    each = median["one iteration"] / count
    whole = f"{each:.4f} s an image; {settings['pool']:,} images: {each * settings['pool']:.0f} s"
    notes = {"one iteration": whole + ("" if count == settings["pool"] else ", extrapolated")}
    labels = {
        "random": "random start",
        "max": "max pooling",
        "one iteration": "an iteration of k-means",
    }
    for name, label in labels.items():
        over = [a / b for a, b in zip(seconds[name], seconds["mean"], strict=True)]
        found.append(
            {
                "pair": f"SPT-Deep, {label} over mean pooling of the same images",
                **shared,
                "batch": str(count),
                **spread(over),
                "seconds": f"{median[name]:.3f} / {median['mean']:.3f}",
                "note": notes.get(name, ""),
            }
        )
    return found


TASK_IMAGES, TASK_EPOCHS = 800, 100  # a task of VTAB-1K as the papers train on it


def task_seconds(slug: str, record: Record) -> float:
    """Seconds of the steps of one VTAB-sized task, and of filling the cache, from a record of all
    methods' steps.

    E2VPT trains twice, before and after it prunes. What comes once or once an epoch is left out.
    """
    values, batch = record.values[slug], record.settings["batch_size"]
    steps = TASK_EPOCHS * TASK_IMAGES / batch * (2 if slug == "e2vpt" else 1)
    return steps * statistics.median(values["seconds"]) + TASK_IMAGES / batch * (
        values["below_seconds"] or 0
    )


def method_rows(record: Record) -> list[dict]:
    """Seconds of one VTAB-sized task for every method, computed from its measured step."""
    settings = record.settings
    return [
        {
            "pair": f"{slug}: a task of {TASK_IMAGES} images, {TASK_EPOCHS} epochs",
            "model": settings["backbone"],
            "precision": "float32",
            "batch": str(settings["batch_size"]),
            "seconds": f"{task_seconds(slug, record):.0f}",
            "note": f"step {statistics.median(values['seconds']):.3f} s",
        }
        for slug, values in record.values.items()
    ]


def model_of(record: Record) -> str:
    """What a record's rows are timings of: a backbone, or what stands for one."""
    return record.settings.get("backbone") or {**THEORIES, NAME: MODEL}[record.settings["name"]]


def theory_rows(record: Record) -> list[dict]:
    """Batched trials of a theory's model over single ones; trials end with `.item()`, so a GPU is
    waited for."""
    values, model, aim = (
        record.values,
        model_of(record),
        BATCHED[record.settings["device"].split(":")[0]],
    )
    row = {
        "pair": f"{model}: batched over one by one",
        "model": model,
        "precision": "float32",
        "aim": f"≤ {aim:.2f}",
    }
    if "floor" in values:
        took = statistics.median(values["seconds"])
        row["note"] = (
            f"{1e6 * took:.0f} µs a trial and step; its products alone, at full speed: "
            f"{1e6 * values['floor']:.0f} µs"
        )
    return [{**row, **spread(values["ratios"])}]


def macs_row(backbone: str, batch_size: int) -> dict:
    """Counted forward operations of VPT-Deep with 100 prompts over the bare network's."""
    fast = forward_macs(backbone, Side("vpt-deep", {"prompt_tokens": 100}), batch_size).values[
        "macs"
    ]
    bare = forward_macs(backbone, Side("linear-probe", trims=False), batch_size).values["macs"]
    return {
        "pair": "VPT-Deep, 100 prompts, over the bare network: forward operations",
        "model": backbone,
        "batch": str(batch_size),
        "ratio": f"{fast / bare:.3f}",
        "range": "counted",
        "aim": "≤ 1.00",
        "forward GMACs": f"{fast / 1e9:.2f} / {bare / 1e9:.2f}",
    }
