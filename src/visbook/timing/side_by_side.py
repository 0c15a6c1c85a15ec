"""Several methods timed in turns in one process, so that a machine's drift meets them all alike."""

import torch

from visprompt.measure.cost import measure_speed
from visprompt.methods import build_method
from visprompt.models.backbones import load_backbone
from visprompt.progress import progress
from visprompt.records import Record, recorded

from .pairs import Side, in_turns, sample_batch, training_step


def speeds_in_turns(
    backbone: str,
    methods: dict[str, dict],
    *,
    batch_size: int,
    repeats: int,
    device: str = "cpu",
    run: bool = True,
) -> Record | None:
    """Record of training and inference times on random weights and images, one round after the
    other.

    Args:
        methods: slug -> settings of the method.

    Returns:
        A record whose values hold, for each slug, "train_seconds" and "infer_seconds" of a batch,
        one entry a round, so that entries of one round may be compared as a pair.
    """
    chosen = {
        "backbone": backbone,
        "methods": methods,
        "batch_size": batch_size,
        "repeats": repeats,
        "device": device,
    }

    def compute():
        frozen = load_backbone(backbone, device=device)
        models = {
            slug: build_method(slug, frozen, 10, **settings) for slug, settings in methods.items()
        }
        found = {slug: {"train_seconds": [], "infer_seconds": []} for slug in models}
        for _ in progress(range(repeats), f"timing {backbone} in turns"):
            for slug, model in models.items():
                once = measure_speed(model, batch_size, 1)
                for name in found[slug]:
                    found[slug][name] += once[name]
                for parameter in model.parameters():
                    parameter.grad = None
                if device.startswith("cuda"):
                    torch.cuda.empty_cache()
        return found

    return recorded("turns", chosen, compute, run=run)


def variants_in_turns(
    backbone: str,
    variants: dict[str, tuple[str, dict]],
    *,
    batch_size: int,
    repeats: int,
    device: str = "cpu",
    run: bool = True,
) -> Record | None:
    """Record of a training step of several variants, which may be of one method, on random weights
    and images.

    Args:
        variants: name -> slug and settings of the method.

    Returns:
        A record whose values hold what `pairs.in_turns` returns for each name.
    """
    chosen = {
        "backbone": backbone,
        "variants": variants,
        "batch_size": batch_size,
        "repeats": repeats,
        "device": device,
    }

    def compute():
        frozen = load_backbone(backbone, device=device)
        images, labels = sample_batch(frozen, batch_size)
        sides = {name: Side(slug, settings) for name, (slug, settings) in variants.items()}
        steps = {
            name: training_step(side, side.build(frozen), images, labels)
            for name, side in sides.items()
        }
        return in_turns(steps, repeats, device)

    return recorded("turns", chosen, compute, run=run)
