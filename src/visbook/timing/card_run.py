"""One run of VTAB's size on a card, by part: what takes its time, and what would take less."""

import contextlib
import multiprocessing
import statistics
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from unittest.mock import patch

import numpy as np
import torch
from PIL import Image

from visprompt.data import originals
from visprompt.data.joining import joined
from visprompt.data.tasks import Task, load_task
from visprompt.methods import TunedModel, build_method
from visprompt.models.backbones import load_backbone
from visprompt.training import loop, standardising
from visprompt.training.recipe import Recipe

from .clock import Side, in_turns, sample_batch, training_step

NAME, CLASSES = "stand-in", 100
WHOLE = 100  # epochs of the papers
BATCH = 64
START = 100  # seconds that processes may take until all of them are ready


def write_pictures(folder: Path, counts: tuple[int, int, int], size: int = 256) -> None:
    """A task of coloured patterns as JPEG files, in the folder layout of VTAB-1k."""
    root = folder / NAME
    (root / "images").mkdir(parents=True)
    coarse = np.random.default_rng(0).integers(0, 256, (sum(counts), 16, 16, 3), dtype=np.uint8)

    def write(number: int) -> str:
        picture = Image.fromarray(coarse[number]).resize((size, size), Image.Resampling.BICUBIC)
        picture.save(root / "images" / f"{number}.jpg", quality=90)
        return f"images/{number}.jpg {number % CLASSES}"

    with ThreadPoolExecutor() as pool:
        lines = list(pool.map(write, range(sum(counts))))
    for name, count in zip(("train800", "val200", "test"), counts):
        (root / f"{name}.txt").write_text("\n".join(lines[:count]))
        del lines[:count]


def wait(device: str) -> None:
    """Wait for what the card still computes."""
    if device.startswith("cuda"):
        torch.cuda.synchronize()


class Parts:
    """Seconds of a fit by part: prepare, train, validate, test; `epochs` has each one's."""

    def __init__(self, device: str):
        self.seconds = dict.fromkeys(("prepare", "train", "validate", "test"), 0.0)
        self.device, self.within, self.epochs = device, "prepare", [time.perf_counter()]

    @contextlib.contextmanager
    def watched(self) -> Iterator["Parts"]:
        """Context in which `loop.fit` is timed."""
        train, batches = loop.train, loop.in_batches

        def timed(function, inside, after, *args):
            wait(self.device)
            self.within, start = inside, time.perf_counter()
            before = sum(self.seconds.values())
            found = function(*args)
            wait(self.device)
            spent = time.perf_counter() - start - (sum(self.seconds.values()) - before)
            self.seconds[inside] += spent
            self.within = after
            return found

        def of_train(*args):
            return timed(train, "train", "test", *args)

        def of_batches(*args):
            inside = "validate" if self.within == "train" else self.within
            return timed(batches, inside, self.within, *args)

        with contextlib.ExitStack() as stack:
            stack.enter_context(patch.object(loop, "train", of_train))
            for module in (loop, standardising):
                stack.enter_context(patch.object(module, "in_batches", of_batches))
            yield self

    def epoch(self, number: int) -> None:
        """What `fit` calls after each epoch."""
        wait(self.device)
        self.epochs.append(time.perf_counter())


def run_by_part(
    load: Callable[[], Task], network: str, recipe: Recipe, device: str, profiled_from: int = 0
) -> dict:
    """Seconds of one run by part, from its pictures on, and what they would be with WHOLE epochs.

    Args:
        profiled_from: the epoch after which the profiler watches one; 0: none.
    """
    start = time.perf_counter()
    load()
    decoded = time.perf_counter()
    task = joined(load())  # from the cache, as every later run finds it
    mapped = time.perf_counter()
    model = build_method("vpt-deep", load_backbone(network, device=device), CLASSES)
    built, parts, profile = time.perf_counter(), Parts(device), Profile(device)

    def watch(epoch: int) -> None:
        parts.epoch(epoch)
        if profiled_from and epoch == profiled_from:
            profile.start()
        elif profiled_from and epoch == profiled_from + 1:
            profile.stop()

    begun = time.perf_counter()
    with parts.watched():
        loop.fit_model(model, task, recipe, 0, watch=watch)
    wait(device)
    whole = time.perf_counter() - begun
    each = [b - a for a, b in zip(parts.epochs[1:], parts.epochs[2:])]
    if profiled_from:
        del each[profiled_from]
    later = statistics.median(each[1:] or each)
    found = {"decode": decoded - start, "map": mapped - decoded, "build": built - mapped}
    found |= parts.seconds | {"fit": whole, "epoch": later, "first epoch": each[0]}
    once = whole - sum(b - a for a, b in zip(parts.epochs[1:], parts.epochs[2:]))
    found["whole"] = found["map"] + found["build"] + once + each[0] + (WHOLE - 1) * later
    found["steps an epoch"] = -(-len(task.train[1]) // recipe.batch_size)
    found["test images a second"] = len(task.test[1]) / max(parts.seconds["test"], 1e-9)
    if profiled_from:
        found["profile"] = profile.found | {
            "share the card waits": max(0.0, 1 - profile.found["busy"] / later)
        }
    return found


class Profile:
    """Kernels of a card between `start` and `stop`."""

    def __init__(self, device: str):
        self.gpu, self.found = device.startswith("cuda"), {}

    def start(self) -> None:
        kinds = [torch.profiler.ProfilerActivity.CPU]
        kinds += [torch.profiler.ProfilerActivity.CUDA] if self.gpu else []
        self.profiler = torch.profiler.profile(activities=kinds, acc_events=True)
        self.profiler.start()

    def stop(self) -> None:
        self.profiler.stop()
        what = "self_device_time_total" if self.gpu else "self_cpu_time_total"
        rows = self.profiler.key_averages()
        on_card = [row for row in rows if "CUDA" in str(row.device_type)] if self.gpu else rows
        order = sorted(on_card, key=lambda row: -getattr(row, what))
        self.found = {
            "busy": sum(getattr(row, what) for row in on_card) / 1e6,
            "kernels": [[row.key[:90], row.count, getattr(row, what) / 1e6] for row in order[:20]],
            "host": [
                [row.key[:60], row.count, row.self_cpu_time_total / 1e6]
                for row in sorted(rows, key=lambda row: -row.self_cpu_time_total)[:12]
            ],
        }


def steps_by_way(network: str, device: str, ways: dict[str, dict], calls: int) -> dict:
    """Seconds of a training step of VPT-Deep in ways: "compile" -> a mode, or "graph" -> True.

    A way that fails has its error in place of its seconds.
    """
    found = {}
    for name, how in ways.items():
        try:
            found[name] = one_way(network, device, how, calls)
        except Exception as error:  # such as a compiler that is missing
            found[name] = f"{type(error).__name__}: {error}"[:300]
    return found


def one_way(network: str, device: str, how: dict, calls: int) -> dict:
    side = Side(
        "vpt-deep", {"prompt_tokens": 10}, precision=how["precision"], compiled="compile" in how
    )
    backbone = load_backbone(network, device=device)
    images, labels = sample_batch(backbone, how.get("batch", BATCH))
    mode = partial(torch.compile, mode=how.get("compile"))
    start = time.perf_counter()
    with patch.object(torch, "compile", mode):
        model = side.build(backbone)
        step = graphed if how.get("graph") else training_step
        action = step(side, model, images, labels)
        action()
    wait(device)
    first = time.perf_counter() - start
    timed = in_turns({"": action}, 3, device, calls)[""]
    return {"seconds": timed["seconds"], "first": first, "peak_mb": timed["peak_mb"]}


def graphed(side: Side, model: TunedModel, images: torch.Tensor, labels: torch.Tensor) -> Callable:
    """A whole training step as one CUDA graph."""
    parameters = [*model.head.parameters(), *model.method_parameters()]
    optimizer = torch.optim.AdamW(parameters, lr=1e-6, fused=True, capturable=True)
    aside = torch.cuda.Stream()
    aside.wait_stream(torch.cuda.current_stream())

    def step():
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast("cuda", torch.bfloat16, side.precision == "bf16", cache_enabled=False):
            loss = model.training_loss(model.features(model.below(images)), labels)
        loss.backward()
        optimizer.step()

    with torch.cuda.stream(aside):
        for _ in range(3):
            step()
    torch.cuda.current_stream().wait_stream(aside)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        step()
    return graph.replay


def processes(
    load: Callable[[], Task], network: str, recipe: Recipe, device: str, counts: list[int]
) -> dict[str, float]:
    """Epochs a second of all processes that fit side by side, by their number."""
    context = multiprocessing.get_context("spawn")
    barrier, told = context.Barrier(max(counts)), context.Queue()
    given = (load, network, recipe, device, counts, barrier, told)
    children = [
        context.Process(target=one_of_some, args=(rank, *given)) for rank in range(max(counts))
    ]
    found: dict[str, float] = {}
    for child in children:
        child.start()
    try:
        for _ in range(sum(counts)):
            count, rate = told.get(timeout=START)
            if isinstance(rate, str):
                raise RuntimeError(rate)
            found[str(count)] = found.get(str(count), 0.0) + rate
    finally:
        for child in children:
            child.kill()
    return found


def one_of_some(rank, load, network, recipe, device, counts, barrier, told) -> None:
    """Fit beside others: for each of the counts that many processes at once."""
    torch.set_num_threads(2)
    try:
        task, ends = joined(load()), []
        model = build_method("vpt-deep", load_backbone(network, device=device), CLASSES)

        def watch(epoch: int) -> None:
            wait(device)
            ends.append(time.perf_counter())

        for count in counts:
            barrier.wait(START)
            if rank < count:
                loop.fit_model(model, task, recipe, 0, watch=watch)
                told.put((count, (recipe.epochs - 1) / (ends[-1] - ends[-recipe.epochs])))
            barrier.wait(START)
    except Exception as error:
        told.put((0, f"{type(error).__name__}: {error}"))
    time.sleep(30)  # until what it told has been read; then it is ended


def loaders(folder: Path, size: int, threads: list[int], count: int) -> dict:
    """Images a second, by threads: decoded and cropped from their files, and decoded whole."""
    task = load_task(NAME, folder, image_size=size)
    found = {}
    for number in threads:
        with patch.object(originals, "THREADS", number):
            known = originals.with_originals(task, originals.RESIZED, folder)
            read = known.train[0].originals
            index = torch.arange(count) % len(task.train[1])
            start = time.perf_counter()
            pictures = read.of(index)
            decoded = time.perf_counter()
            originals.cropped(pictures, originals.RESIZED, size, torch.Generator().manual_seed(0))
            cropped = time.perf_counter()
        found[str(number)] = {
            "decoded": count / (decoded - start),
            "cropped": count / (cropped - decoded),
        }
    return found
