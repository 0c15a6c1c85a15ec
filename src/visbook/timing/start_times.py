"""How long SPT's ways to start its prompts take, and how much memory they need (SPT Sec. 3.4, Table
1)."""

import contextlib
import io
import math
from pathlib import Path

import torch

from visprompt.methods import build_method
from visprompt.models.backbones import load_backbone
from visprompt.records import Record, in_own_process, recorded

from .clock import CLASSES, in_turns, machine


def start_times(
    backbone: str, *, pool: int, images: int, repeats: int, device: str = "cpu", run: bool = True
) -> Record | None:
    """Record of how long SPT-Deep's starts take, in a process of its own, with random weights.

    Args:
        pool: training images of the task; "random from all" draws from them.
        images: how many the other ways take.

    Returns:
        A record whose values hold "seconds", way -> one entry a round: "random from all", and on
        `images` images "random", "mean", "max" and "one iteration", which is k-means with one
        iteration less its start, mean pooling; "growth_mb", what "random from all" adds at most to
        the process, or to a GPU; "pool_mb", the size of all tokens of all images at every block, in
        float32; "prompts" a block and "blocks".
    """
    chosen = {
        "what": "starts",
        "name": "spt-starts",
        "machine": machine(device),
        "device": device,
        "backbone": backbone,
        "pool": pool,
        "images": images,
        "batch_size": images,
        "repeats": repeats,
    }

    def compute():
        return in_own_process(time_starts, backbone, pool, images, repeats, device)

    return recorded("bench", chosen, compute, run=run)


def time_starts(backbone: str, pool: int, images: int, repeats: int, device: str) -> dict:
    """What `start_times` runs in its own process. All images are one random image, so the pool
    takes no memory."""
    frozen = load_backbone(backbone, device=device)
    pixels = torch.randn(
        1, 3, frozen.image_size, frozen.image_size, generator=torch.Generator().manual_seed(0)
    )
    pixels = pixels.expand(pool, -1, -1, -1)

    def way(**settings):
        method = build_method("spt-deep", frozen, CLASSES, **settings).method

        def action():
            with contextlib.redirect_stderr(io.StringIO()):  # k-means shows a bar
                method.prepare(frozen, pixels, None, torch.Generator().manual_seed(0))

        return action

    ways = {
        "random from all": way(),
        "random": way(images=images),
        "mean": way(start="mean", images=images),
        "max": way(start="max", images=images),
        "k-means": way(start="k-means", images=images, iterations=1),
    }
    growth = memory_growth(ways["random from all"], device)
    seconds = {name: found["seconds"] for name, found in in_turns(ways, repeats, device).items()}
    once = [
        both - start for both, start in zip(seconds.pop("k-means"), seconds["mean"], strict=True)
    ]
    prompts = build_method("spt-deep", frozen, CLASSES).method.prompts
    tokens = sum(math.prod(shape) - frozen.prefix * shape[-1] for shape in frozen.shapes())
    return {
        "seconds": {**seconds, "one iteration": once},
        "growth_mb": round(growth / 2**20, 1),
        "pool_mb": round(pool * tokens * 4 / 2**20, 1),
        "prompts": len(prompts[0]),
        "blocks": len(prompts),
    }


def memory_growth(action, device: str) -> int:
    """Bytes that an action adds at most to this process, or to the GPU."""
    if device.startswith("cuda"):
        before = torch.cuda.memory_allocated()
        torch.cuda.reset_peak_memory_stats()
        action()
        return torch.cuda.max_memory_allocated() - before
    with contextlib.suppress(OSError):  # Linux then counts the peak from here
        Path("/proc/self/clear_refs").write_text("5")
    before = resident("VmRSS")
    action()
    return resident("VmHWM") - before


def resident(what: str) -> int:
    """Bytes of this process in memory: "VmRSS" now, "VmHWM" at most."""
    line = next(
        line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith(what)
    )
    return int(line.split()[1]) * 1024
