"""Several methods timed in turns in one process, so that a machine's drift meets them all alike."""

from visprompt.models.backbones import load_backbone
from visprompt.records import Record, recorded

from .clock import Side, in_turns, inference, sample_batch, training_step


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
        images, labels = sample_batch(frozen, batch_size)
        actions = {}
        for slug, settings in methods.items():
            side = Side(slug, settings)
            model = side.build(frozen)
            actions[slug, "train_seconds"] = training_step(side, model, images, labels)
            actions[slug, "infer_seconds"] = inference(side, model, images)
        found = in_turns(actions, repeats, device)
        return {
            slug: {
                name: found[slug, name]["seconds"] for name in ("train_seconds", "infer_seconds")
            }
            for slug in methods
        }

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
