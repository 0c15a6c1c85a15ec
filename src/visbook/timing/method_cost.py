"""Time and peak memory of one method, in a process of its own."""

import resource

import torch

from visprompt.models.backbones import load_backbone
from visprompt.records import Record, in_own_process, recorded

from .clock import Side, in_turns, inference, sample_batch, training_step


def measured_cost(
    backbone: str,
    slug: str,
    *,
    batch_size: int,
    repeats: int,
    device: str = "cpu",
    run: bool = True,
    **settings,
) -> Record | None:
    """Record of time and peak memory of a method on random weights, which do not matter here.

    The process of its own makes the peak this method's.

    Returns:
        A record whose values hold "train_seconds" and "infer_seconds" of a batch, one entry a
        round; "peak_mb" (resident memory on a CPU, allocated memory on a GPU) and "before_mb", with
        the model loaded.
    """
    chosen = {
        "backbone": backbone,
        "method": slug,
        "method_settings": settings,
        "batch_size": batch_size,
        "repeats": repeats,
        "device": device,
    }

    def compute():
        return in_own_process(speed_and_peak, backbone, slug, batch_size, repeats, device, settings)

    return recorded("cost", chosen, compute, run=run)


def speed_and_peak(
    backbone: str, slug: str, batch_size: int, repeats: int, device: str, settings: dict
) -> dict:
    """What `measured_cost` runs in its own process."""
    frozen, side = load_backbone(backbone, device=device), Side(slug, settings)
    model, (images, labels) = side.build(frozen), sample_batch(frozen, batch_size)
    before = memory_mb(device)
    train = in_turns({"": training_step(side, model, images, labels)}, repeats, device)[""]
    infer = in_turns({"": inference(side, model, images)}, repeats, device)[""]
    peak = max(memory_mb(device), train["peak_mb"] or 0, infer["peak_mb"] or 0)
    return {
        "train_seconds": train["seconds"],
        "infer_seconds": infer["seconds"],
        "before_mb": round(before),
        "peak_mb": round(peak),
    }


def memory_mb(device: str) -> float:
    """The most memory that this process has held so far, in MiB; of a GPU since the last reset."""
    if device.startswith("cuda"):
        return torch.cuda.max_memory_allocated() / 2**20
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
