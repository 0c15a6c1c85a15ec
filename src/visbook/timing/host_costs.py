"""What the host does beside a card's work, today's way over the plain one, timed in turns."""

import statistics
from collections.abc import Callable

import torch

from visprompt.data.tasks import normalise
from visprompt.models.backbones import Backbone, load_backbone, to_meta
from visprompt.models.remembered import remembered_fingerprint
from visprompt.records import Record, recorded, watching
from visprompt.training.recipe import Recipe
from visprompt.training.steps import cast_once, train

from .clock import Side, in_turns, machine, sample_batch, training_step

WHAT, BACKBONE = "host", "vit_micro_patch4_24"
LABELS = {
    "host-watch": "A step of VPT-Deep: watched for its record over not",
    "host-statistics": "Normalising a batch: statistics kept on the device over copied for each",
    "host-fingerprint": "Fingerprint of weights: remembered over hashed anew",
    "host-cast": "An epoch of VPT-Deep in bf16: frozen weights cast once over at each use",
    "host-shapes": "Shapes of the blocks' inputs: remembered over run on the meta device",
}
# precision and images of a batch; few in bf16, which many processors compute slowly
SIZES = {name: ("float32", 32) for name in LABELS} | {"host-cast": ("bf16", 4)}


def watched(step: Callable) -> Callable:
    """The same step while the code that runs is noted, as in every recorded run."""

    def action():
        with watching():
            step()

    return action


def sides(name: str, backbone: Backbone) -> dict[str, Callable]:
    """The two ways of a row."""
    precision, batch_size = SIZES[name]
    images, labels = sample_batch(backbone, batch_size)
    side = Side("vpt-deep", {"prompt_tokens": 10})
    if name == "host-watch":
        step = training_step(side, side.build(backbone), images, labels)
        return {"first": watched(step), "second": step}
    if name == "host-cast":
        model = side.build(backbone)
        recipe = Recipe(learning_rate=0.01, precision=precision, epochs=1, batch_size=batch_size)
        given = model.below(images), labels, recipe, torch.Generator(), lambda done: None
        return {
            "first": lambda: cast_once(train)(model, model.features, *given),
            "second": lambda: train(model, model.features, *given),
        }
    if name == "host-statistics":
        pixels = (images * 255).to(torch.uint8)
        kept = [torch.tensor(v, device=images.device) for v in (backbone.mean, backbone.std)]
        return {
            "first": lambda: normalise(pixels, *kept),
            "second": lambda: normalise(pixels, backbone.mean, backbone.std),
        }
    if name == "host-fingerprint":
        return {
            "first": lambda: remembered_fingerprint(backbone),
            "second": lambda: backbone.fingerprint,
        }
    return {"first": backbone.shapes, "second": lambda: anew(backbone)}


def anew(backbone: Backbone) -> list[tuple[int, ...]]:
    """Shapes as they are found where none are remembered."""
    meta = to_meta(backbone)
    meta.found_shapes = None
    return meta.shapes()


def host_cost(
    name: str, *, device: str = "cpu", repeats: int, calls: int = 1, run: bool = True
) -> Record | None:
    """Record of a row of LABELS on the embedded ViT; its values are those of `in_turns` for "first"
    and "second"."""
    precision, batch_size = SIZES[name]
    chosen = {
        "what": WHAT,
        "name": name,
        "machine": machine(device),
        "device": device,
        "backbone": BACKBONE,
        "precision": precision,
        "batch_size": batch_size,
        "repeats": repeats,
        "calls": calls,
    }

    def compute():
        backbone = load_backbone(BACKBONE, device=device)
        return in_turns(sides(name, backbone), repeats, device, calls)

    return recorded("bench", chosen, compute, run=run)


def host_rows(record: Record) -> list[dict]:
    """The row of `make bench`."""
    values = record.values
    both = list(zip(values["first"]["seconds"], values["second"]["seconds"], strict=True))
    ratios = [first / second for first, second in both]
    middle = [1e3 * statistics.median(part) for part in zip(*both)]
    return [
        {
            "pair": LABELS[record.settings["name"]],
            "model": BACKBONE,
            "precision": record.settings["precision"],
            "batch": str(record.settings["batch_size"]),
            "ratio": f"{statistics.median(ratios):.2g}",
            "range": f"{min(ratios):.2g} to {max(ratios):.2g}",
            "note": f"{middle[0]:.2g} / {middle[1]:.2g} ms",
        }
    ]
