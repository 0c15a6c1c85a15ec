"""Parameters, operations, memory and time of a tuned model."""

import resource
import time
from dataclasses import asdict

import torch
from torch.utils.flop_counter import FlopCounterMode

from ..checks import Count
from ..methods import TunedModel, build_method
from ..methods.base import device_of
from ..methods.parameters import count_parameters
from ..models.backbones import load_backbone, to_meta
from ..records import Record, in_own_process, recorded, unwatched


def count_flops(model: TunedModel, training: bool = False, batch_size: Count = 1) -> dict:
    """Operations per image: {"flops", "macs", "unit"}; a multiply-add counts as two FLOPs.

    Args:
        training: also count the backward pass down to the lowest trained parameter.
        batch_size: what a batch shares, such as the keys of prompts, is divided by it.
    """
    meta = on_meta(model)
    images = torch.empty(
        batch_size, 3, model.source.image_size, model.source.image_size, device="meta"
    )
    with FlopCounterMode(display=False) as counter:
        features = meta.features(meta.below(images))
        logits = meta.classify(features)
        if training:
            logits.sum().backward()
    flops = round(counter.get_total_flops() / batch_size)
    return {"flops": flops, "macs": flops // 2, "unit": "FLOPs, two for a multiply-add"}


def training_memory(model: TunedModel, batch_size: int) -> dict:
    """Bytes that one training step must hold at once, counted on shapes alone (float32, Adam).

    Returns:
        {"weights", "gradients", "optimizer", "activations", "total"}: all weights, trained or not;
        a gradient and Adam's two moments per trained parameter; everything autograd saves for the
        backward pass, each storage once, without weights. A framework's workspace and fragmentation
        come on top.
    """
    meta = on_meta(model)
    held = {tensor.untyped_storage()._cdata for tensor in [*meta.parameters(), *meta.buffers()]}
    activations = 0

    def pack(tensor):
        nonlocal activations
        key = tensor.untyped_storage()._cdata
        if key not in held:
            held.add(key)
            kept.append(tensor)  # as long as it lives, its storage's address is its own
            activations += tensor.untyped_storage().nbytes()
        return tensor

    kept = []
    size = model.source.image_size
    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        features = meta.features(meta.below(torch.empty(batch_size, 3, size, size, device="meta")))
        meta.training_loss(features, torch.zeros(batch_size, dtype=torch.long, device="meta"))
    weights = sum(p.numel() * p.element_size() for p in meta.parameters())
    trained = 4 * count_parameters(model)["total"]
    parts = {
        "weights": weights,
        "gradients": trained,
        "optimizer": 2 * trained,
        "activations": activations,
    }
    return {**parts, "total": sum(parts.values())}


def on_meta(model: TunedModel) -> TunedModel:
    """A copy of the model on the meta device, ready for a training step."""
    meta = build_method(
        model.slug, to_meta(model.source), model.num_classes, **asdict(model.method.settings)
    )
    meta.backbone.train(meta.method.trains_backbone)
    meta.method.train()
    return meta


def measure_speed(model: TunedModel, batch_size: int, repeats: int) -> dict:
    """Time training steps and inference on random images, on the model's device.

    Returns:
        {"train_seconds", "infer_seconds": lists of seconds per batch, one entry per repeat;
        "batch_size"}. An untimed repeat of each warms up.
    """
    device, size = device_of(model), model.source.image_size
    images = torch.randn(
        batch_size, 3, size, size, device=device, generator=torch.Generator(device).manual_seed(0)
    )
    labels = torch.zeros(batch_size, dtype=torch.long, device=device)
    trained = [*model.head.parameters(), *model.method_parameters()]
    optimizer = torch.optim.AdamW(trained, lr=1e-6)

    def step():
        model.backbone.train(model.method.trains_backbone)
        model.method.train()
        model.training_loss(model.features(model.below(images)), labels).backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)

    @torch.no_grad()
    def infer():
        model.eval()
        model(images)

    def timed(action):
        action()
        if device.type == "cuda":
            torch.cuda.synchronize()
        seconds = []
        for _ in range(repeats):
            with unwatched():
                start = time.perf_counter()
                action()
                if device.type == "cuda":
                    torch.cuda.synchronize()
                seconds.append(time.perf_counter() - start)
        return seconds

    return {"train_seconds": timed(step), "infer_seconds": timed(infer), "batch_size": batch_size}


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
    """Record of time and peak memory of a method on a backbone with random weights.

    Runs in a process of its own, so that the peak is this method's alone. Values: those of
    `measure_speed`, `peak_mb` (resident memory on a CPU, allocated memory on a GPU, in MB) and
    `before_mb` (with the model loaded).

    Args:
        run: False only looks for a record.
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
    model = build_method(slug, load_backbone(backbone, device=device), 10, **settings)

    def peak():
        if device.startswith("cuda"):
            return torch.cuda.max_memory_allocated() / 2**20
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024

    before = peak()
    return {
        **measure_speed(model, batch_size, repeats),
        "before_mb": round(before),
        "peak_mb": round(peak()),
    }
