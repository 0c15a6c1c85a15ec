"""Pairs of training steps in turns, such as a fast form and the plain one, and their operations."""

import time
from dataclasses import asdict
from functools import partial

import torch
from torch.utils.flop_counter import FlopCounterMode

from visprompt.data.tasks import load_task, normalise
from visprompt.measure.cost import count_flops, on_meta, training_memory
from visprompt.methods import TunedModel, build_method
from visprompt.methods.base import device_of
from visprompt.methods.parameters import count_parameters
from visprompt.models.backbones import load_backbone
from visprompt.records import Record, recorded
from visprompt.training.activations import in_batches
from visprompt.training.recipe import Recipe, settled
from visprompt.training.steps import train

from .clock import Side, free, in_turns, inference, machine, sample_batch, training_step


def side_counts(side: Side, model: TunedModel, batch_size: int) -> dict:
    """What is counted on shapes.

    Returns:
        {"parameters": trained; "macs", "training_macs": for one image of a batch, forward, and
        forward and backward without what a method adds to the loss; "memory": bytes of a training
        step in float32}.
    """
    below = 0
    if side.cached:
        meta, size = on_meta(model), model.source.image_size
        with FlopCounterMode(display=False) as counter:
            meta.below(torch.empty(batch_size, 3, size, size, device="meta"))
        below = counter.get_total_flops() // batch_size // 2
    return {
        "parameters": count_parameters(model)["total"],
        "macs": count_flops(model, batch_size=batch_size)["macs"] - below,
        "training_macs": count_flops(model, training=True, batch_size=batch_size)["macs"] - below,
        "memory": training_memory(model, batch_size)["total"],
    }


def pair_in_turns(
    name: str,
    backbone: str,
    first: Side,
    second: Side,
    *,
    batch_size: int,
    repeats: int,
    device: str = "cpu",
    calls: int = 1,
    equal: bool = False,
    infer: bool = False,
    run: bool = True,
) -> Record | None:
    """Record of the training steps of two sides in turns, on random weights and images.

    Args:
        name: the pair's, by which pages find it.
        calls: steps in one turn; several on a GPU, where one is too short.
        equal: the two are one function, so the largest difference of their logits is kept.
        infer: time inference as well.

    Returns:
        A record whose values hold, for "first" and "second", what `in_turns` and `side_counts`
        return and "infer_seconds"; and "difference", None where the two are not one function.
    """
    chosen = {
        "what": "pair",
        "name": name,
        "machine": machine(device),
        "device": device,
        "backbone": backbone,
        "first": asdict(first),
        "second": asdict(second),
        "batch_size": batch_size,
        "repeats": repeats,
        "calls": calls,
        "equal": equal,
        "infer": infer,
    }
    return recorded(
        "bench", chosen, partial(time_pair, {"first": first, "second": second}, chosen), run=run
    )


def time_pair(sides: dict[str, Side], chosen: dict) -> dict:
    """The values of the record that `pair_in_turns` returns; `chosen` are its settings."""
    free()
    frozen = load_backbone(chosen["backbone"], device=chosen["device"])
    images, labels = sample_batch(frozen, chosen["batch_size"])
    models = {key: side.build(frozen) for key, side in sides.items()}
    guesses = {key: inference(sides[key], model, images) for key, model in models.items()}
    difference = (
        (guesses["first"]() - guesses["second"]()).abs().max().item() if chosen["equal"] else None
    )
    steps = {key: training_step(sides[key], model, images, labels) for key, model in models.items()}
    turns = (chosen["repeats"], chosen["device"], chosen["calls"])
    values = in_turns(steps, *turns)
    for key, model in models.items():
        values[key] |= side_counts(sides[key], model, chosen["batch_size"])
    if chosen["infer"]:
        for key, timed in in_turns(guesses, *turns).items():
            values[key]["infer_seconds"] = timed["seconds"]
    return {**values, "difference": difference}


def methods_in_turns(
    backbone: str,
    sides: dict[str, Side],
    *,
    batch_size: int,
    repeats: int,
    device: str = "cpu",
    calls: int = 1,
    run: bool = True,
) -> Record | None:
    """Record of one training step of many methods in turns, and of the pass that fills their cache.

    Returns:
        A record whose values hold, for each name of `sides`, "seconds", "peak_mb", "start", the
        first block that is trained, and "below_seconds", one pass of a batch up to there, or None
        where nothing is kept.
    """
    chosen = {
        "what": "methods",
        "name": "methods",
        "machine": machine(device),
        "device": device,
        "backbone": backbone,
        "sides": {name: asdict(side) for name, side in sides.items()},
        "batch_size": batch_size,
        "repeats": repeats,
        "calls": calls,
    }

    def compute():
        free()
        frozen = load_backbone(backbone, device=device)
        images, labels = sample_batch(frozen, batch_size)
        models = {name: side.build(frozen) for name, side in sides.items()}
        steps = {
            name: training_step(sides[name], model, images, labels)
            for name, model in models.items()
        }
        values = in_turns(steps, repeats, device, calls)
        below = {}
        for name, model in models.items():
            start = model.method.start
            if sides[name].cached and start >= 0 and start not in below:
                action = {"below": torch.no_grad()(lambda model=model: model.below(images))}
                below[start] = min(in_turns(action, 1, device)["below"]["seconds"])
            values[name] |= {
                "start": start,
                "below_seconds": below.get(start) if sides[name].cached else None,
            }
        return values

    return recorded("bench", chosen, compute, run=run)


def epochs_in_turns(
    name: str,
    backbone: str,
    task: str,
    slug: str,
    settings: dict,
    *,
    repeats: int,
    run: bool = True,
) -> Record | None:
    """Record of an epoch of `training.steps.train` with and without cached activations, on an
    embedded backbone and task.

    Returns:
        A record whose values hold, for "first" (cached) and "second" (not), what `in_turns`
        returns, "parameters" and "loss" of the epoch; and "fill_seconds", what filling the cache
        takes.
    """
    recipe = settled(Recipe(epochs=1), slug, "vit")
    chosen = {
        "what": "epoch",
        "name": name,
        "machine": machine("cpu"),
        "device": "cpu",
        "backbone": backbone,
        "task": task,
        "first": asdict(Side(slug, settings, cached=True)),
        "second": asdict(Side(slug, settings)),
        "batch_size": recipe.batch_size,
        "repeats": repeats,
    }
    frozen, data = load_backbone(backbone, "pretrained"), load_task(task)

    def compute():
        model = build_method(slug, frozen, data.classes, **settings)
        pixels, labels = normalise(data.train[0], frozen.mean, frozen.std), data.train[1]
        device, losses = device_of(model), {}
        start = time.perf_counter()
        kept = in_batches(model.below, pixels, device)
        fill = time.perf_counter() - start

        def epoch(key, features, inputs):
            model.reset(0)
            model.method.prepare(frozen, pixels, labels, torch.Generator().manual_seed(0))
            generator = torch.Generator().manual_seed(0)
            losses[key] = train(
                model, features, inputs, labels, recipe, generator, lambda epoch: None
            )[0]

        values = in_turns(
            {
                "first": lambda: epoch("first", model.features, kept),
                "second": lambda: epoch("second", lambda x: model.features(model.below(x)), pixels),
            },
            repeats,
        )
        for key in values:
            values[key] |= {"parameters": count_parameters(model)["total"], "loss": losses[key]}
        return {**values, "fill_seconds": fill}

    return recorded(
        "bench",
        chosen,
        compute,
        data=data.fingerprint,
        weights=frozen.fingerprint,
        made=[frozen],
        run=run,
    )
