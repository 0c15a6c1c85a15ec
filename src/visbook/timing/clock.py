"""The one clock: training steps and inference that take turns in one process (A, B, A, B, …)."""

import contextlib
import copy
import gc
import time
from collections.abc import Callable
from dataclasses import dataclass, field

import torch

from visprompt.methods import TunedModel, build_method
from visprompt.methods.base import device_of
from visprompt.models.backbones import Backbone
from visprompt.records import hardware, unwatched

CLASSES = 100


@dataclass(frozen=True)
class Side:
    """One of the ways that take turns.

    Attributes:
        method, settings: what `build_method` takes.
        trims: False computes the last block in full, as the papers run it; see `Backbone`.
        cached: a step starts from kept activations below the first trained block.
        precision: "float32", or "bf16" for autocast.
        compiled: forward and loss go through `torch.compile`.
    """

    method: str
    settings: dict = field(default_factory=dict)
    trims: bool = True
    cached: bool = False
    precision: str = "float32"
    compiled: bool = False

    def build(self, backbone: Backbone) -> TunedModel:
        """The model, ready for a training step; the backbone's weights are shared."""
        if not self.trims:
            backbone = copy.copy(backbone)  # the same modules, another flag
            backbone.trims = False
        model = build_method(self.method, backbone, CLASSES, **self.settings)
        model.backbone.train(model.method.trains_backbone)
        model.method.train()
        return model


def in_turns(
    actions: dict[str, Callable], repeats: int, device: str = "cpu", calls: int = 1
) -> dict[str, dict]:
    """Call every action `calls` times, one after the other, in `repeats` rounds, after an untimed
    round.

    Returns:
        name -> {"seconds": of one call, one entry a round, so that entries of one round are a pair;
        "peak_mb": allocated on a GPU at most, other actions' tensors included; None on a CPU}.
    """
    gpu = device.startswith("cuda")
    found = {name: {"seconds": [], "peak_mb": None} for name in actions}
    for number in range(repeats + 1):
        for name, action in actions.items():
            if gpu:
                torch.cuda.synchronize()
                torch.cuda.reset_peak_memory_stats()
            # the untimed round shows what runs
            with unwatched() if number else contextlib.nullcontext():
                start = time.perf_counter()
                for _ in range(calls):
                    action()
                if gpu:
                    torch.cuda.synchronize()
                seconds = (time.perf_counter() - start) / calls
            if number == 0:
                continue
            found[name]["seconds"].append(seconds)
            if gpu:
                peak = torch.cuda.max_memory_allocated() / 2**20
                found[name]["peak_mb"] = round(max(peak, found[name]["peak_mb"] or 0), 1)
    return found


def free() -> None:
    """Let go of the models of earlier runs, so that they count for no peak."""
    gc.collect()
    if torch.cuda.is_available():
        torch.compiler.reset()
        torch.cuda.empty_cache()


def sample_batch(backbone: Backbone, batch_size: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Random images (B, 3, H, W) and labels (B,) on the backbone's device."""
    generator, size = torch.Generator().manual_seed(0), backbone.image_size
    images = torch.randn(batch_size, 3, size, size, generator=generator)
    labels = torch.randint(CLASSES, (batch_size,), generator=generator)
    return images.to(device_of(backbone)), labels.to(device_of(backbone))


def training_step(
    side: Side, model: TunedModel, images: torch.Tensor, labels: torch.Tensor
) -> Callable:
    """Forward, loss, backward and optimizer, as `training` does them, as a function without
    arguments."""
    optimizer = torch.optim.AdamW(
        [*model.head.parameters(), *model.method_parameters()], lr=1e-6, fused=True
    )
    inputs = images
    if side.cached:
        with torch.no_grad():
            inputs = model.below(images)

    def loss(x):
        return model.training_loss(model.features(x if side.cached else model.below(x)), labels)

    if side.compiled:
        loss = torch.compile(loss)

    def step():
        with precision(side, images):
            value = loss(inputs)
        value.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)

    return step


def inference(side: Side, model: TunedModel, images: torch.Tensor) -> Callable:
    """Images to logits, as a function without arguments."""

    @torch.no_grad()
    def infer():
        model.eval()
        with precision(side, images):
            logits = model(images)
        model.backbone.train(model.method.trains_backbone)
        model.method.train()
        return logits

    return infer


def precision(side: Side, images: torch.Tensor):
    """The autocast of a side; none for float32."""
    return torch.autocast(images.device.type, torch.bfloat16, enabled=side.precision == "bf16")


def machine(device: str) -> str:
    """What the times of a record belong to."""
    found = hardware()
    if device.startswith("cuda"):
        return found["gpu"]
    return f"{found['cpu']}, {found['cores']} cores, {found['threads']} threads"
