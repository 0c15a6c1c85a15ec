"""Fits on a card beside the same fits on the processor: every method, and kept runs on photographs.

Each fit runs in one of some processes side by side, since numbers are asked for and not times.
"""

import multiprocessing
import os
import time
from collections.abc import Callable
from multiprocessing.pool import AsyncResult, Pool
from pathlib import Path

from visprompt.data.tasks import load_task
from visprompt.methods import METHODS, build_method
from visprompt.models.loading import load_backbone
from visprompt.records import Record, recorded, watching
from visprompt.records.watch import Seen, note, watched_call
from visprompt.training.loop import fit_model
from visprompt.training.recipe import Recipe

from .clock import machine

NETWORK, TASK, IMAGES, EPOCHS = "vit_micro_patch4_24", "position", 400, 2
OTHERS = {"swin_micro_patch3_24": ["vpt-deep"], "resnet_micro_24": ["ap"]}
REAL = "vit_tiny_patch16_224.augreg_in21k_ft_in1k"
PIXELS = (112, 224)


def side_by_side(jobs: dict, function: Callable, workers: int, seconds: float) -> tuple[dict, dict]:
    """Call a module's function in processes, until all is done or the time is over.

    Args:
        jobs: name -> arguments, the first first.

    Returns:
        name -> what was returned, and name -> why there is nothing.
    """
    end, found, failed, seen = time.monotonic() + seconds, {}, {}, Seen()
    with multiprocessing.get_context("spawn").Pool(workers, at_most, (1,)) as pool:
        asked = submitted(pool, jobs, function)
        for name, answer in asked.items():
            try:
                found[name], units = answer.get(max(0, end - time.monotonic()))
                seen.elsewhere |= units
            except multiprocessing.TimeoutError:
                failed[name] = "no time was left"
            except Exception as error:
                failed[name] = f"{type(error).__name__}: {error}"[:500]
        pool.terminate()
    note(seen)
    return found, failed


def submitted(pool: Pool, jobs: dict, function: Callable) -> dict[str, AsyncResult]:
    return {
        name: pool.apply_async(watched_call, (function, arguments))
        for name, arguments in jobs.items()
    }


def at_most(threads: int) -> None:
    """Let a process compute, and compile, in this many threads."""
    import torch

    torch.set_num_threads(threads)
    os.environ["TORCHINDUCTOR_COMPILE_THREADS"] = str(threads)


def short_fit(
    network: str, method: str, device: str, precision: str = "float32", compiled: bool = False
) -> dict:
    """Loss by epoch and accuracies of a short fit on an embedded task, with seed 0."""
    task = load_task(TASK, train_size=IMAGES)
    model = build_method(method, load_backbone(network, "pretrained", device=device), task.classes)
    recipe = Recipe(epochs=EPOCHS, precision=precision, compile=compiled)
    values = fit_model(model, task, recipe, 0)
    return {name: values[name] for name in ("loss", "val", "test", "fit_seconds")}


def agreement(
    device: str,
    workers: int,
    seconds: float,
    methods: list[str] | None = None,
    compiles: bool = True,
) -> Record:
    """Record of every method's short fit on the processor, on the card, in bf16, and compiled.

    Returns:
        A record whose values hold "fits", "network method" -> way -> what `short_fit` returns; and
        "failed", "network method, way" -> why.
    """
    chosen = {"what": "agreement", "name": "agreement", "machine": machine(device)}
    chosen |= {"device": device, "network": NETWORK, "task": TASK, "images": IMAGES, "repeats": 1}
    chosen |= {"epochs": EPOCHS, "methods": methods or list(METHODS)}
    cases = [(NETWORK, method) for method in chosen["methods"]]
    cases += [(network, slug) for network, slugs in OTHERS.items() for slug in slugs]
    ways = {"processor": ("cpu",), "float32": (device,), "bf16": (device, "bf16")}
    ways |= {"compiled": (device, "float32", True)} if compiles else {}
    jobs = {
        f"{network} {method}, {way}": (network, method, *given)
        for way, given in ways.items()
        for network, method in cases
        if way != "compiled" or network == NETWORK
    }

    def compute():
        found, failed = side_by_side(jobs, short_fit, workers, seconds)
        fits = {f"{network} {method}": {} for network, method in cases}
        for name, values in found.items():
            case, way = name.split(", ")
            fits[case][way] = values
        return {"fits": fits, "failed": failed}

    return recorded("bench", chosen, compute, run="again")


def far(fits: dict) -> dict[str, float]:
    """The largest relative difference of a loss from the processor's, by way."""
    found: dict[str, float] = {}
    for ways in fits.values():
        wanted = ways.get("processor", {}).get("loss", [])
        for way, values in ways.items():
            off = [abs(a - b) / max(abs(b), 1e-9) for a, b in zip(values["loss"], wanted)]
            if way != "processor" and off:
                found[way] = max(found.get(way, 0.0), *off)
    return found


def kept_fits(task: str) -> dict[str, Record]:
    """Method -> the kept processor's run on photographs with seed 0 that did best on validation."""
    from visprompt.records import all_records, stores

    best: dict[str, Record] = {}
    for record in all_records("tune", of=stores()[1:]):
        s = record.settings
        if (s["backbone"], s["task"], s["seed"]) != (REAL, task, 0):
            continue
        if s["recipe"]["precision"] == "float32" and not record.hardware["gpu"]:
            known = best.get(s["method"])
            if known is None or record.values["val"] > known.values["val"]:
                best[s["method"]] = record
    return best


def photograph_fit(
    settings: dict, weights: str, folder: str, device: str, precision: str, size: int, epochs: int
) -> dict:
    """Accuracies of the run that the settings of a record describe, on a device."""
    s = settings
    backbone = load_backbone(REAL, weights, device=device, image_size=size)
    backbone.mean, backbone.std = (tuple(s["normalisation"][part]) for part in ("mean", "std"))
    task = load_task(s["task"], folder, s["train_size"], image_size=size, resize=s["resize"])
    chosen = {k: tuple(v) if isinstance(v, list) else v for k, v in s["method_settings"].items()}
    model = build_method(s["method"], backbone, task.classes, **chosen)
    recipe = Recipe(**s["recipe"] | {"precision": precision, "epochs": epochs})
    values = fit_model(model, task, recipe, s["seed"])
    found = {name: values[name] for name in ("val", "test", "loss", "fit_seconds")}
    return found | {"data": task.fingerprint, "weights": backbone.fingerprint}


def photographs(
    folder: Path, device: str, workers: int, seconds: float, few: int | None = None
) -> list[Record]:
    """Records, one a task of a folder, of kept runs done again on the card in both precisions.

    Args:
        folder: has weights/, with the file of REAL, and photographs/, with folders of tasks.
        few: methods, and one epoch; for a trial.

    Returns:
        Records whose values hold, for each method, "kept", the id of the processor's run, its "val"
        and "test", and "fits", "112 float32" and so on -> what `photograph_fit` returns.
    """
    weights = folder / "weights" / f"{REAL}.safetensors"
    tasks = sorted(path.name for path in (folder / "photographs").iterdir() if path.is_dir())
    known = {task: dict(list(sorted(kept_fits(task).items()))[:few]) for task in tasks}
    jobs = {}
    for size in PIXELS if few is None else PIXELS[:1]:
        for precision in ("float32", "bf16"):
            for task, runs in known.items():
                for method, record in runs.items():
                    given = (record.settings, str(weights), str(folder / "photographs"), device)
                    epochs = record.settings["recipe"]["epochs"] if few is None else 1
                    jobs[f"{task} {method} {size} {precision}"] = *given, precision, size, epochs
    with watching() as seen:
        found, failed = side_by_side(jobs, photograph_fit, workers, seconds)
    records = []
    for task, runs in known.items():
        chosen = {"what": "photographs", "name": "photographs", "machine": machine(device)}
        chosen |= {"device": device, "backbone": REAL, "task": task, "repeats": 1, "few": few}

        def compute(task=task, runs=runs):
            note(seen)
            return of_task(task, runs, found, failed)

        records.append(recorded("bench", chosen, compute, run="again"))
    return records


def of_task(task: str, runs: dict[str, Record], found: dict, failed: dict) -> dict:
    """The values of a record of `photographs`."""
    values = {}
    for method, record in runs.items():
        start = f"{task} {method} "
        parts = [
            {
                name.removeprefix(start): part
                for name, part in every.items()
                if name.startswith(start)
            }
            for every in (found, failed)
        ]
        values[method] = {"kept": record.id, "data": record.data, "weights": record.weights}
        values[method] |= {name: record.values[name] for name in ("val", "test")}
        values[method] |= {"fits": parts[0], "failed": parts[1]}
    return values
