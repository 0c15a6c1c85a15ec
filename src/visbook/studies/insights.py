"""What a fitted method shows beyond its accuracy: under noise, in its prompts, in its attention.
One record a run.

Each function fits a run of `sweeps` as `training.loop.fit` does and measures on the way; what it
returns is a record of its own kind, found again by the run's settings.
"""

import time
from collections.abc import Sequence
from functools import partial

import torch

from visprompt.data.tasks import normalise
from visprompt.measure.attention import prompt_attention
from visprompt.measure.similarity import linear_cka, normalised_mutual_information
from visprompt.records import Record, recorded
from visprompt.training import recipe_extras
from visprompt.training.loop import accuracy, data_of, fit, run_settings

from .case import Run
from .lab import Lab


def measured(kind: str, run: Run, lab: Lab, extra: dict, measure, compute: bool) -> Record | None:
    """The record of a measurement on a run: `measure(ready)` gets what `fit` takes and returns the
    values."""
    case = lab.resolve(run)
    ready = case.ready()
    around = recipe_extras.needed(ready["recipe"], ready["model"])
    model, task, other = ready["model"], ready["task"], ready["prepared_on"]
    settings = {
        **run_settings(model, task, ready["recipe"], run.seed, ready["prepared_on"]),
        **extra,
    }
    return recorded(
        kind,
        settings,
        partial(measure, ready)
        if around is None
        else partial(measure_with_extras, around, measure, ready),
        data=data_of(task.fingerprint, other and other.fingerprint),
        weights=model.source.fingerprint,
        made=[model, model.source],
        about=case.about,
        run=compute,
    )


def measure_with_extras(around, measure, ready: dict) -> dict:
    """A measurement on a run whose recipe needs a context around the plain loop."""
    with around(ready["model"], ready["task"], ready["recipe"], ready["seed"]):
        return measure(ready)


def under_noise(
    run: Run, lab: Lab, levels: Sequence[float] = (0.0, 0.05, 0.1, 0.2, 0.3), compute: bool = True
):
    """Test accuracy when Gaussian noise is added to the test images alone (iVPT Figures 4, 6).

    Args:
        levels: standard deviations, in units of the range from black to white; images are cut off
            at both ends.

    Returns:
        A record of kind "noise" whose values hold "levels" and "accuracy", percent, in the same
        order.
    """

    def measure(ready):
        fit(**ready)
        images, labels = ready["task"].test
        noise = torch.randn(images.shape, generator=torch.Generator().manual_seed(1000 + run.seed))
        noisy = [
            (images + 255 * level * noise).round().clamp(0, 255).to(torch.uint8) for level in levels
        ]
        return {
            "levels": list(levels),
            "accuracy": [accuracy(ready["model"], part, labels) for part in noisy],
        }

    return measured("noise", run, lab, {"levels": list(levels)}, measure, compute)


def prompts_and_patches(run: Run, lab: Lab, images: int = 64, compute: bool = True):
    """How prompts and patches of a deep prompt method relate, from the start to the last epoch.

    Returns:
        A record of kind "prompts" whose values hold "nmi", a list over epochs (0: before the first
        step) of lists over blocks (SPT Eq. 7-8, Figure 2); "cka", after the last epoch, a list over
        the prompts' blocks of lists over the patches' blocks (SPT Figure S4); and "test", the
        accuracy. Means over test images.
    """

    def measure(ready):
        model, task = ready["model"], ready["task"]
        backbone, method, found = model.source, model.method, []
        pixels = normalise(task.test[0][:images], backbone.mean, backbone.std).to(
            next(model.parameters()).device
        )

        @torch.no_grad()
        def tokens():
            """Prompts (L of (N_p, D)) and patches (L of (B, N, D)) that enter the blocks."""
            kept = []
            backbone.run(backbone.stem(pixels), method, keep=kept)
            return [method.entering(i) for i in range(backbone.depth)], [
                x[:, backbone.prefix :] for x in kept
            ]

        def watch(epoch):
            method.eval()
            prompts, patches = tokens()
            found.append(
                [normalised_mutual_information(p, e) for p, e in zip(prompts, patches, strict=True)]
            )
            method.train()

        values = fit(**ready, watch=watch)
        prompts, patches = tokens()
        cka = [
            [sum(linear_cka(p.T, e.T) for e in part) / len(part) for part in patches]
            for p in prompts
        ]
        return {"nmi": found, "cka": cka, "test": values["test"]}

    return measured("prompts", run, lab, {"images": images}, measure, compute)


def test_by_epoch(run: Run, lab: Lab, compute: bool = True):
    """Test accuracy behind each epoch, to see what choosing the epoch by it would add.

    Returns:
        A record of kind "epochs" whose values hold "test_by_epoch" and "val_by_epoch", percent;
        "test", behind the last epoch; "parameters" and "fit_seconds", as `fit` returns them.
    """

    def measure(ready):
        model, (images, labels), found = ready["model"], ready["task"].test, []

        def watch(epoch):
            if epoch:
                model.eval()
                found.append(accuracy(model, images, labels))

        values = fit(**ready, watch=watch)
        kept = ("val", "val_by_epoch", "parameters", "fit_seconds", "test")
        return {"test_by_epoch": found, **{name: values[name] for name in kept}}

    return measured("epochs", run, lab, {}, measure, compute)


def attention_maps(
    run: Run, lab: Lab, images: Sequence[int] = (0, 1, 2, 3), pool: int = 200, compute: bool = True
):
    """Where the class token and the prompts look (DA-VPT Figures 3, 6; iVPT Figure 7).

    Args:
        images: indices of test images whose maps are kept.
        pool: test images over which the entropies are meaned.

    Returns:
        A record of kind "attention" whose values hold "class" [image][block][patch] and "prompts"
        [image][block][prompt][patch], softmax weights meaned over heads; "entropy", by block, of
        the class token's attention to patches, in bits, meaned over `pool` images; "to_prompts", by
        block, the class token's attention that goes to prompts; "labels" of the images; "cluster",
        class -> guided prompt, for DA-VPT; "test".
    """

    def measure(ready):
        model, task = ready["model"], ready["task"]
        values = fit(**ready)
        device = next(model.parameters()).device
        pixels = normalise(task.test[0], model.source.mean, model.source.std)
        shown = prompt_attention(model, pixels[list(images)].to(device))
        many = prompt_attention(model, pixels[:pool].to(device))
        own = [rows["class"] / rows["class"].sum(-1, keepdim=True) for rows in many]
        cluster = getattr(model.method, "cluster", None)

        def lists(name, digits=5):
            by_block = [rows[name].double().cpu() for rows in shown]
            return [
                [[round(v, digits) for v in rows[i].flatten().tolist()] for rows in by_block]
                for i in range(len(images))
            ]

        return {
            "class": lists("class"),
            "prompts": lists("prompts"),
            "entropy": [float(-(w * w.clamp_min(1e-12).log2()).sum(-1).mean()) for w in own],
            "to_prompts": [float(rows["to_prompts"].mean()) for rows in many],
            "labels": task.test[1][list(images)].tolist(),
            "cluster": None if cluster is None else cluster.tolist(),
            "test": values["test"],
        }

    return measured("attention", run, lab, {"images": list(images), "pool": pool}, measure, compute)


def clustering_times(run: Run, lab: Lab, compute: bool = True):
    """How long DA-VPT's k-means takes before the first and behind each epoch (DA-VPT Figure 4).

    Returns:
        A record of kind "clustering" whose values hold "seconds", one entry a call, and "moved",
        how many classes changed their prompt in it.
    """

    def measure(ready):
        method, found, moved = ready["model"].method, [], []
        recluster = method.recluster

        def timed():
            before, start = method.cluster.clone(), time.perf_counter()
            recluster()
            found.append(round(time.perf_counter() - start, 6))
            moved.append(int((before != method.cluster).sum()))

        method.recluster, method.after_epoch = timed, torch.no_grad()(timed)
        fit(**ready)
        return {"seconds": found, "moved": moved}

    return measured("clustering", run, lab, {}, measure, compute)
