"""What the papers' drawings assert, checked on the methods as built: SPT Figures 1 and S2, DA-VPT
Figure 2."""

from dataclasses import replace

import torch

from visprompt.data.tasks import Task, normalise
from visprompt.methods import build_method
from visprompt.methods.parameters import count_parameters
from visprompt.models.backbones import Backbone
from visprompt.training.loop import fit
from visprompt.training.recipe import Recipe

# Figure S2 (a), (b), (b), (c)
STARTS = ({"start": "uniform"}, {"source": "first"}, {"source": "last"}, {})


def token_starts(backbone: Backbone, task: Task, prompt_tokens: int = 10, images: int = 64) -> dict:
    """Where SPT-Deep's prompts come from, and what it trains.

    Returns:
        "distance": the largest distance of an initial prompt to the nearest patch token that enters
            its block, over
        that token's norm. "outside", "encoder" and "frozen": numbers trained beside prompts and
        head, in the encoder (the most over the ways to start), and beside the head when the prompts
        are frozen.
    """
    pixels = normalise(task.train[0][:images], backbone.mean, backbone.std)
    labels, classes = task.train[1][:images], task.classes

    def started(**chosen):
        model = build_method("spt-deep", backbone, classes, prompt_tokens=prompt_tokens, **chosen)
        model.method.prepare(backbone, pixels, labels, torch.Generator().manual_seed(0))
        return model

    model, pools, distances = started(), [], []
    with torch.no_grad():
        backbone.run(
            backbone.stem(pixels),
            build_method("linear-probe", backbone, classes).method,
            keep=pools,
        )
        for index in range(backbone.depth):
            pool = pools[index][:, backbone.prefix :].flatten(0, 1).double()
            near = torch.cdist(model.method.entering(index).double(), pool).min(1)
            distances.append((near.values / pool[near.indices].norm(dim=1)).max().item())
    prompts = backbone.depth * prompt_tokens * backbone.width
    return {
        "distance": max(distances),
        "outside": count_parameters(model)["method"] - prompts,
        "encoder": max(
            sum(p.numel() for p in started(**s).source.model.parameters() if p.requires_grad)
            for s in STARTS
        ),
        "frozen": count_parameters(started(frozen=True))["method"],
    }


def clusters(
    backbone: Backbone,
    task: Task,
    recipe: Recipe,
    prompt_tokens: int = 10,
    epochs: int = 5,
    seed: int = 0,
) -> dict:
    """How DA-VPT's classes lie on its prompts in training.

    Returns:
        "empty": prompts without a class, before the first epoch and after each. "updates": how
            often the mapping is
        computed after the first time, over the number of epochs.
    """
    model = build_method("da-vpt", backbone, task.classes, prompt_tokens=prompt_tokens)
    method, empty, calls = model.method, [], []
    recluster = method.after_epoch

    def counted():
        calls.append(1)
        recluster()

    method.after_epoch = counted
    fit(
        model,
        task,
        replace(recipe, epochs=epochs),
        seed,
        watch=lambda epoch: empty.append(method.clusters - len(method.cluster.unique())),
    )
    return {"empty": empty, "updates": len(calls) / epochs}
