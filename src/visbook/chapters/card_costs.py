"""What one run of VTAB's size takes on a GPU, as `make card` measured it."""

import statistics

import pandas as pd

from visprompt.records import Record, all_records

SECONDS = {  # of a part -> column, in seconds
    "build": "load network",
    "prepare": "prepare",
    "first epoch": "first epoch",
    "epoch": "a later epoch",
    "test": "test",
    "whole": "100 epochs, all",
}


WAYS = {  # of a step, as the page names them
    "bf16, one graph": "bf16, the whole step as one CUDA graph",
    "bf16, compiled, reduced overhead": "bf16, torch.compile(mode=reduce-overhead)",
}


def whole_runs() -> list[Record]:
    """The kept records of whole runs that have both precisions, the newest of each GPU."""
    found = [r for r in all_records("bench") if r.settings["name"] == "whole-run"]
    both = [r for r in found if {"bf16", "float32"} <= {*r.values}]
    return [*{r.settings["machine"]: r for r in sorted(both, key=lambda r: r.date)}.values()]


def parts(record: Record) -> pd.DataFrame:
    """Seconds of a whole run by part, a row a precision."""
    rows = {
        name: {column: found[part] for part, column in SECONDS.items()}
        for name in ("float32", "bf16")
        if isinstance(found := record.values.get(name), dict)
    }
    table = pd.DataFrame.from_dict(rows, orient="index")
    return table.map("{:.3g}".format).rename_axis("precision").reset_index()


def steps(record: Record) -> pd.DataFrame:
    """Milliseconds of a training step by way; what ended early is left out."""
    rows = [
        {
            "a training step": WAYS.get(name, name),
            "ms": f"{1e3 * statistics.median(found['seconds']):.1f}",
            "first step, s": f"{found['first']:.1f}",
        }
        for name, found in record.values.get("step", {}).items()
        if isinstance(found, dict)
    ]
    return pd.DataFrame(rows)


def steps_said(record: Record) -> str:
    """How the ways of a step compare, in a sentence."""
    found = {name: v for name, v in record.values.get("step", {}).items() if isinstance(v, dict)}
    times = {name: statistics.median(v["seconds"]) for name, v in found.items()}
    if "bf16" not in times or len(times) < 2:
        return ""
    best = min(times, key=times.get)
    share = times[best] / times["bf16"]
    return f"The fastest, {WAYS.get(best, best)}, takes {share:.2f} of the plain step's time."


def said(record: Record) -> str:
    """What the table of parts says, in a sentence each."""
    values = record.values
    ratio = values["bf16"]["whole"] / values["float32"]["whole"]
    told = f"bf16 takes {ratio:.2f} of the time of float32."
    told += f" Decoding the images, once, took {values['bf16']['decode']:.1f} s."
    if profile := values["bf16"].get("profile"):
        told += (
            f" In bf16 the GPU is idle for {100 * profile['share the card waits']:.0f} % of an "
            f"epoch."
        )
    if beside := values.get("bf16, side by side"):
        best = max(beside, key=beside.get)
        told += f" {best} processes on one GPU do {beside[best] / beside['1']:.1f} times as"
        told += " many epochs per second as one."
    return told
