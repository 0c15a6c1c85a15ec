"""Recipes as released follow plain definitions of the first 52 steps of released code, on a network
that averages and on one with a class token.

The definitions are written from what is known of that code (start, order, optimiser, warm-up,
decay, sampler, pooling) and use timm and torch alone. Three things differ on purpose: what is
random is this project's own stream, since theirs is random too, nothing is dropped, and numbers are
float64.
"""

import copy
import math

import pytest
import torch
from conftest import tiny_task
from test_fidelity import DEEP, deep, network, stem
from torch.nn import functional as F

import visprompt as vp
from visprompt.chance import stream
from visprompt.training import activations, loop
from visprompt.training.recipe import load_recipe

EPOCHS, BATCH, WARM, STEPS = 13, 6, 2, 4  # epochs, images, epochs, steps an epoch: 52 steps
SHORT = {"epochs": EPOCHS, "batch_size": BATCH, "warmup": WARM / EPOCHS}


def followed(slug, recipe, backbone, task, settings, monkeypatch):
    """Fit by a recipe -> (the loss of each step, the start of prompts and head, the method)."""
    losses, start, normalise = [], [], activations.normalise
    monkeypatch.setattr(activations, "normalise", lambda *given: normalise(*given).double())
    model = vp.build_method(slug, backbone, task.classes, **settings).double()
    whole = model.training_loss
    model.training_loss = lambda *given: losses.append(whole(*given)) or losses[-1]

    def watch(epoch):
        if epoch == 0:
            kept = {name: part.detach().clone() for name, part in model.state_dict().items()}
            parts = [*model.method.named_parameters("method"), *model.head.named_parameters("head")]
            start.append({name: kept.pop(name).requires_grad_() for name, _ in parts})
            start.append(kept)

    loop.fit_with_extras(model, task, recipe, 3, watch=watch)
    return [loss.item() for loss in losses], *start


def pixels(images):
    """Bytes -> numbers from -1 to 1, as the small network takes them."""
    return ((images.float() / 255 - 0.5) / 0.5).double()


def shuffled(labels, dropped):
    """Batches of each epoch; an incomplete last one may be left out."""
    order = stream(3, "order")
    while True:
        batches = torch.randperm(len(labels), generator=order).split(BATCH)
        yield batches[: len(labels) // BATCH] if dropped else batches


def by_class(labels, _):
    """Batches of two images of each of three classes."""
    order, classes = stream(3, "order"), [torch.where(labels == one)[0] for one in labels.unique()]
    while True:
        batches = []
        for _ in range(STEPS):
            three = torch.randperm(len(classes), generator=order)[:3].tolist()
            pairs = [
                (classes[one], torch.randperm(len(classes[one]), generator=order)) for one in three
            ]
            batches.append(torch.cat([images[places[:2]] for images, places in pairs]))
        yield batches


def stepped(loss_of, task, optimiser, rate, epochs, between=lambda epoch: None):
    """The loss of each step of plain training.

    Args:
        loss_of: (images, labels) -> the loss.
        rate: (epoch, step) -> the learning rate of all parameters.
        epochs: the batches of each epoch.
        between: called after each epoch.
    """
    (images, labels), losses = task.train, []
    for epoch, batches in zip(range(EPOCHS), epochs):
        for batch in batches:
            for group in optimiser.param_groups:
                group["lr"] = rate(epoch, len(losses))
            loss = loss_of(pixels(images[batch]), labels[batch])
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
            losses.append(loss.item())
        between(epoch)
    return losses


def by_step(rate, last):
    """A line from 0, then a cosine down to `last`, with every step."""
    warm, total = WARM * STEPS, EPOCHS * STEPS

    def of(epoch, step):
        if step < warm:
            return rate * step / warm
        return last + (rate - last) * 0.5 * (1 + math.cos(math.pi * (step - warm) / (total - warm)))

    return of


def vpt(averages, monkeypatch, **changed):
    """VPT-Deep -> (the losses of the recipe, those of the definition)."""
    own = {"learning_rate": 0.05, "dropout": 0.0}
    own["as_released"] = "averaged prompts" if averages else ""
    recipe = load_recipe("vpt", "vpt-deep", True, **{**SHORT, **own, **changed})
    backbone, task = network(averages), tiny_task(per_split=(BATCH * STEPS - 2, 6, 6))
    found, start, _ = followed("vpt-deep", recipe, backbone, task, DEEP, monkeypatch)
    *prompts, weight, bias = start.values()
    bound = math.sqrt(6 / (3 * 4 * 4 + 16))
    assert 0.8 * bound < max(prompt.abs().max() for prompt in prompts) <= bound
    assert bias.eq(-math.log(99)).all() and 0.5 < weight.std() / math.sqrt(2 / 3) < 1.5

    def rate(epoch, step):  # once an epoch, from 0
        if epoch < WARM:
            return 0.05 * epoch / WARM
        return 0.05 * 0.5 * (1 + math.cos(math.pi * (epoch - WARM) / (EPOCHS - WARM)))

    def loss(images, labels):
        features = deep(backbone.model, images, prompts, "fresh")
        return F.cross_entropy(F.linear(features, weight, bias), labels)

    groups = [{"params": [*prompts, weight], "weight_decay": 0.001}, {"params": [bias]}]
    optimiser = torch.optim.SGD(groups, lr=0.0, momentum=0.9, weight_decay=0.0)
    return found, stepped(loss, task, optimiser, rate, shuffled(task.train[1], False))


def spt(averages, monkeypatch, **changed):
    """SPT-Deep -> (the losses of the recipe, those of the definition)."""
    own = {"learning_rate": 0.03}
    own["as_released"] = "bare tokens, other images" + ", averaged prompts" * averages
    recipe = load_recipe("spt", "spt-deep", True, **{**SHORT, **own, **changed})
    backbone, task = network(averages), tiny_task(per_split=(BATCH * STEPS + 2, 6, 6))
    found, start, _ = followed("spt-deep", recipe, backbone, task, DEEP, monkeypatch)
    *prompts, weight, bias = start.values()
    x = pixels(task.train[0])
    entering, whole = [backbone.model.patch_embed(x)], stem(backbone.model, x)
    for block in backbone.model.blocks[:-1]:
        whole = block(whole)
        entering.append(whole[:, 1:])
    for prompt, tokens in zip(prompts, entering, strict=True):
        assert torch.cdist(prompt, tokens.flatten(0, 1)).amin(1).max() < 1e-6
    assert bias.eq(0).all() and 0.7 < weight.std() / 0.02 < 1.3

    def loss(images, labels):
        features = deep(backbone.model, images, prompts, "own")
        return F.cross_entropy(F.linear(features, weight, bias), labels)

    decays = [*[0.01] * len(prompts), 3.0, 0.0]  # prompts, the head's weights, its bias
    groups = [{"params": [p], "weight_decay": d} for p, d in zip(start.values(), decays)]
    optimiser, epochs = torch.optim.AdamW(groups, lr=0.0), shuffled(task.train[1], True)
    return found, stepped(loss, task, optimiser, by_step(0.03, 1e-8), epochs)


def guided(vit, images, prompts, first):
    """DA-VPT -> features, and of each guided block the class token's query and the mean patch."""
    x, seen, width = stem(vit, images), [], vit.embed_dim
    for index, (block, own) in enumerate(zip(vit.blocks, prompts, strict=True)):
        if index >= first:
            query = block.attn.qkv(block.norm1(x[:, 0]))[:, :width]
            seen.append((query, x[:, 1:].mean(1)))
        out = block(torch.cat([x[:, :1], own.expand(len(x), -1, -1), x[:, 1:]], 1))
        x = torch.cat([out[:, :1], out[:, 1 + len(own) :]], 1)
    out = vit.norm(out)  # before the mean, of prompts and patches
    return out[:, 0] if vit.global_pool == "token" else out[:, 1:].mean(1), seen


def anchored(proxies, points, mine):
    """Proxy-anchor loss of proxies of length 5, with a temperature of 1/32 and a margin of 0.1."""
    similar = 5 * F.normalize(proxies, dim=1) @ F.normalize(points, dim=1).T
    near = (torch.exp(-32 * (similar - 0.1)) * mine).sum(1).log1p()
    far = (torch.exp(32 * (similar + 0.1)) * ~mine).sum(1).log1p()
    return near.mean() + far.mean()


def clustered(means, centroids):
    """At most 20 rounds of cosine k-means of class means -> centroids, cluster of each class."""
    means = F.normalize(F.layer_norm(means, means.shape[1:]), dim=1)
    for _ in range(20):
        nearest = (means @ F.normalize(centroids, dim=1).T).argmax(1)
        sums = [means[nearest == k].sum(0) for k in range(len(centroids))]
        kept = [sums[k] if k in nearest else centroids[k] for k in range(len(centroids))]
        centroids = F.normalize(torch.stack(kept), dim=1)
    return centroids, (means @ centroids.T).argmax(1)


def freed(vit):
    """What "+" trains of a network: the class token, and biases of all but queries and fc1."""
    for block in vit.blocks:
        query = block.attn.qkv.bias.requires_grad_()
        query.register_hook(
            lambda grad: torch.cat([0 * grad[: vit.embed_dim], grad[vit.embed_dim :]])
        )
        yield query
        for layer in (block.attn.proj, block.mlp.fc2, block.norm1, block.norm2):
            yield layer.bias.requires_grad_()
    yield vit.cls_token.requires_grad_()


SMALL = "small start, normed class means, class query, mean patch, "
CHOSEN = {"prompt_tokens": 4, "guided_tokens": 3, "guided_from": 2, "beta": 0.05, "lambda_": 0.1}
METRIC = {"normaliser": "all", "projection": "none", "patches": "tokens"}
SCALED = {"temperature": 0.00625, "margin": 0.02}  # by 5


PLUS = {"biases": ("key", "value", "proj", "fc2", "norm1", "norm2")}


def davpt(averages, monkeypatch, plus=False, **changed):
    """DA-VPT or "+" -> (the losses of the recipe, those of the definition)."""
    own = {"learning_rate": 0.003, "drop_path": 0.0, "final_rate": 1e-9, "weight_decay": 0.05}
    slug = "da-vpt-plus" if plus else "da-vpt"
    own["as_released"] = SMALL + "clusters from epoch 10" + ", averaged prompts" * averages
    recipe = load_recipe("davpt", slug, True, **{**SHORT, **own, **changed})
    backbone = network(averages)
    vit, task = copy.deepcopy(backbone.model), tiny_task(classes=6, per_split=(BATCH * STEPS, 6, 6))
    settings = {**CHOSEN, **METRIC, **SCALED, **(PLUS if plus else {})}
    found, start, kept = followed(slug, recipe, backbone, task, settings, monkeypatch)
    prompts = [start[name] for name in start if name.startswith("method.prompts")]
    weight, bias = start["head.weight"], start["head.bias"]
    bound = math.sqrt(6 / (3 * 4 * 4 + 16)) / 25
    assert 0.8 * bound < max(prompt.abs().max() for prompt in prompts) <= bound
    assert bias.eq(0).all() and 0.7 < weight.std() / 0.02 < 1.3
    centroids, cluster = kept["method.centroids"], kept["method.cluster"]
    labels, features = task.train[1], backbone(pixels(task.train[0]))
    means = torch.stack([features[labels == one].mean(0) for one in range(6)])
    again, nearest = clustered(means, centroids)  # drawn, and then clustered to the end
    assert torch.allclose(again, centroids, atol=1e-6) and nearest.equal(cluster)
    state, of_epoch = [centroids, cluster], []

    def loss(images, labels):
        features, seen = guided(vit, images, prompts, 2)
        of_epoch.append((features.detach(), labels))
        mine = torch.arange(3)[:, None] == state[1][labels]
        terms = [
            0.1 * anchored(proxies, query, mine) + 0.05 * anchored(proxies, patch, mine)
            for proxies, (query, patch) in zip(prompts[2:], seen, strict=True)
        ]
        return F.cross_entropy(F.linear(features, weight, bias), labels) + sum(terms) / len(terms)

    def between(epoch):
        features, labels = map(torch.cat, zip(*of_epoch))
        of_epoch.clear()
        if epoch >= 10:
            present = labels.unique()
            means = torch.stack([features[labels == one].mean(0) for one in present])
            state[0], state[1][present] = clustered(means, state[0])

    groups = [{"params": prompts, "weight_decay": 0.05}, {"params": [weight], "weight_decay": 1.0}]
    others = [bias, *(freed(vit) if plus else [])]
    groups.append({"params": others, "weight_decay": 0.0})
    optimiser = torch.optim.AdamW(groups, lr=0.0)
    every = [*prompts, weight, *others]
    optimiser.register_step_pre_hook(lambda *_: torch.nn.utils.clip_grad_value_(every, 10))
    epochs = by_class(labels, False)
    return found, stepped(loss, task, optimiser, by_step(0.003, 1e-9), epochs, between)


def davpt_plus(*given, **changed):
    return davpt(*given, plus=True, **changed)


def apart(found, wanted):
    """The largest difference of two lists of 52 losses, of training that learned something."""
    assert len(found) == len(wanted) == EPOCHS * STEPS
    assert min(wanted) < 0.95 * wanted[0]
    return max(abs(a - b) for a, b in zip(found, wanted, strict=True))


@pytest.mark.parametrize("averages", [True, False], ids=["averages", "class token"])
@pytest.mark.parametrize("loop_of", [vpt, spt, davpt, davpt_plus])
def test_a_recipe_follows_its_released_code(loop_of, averages, monkeypatch):
    assert apart(*loop_of(averages, monkeypatch)) < 1e-8


MISTAKES = [
    (vpt, {"schedule": "warm-up, then cosine, by epoch"}),
    (vpt, {"schedule": "warm-up from 0, then cosine"}),
    (vpt, {"spared": "nothing"}),
    (spt, {"schedule": "warm-up, then cosine"}),
    (spt, {"final_rate": 1e-4}),
    (spt, {"spared": "nothing"}),
    (davpt, {"schedule": "warm-up, then cosine"}),
    (davpt, {"spared": "nothing"}),
    (davpt_plus, {"spared": "nothing"}),
    (davpt, {"clip": None}),
    (davpt, {"batches": "shuffled"}),
    (davpt, {"as_released": SMALL + "clusters from epoch 1"}),
]


@pytest.mark.parametrize(
    "loop_of, changed", MISTAKES, ids=[f"{of.__name__} {names}" for of, names in MISTAKES]
)
def test_another_recipe_leaves_the_released_code(loop_of, changed, monkeypatch):
    assert apart(*loop_of(False, monkeypatch, **changed)) > 1e-6
