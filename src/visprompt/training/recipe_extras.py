"""What recipes ask of a fit beyond the plain loop: decays, dropout, schedules, compilation.

`loop.fit` knows none of it. `within` wraps the live model and the optimiser while a fit runs, and
restores both when it ends. It wraps objects, and the loop has no branches for it, because records
name the code that ran: a recipe without extras runs the plain loop alone, and no change in this
module outdates its record.
"""

import math
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import fields
from functools import partial

import torch
from timm.layers import drop_path
from torch import nn
from torch.nn import functional as F
from torch.optim.optimizer import register_optimizer_step_pre_hook

from ..chance import stream
from ..data.originals import WHOLE_CROPS, Known
from ..data.tasks import Task
from ..errors import BadInput
from ..methods import TunedModel, prompts, released
from ..methods.adapter import Bottleneck
from ..models import pooling
from .activations import SHARED
from .recipe import Recipe

BESIDE = (
    "head_decay",
    "spared",
    "schedule",
    "final_rate",
    "last_batch",
    "dropout",
    "drop_path",
    "head_start",
    "compile",
    "batches",
    "clip",
    "as_released",
)


def asks(recipe: Recipe, model: TunedModel) -> bool:
    """Whether the recipe needs more than the plain loop, or the model has a released form."""
    beside = (
        getattr(recipe, field.name) != field.default
        for field in fields(recipe)
        if field.name in BESIDE
    )
    return recipe.augmentation in WHOLE_CROPS or any(beside) or bool(released.form_of(model))


def needed(recipe: Recipe, model: TunedModel):
    """The context that a fit needs around the plain loop: `within`, `pooled` alone, or None."""
    if asks(recipe, model):
        return within
    asked = recipe.pooling if pooling.averages(model.source) else pooling.NORM_FIRST
    return pooled if {asked, pooling.order_of(model.source)} != {pooling.NORM_FIRST} else None


@contextmanager
def pooled(model: TunedModel, task: Task, recipe: Recipe, seed: int) -> Iterator[None]:
    """Context of a fit that pools in the recipe's order; the model keeps it afterwards.

    Pooled activations are shared only with runs of the same order.
    """
    source = pooling.ordered(model.source, recipe.pooling)
    if source is not model.source:
        model.__dict__["source"] = source
        model.reset()
    with wrapped(
        SHARED,
        "get",
        lambda get: lambda key, compute, gib: get((*key, recipe.pooling), compute, gib),
    ):
        yield


@contextmanager
def within(model: TunedModel, task: Task, recipe: Recipe, seed: int) -> Iterator[None]:
    """Context in which `loop.fit` of this model does what the recipe asks beyond the plain loop.

    Dropout applies above the first trained block only: activations below it are computed once.

    Raises:
        BadInput: the method has nothing to drop, or its backbone's blocks cannot be opened.
    """
    check(model, task, recipe)
    devices = [next(model.parameters()).device] if next(model.parameters()).is_cuda else []
    with ExitStack() as stack:
        stack.enter_context(pooled(model, task, recipe, seed))
        stack.enter_context(torch.random.fork_rng(devices=devices))
        torch.manual_seed(int(torch.randint(2**62, (), generator=stream(seed, "preparation"))))
        images = used_images(recipe, len(task.train[1]))
        if recipe.batches == "by class":
            drawn = partial(by_class, task.train[1], images, recipe.batch_size, seed)
            stack.enter_context(own_batches(drawn, images))
        elif images < len(task.train[1]):
            full = partial(whole_batches, len(task.train[1]), recipe.batch_size, seed)
            stack.enter_context(own_batches(full, images))
        steps = Steps(model, recipe, images)
        stack.callback(register_optimizer_step_pre_hook(steps).remove)
        stack.enter_context(released_form(model, recipe))
        if recipe.head_start != "small":
            stack.enter_context(
                wrapped(model, "reset", lambda reset: started(model, recipe.head_start, reset))
            )
        for owner, name, wrap in drops(model, recipe):
            stack.enter_context(wrapped(owner, name, wrap))
        if recipe.compile:
            stack.enter_context(wrapped(model, "features", compiled))
        yield


def check(model: TunedModel, task: Task, recipe: Recipe) -> None:
    """Check that method, backbone and task can do what the recipe asks.

    Raises:
        BadInput: they cannot; the message says what to write.
    """
    if recipe.augmentation in WHOLE_CROPS and not isinstance(task.train[0], Known):
        why = "crops originals, and the task has none; give it to data.originals.with_originals"
        raise BadInput(f"augmentation {recipe.augmentation!r} {why}, or write 'crop and flip'.")
    if (
        recipe.dropout
        and not isinstance(model.method, (prompts.Deep, prompts.Shallow))
        and not bottlenecks(model)
    ):
        raise BadInput(
            f"dropout is of prompts and of adapters, and {model.slug} has neither; write dropout 0."
        )
    if recipe.final_rate and recipe.schedule == "cosine":
        raise BadInput(
            "final_rate ends a schedule with a warm-up; write schedule 'warm-up, then cosine', "
            "or leave final_rate out."
        )
    if recipe.drop_path and not (model.source.is_vit and model.source.opened):
        raise BadInput(
            f"drop_path is written for timm's standard ViT blocks; for {model.source.name} write 0."
        )
    if recipe.compile and not (model.source.is_vit and model.source.opened):
        raise BadInput(
            f"compile is tried on timm's standard ViT blocks alone; for "
            f"{model.source.name} write False."
        )


@contextmanager
def released_form(model: TunedModel, recipe: Recipe) -> Iterator[None]:
    """Apply the recipe's released-code differences to the method; forms stay afterwards."""
    asked = released.named(model.slug, recipe.as_released)
    released.take(model, asked)
    try:
        yield
    finally:
        released.take(model, [kind for kind in asked if issubclass(kind, released.Form)])


@contextmanager
def wrapped(owner: object, name: str, wrap) -> Iterator[None]:
    """Temporarily replace an attribute of an object by `wrap` of it."""
    own = name in vars(owner)
    before = getattr(owner, name)
    setattr(owner, name, wrap(before))
    try:
        yield
    finally:
        setattr(owner, name, before) if own else delattr(owner, name)


class Steps:
    """Called before each optimiser step: sets the learning rates and decays each parameter.

    Each parameter has its own weight decay, applied as the optimiser does: AdamW's p (1 - rate
    decay), SGD's gradient + decay p.
    """

    def __init__(self, model: TunedModel, recipe: Recipe, images: int):
        self.model, self.recipe, self.of, self.step = model, recipe, None, 0
        self.epoch = math.ceil(images / recipe.batch_size)  # steps
        self.total = recipe.epochs * self.epoch
        self.warm = max(1, round(recipe.warmup * self.total))

    def factor(self, step: int) -> float:
        """The rate at a step divided by the recipe's: linear warm-up, then a cosine down to 0."""
        if step < self.warm:
            return (step + ("from 0" not in self.recipe.schedule)) / self.warm
        return 0.5 * (1 + math.cos(math.pi * (step - self.warm) / max(1, self.total - self.warm)))

    def rate(self, own: float, step: int) -> float:
        """The rate at a step, where the recipe's is `own`."""
        if self.recipe.schedule.endswith("by epoch"):
            step -= step % self.epoch
        final = self.recipe.final_rate if step >= self.warm else 0.0
        return final + (own - final) * self.factor(step)

    def decay(self, parameter: nn.Parameter) -> float:
        """Weight decay of one parameter."""
        head, recipe = self.model.head, self.recipe
        one = recipe.spared == "one-dimensional" and parameter.ndim < 2
        if one or (recipe.spared == "head bias" and parameter is head.bias):
            return 0.0
        in_head = parameter is head.weight or parameter is head.bias
        return (
            recipe.head_decay if in_head and recipe.head_decay is not None else recipe.weight_decay
        )

    @torch.no_grad()
    def __call__(self, optimizer, args, kwargs) -> None:
        if optimizer is not self.of:  # a method that prunes is trained twice
            self.of, self.step = optimizer, 0
        if self.recipe.clip is not None:
            every = [p for group in optimizer.param_groups for p in group["params"]]
            nn.utils.clip_grad_value_(every, self.recipe.clip)
        for group in optimizer.param_groups:
            if self.recipe.schedule != "cosine":
                group["lr"] = self.rate(group["initial_lr"], self.step)
            group["weight_decay"] = 0.0
            for parameter in group["params"]:
                decay = self.decay(parameter)
                if decay and parameter.grad is not None and isinstance(optimizer, torch.optim.SGD):
                    parameter.grad.add_(parameter, alpha=decay)
                elif decay and parameter.grad is not None:
                    parameter.mul_(1 - group["lr"] * decay)
        self.step += 1


def used_images(recipe: Recipe, images: int) -> int:
    """How many of the training images an epoch uses; an incomplete batch alone is not dropped."""
    left = images % recipe.batch_size if recipe.last_batch == "dropped" else 0
    return images - left if left < images else images


class Batches:
    """Batches that replace those of the plain loop, one for one.

    `of` gives the next batch of `draw` for each new batch of the loop. `draw` returns the batches
    of an epoch, each the indices (B,) of its images.
    """

    def __init__(self, draw: Callable[[], Iterable[torch.Tensor]], images: int):
        self.draw, self.images, self.left, self.asked = draw, images, iter(()), None

    def of(self, batch: torch.Tensor) -> torch.Tensor:
        if batch is not self.asked:  # the loop asks once for images and once for labels
            self.asked, self.now = batch, next(self.left, None)  # type: ignore[assignment]
            if self.now is None:
                self.left = iter(self.draw())  # type: ignore[arg-type]
                self.now = next(self.left)
        return self.now


class Rows:
    """The rows of a tensor, indexed by `Batches`; it has as many as an epoch uses."""

    def __init__(self, values: torch.Tensor, batches: Batches):
        self.values, self.batches, self.device = values, batches, values.device

    def __len__(self) -> int:
        return self.batches.images

    def __getitem__(self, batch: torch.Tensor) -> torch.Tensor:
        return self.values[self.batches.of(batch).to(self.device)]


@contextmanager
def own_batches(epochs: Callable[[], Callable], images: int) -> Iterator[None]:
    """Context in which `loop.train` takes its batches from another source.

    Args:
        epochs: called once per training; returns `draw`, see `Batches`.
        images: how many an epoch uses, with repetitions.
    """
    from . import loop  # it imports this module

    def other(train):
        def trained(model, features, inputs, labels, *rest):
            batches = Batches(epochs(), images)
            return train(model, features, Rows(inputs, batches), Rows(labels, batches), *rest)

        return trained

    with wrapped(loop, "train", other):
        yield


def whole_batches(images: int, size: int, seed: int) -> Callable[[], Iterable[torch.Tensor]]:
    """Shuffled batches in the plain loop's order, without the last one where it is not full."""
    generator = stream(seed, "order")
    return lambda: torch.randperm(images, generator=generator).split(size)[: images // size]


def by_class(labels: torch.Tensor, images: int, size: int, seed: int) -> Callable[[], list]:
    """Batches by class: an epoch has as many images as shuffled ones, of which some come twice."""
    rows = [(labels == one).nonzero().flatten() for one in labels.unique()]
    generator, sizes = (
        stream(seed, "order"),
        [min(size, images - at) for at in range(0, images, size)],
    )
    return lambda: [two_of_each(rows, one, generator) for one in sizes]


def two_of_each(rows: list[torch.Tensor], size: int, generator: torch.Generator) -> torch.Tensor:
    """Two images (size,) of each of size / 2 classes; all of these come before one comes again."""
    wanted = math.ceil(size / 2)
    turns = [torch.randperm(len(rows), generator=generator) for _ in range(0, wanted, len(rows))]
    pairs = []
    for number in torch.cat(turns)[:wanted].tolist():
        order = torch.randperm(len(rows[number]), generator=generator).repeat(2)  # of one image
        pairs.append(rows[number][order[:2]])
    return torch.cat(pairs)[:size]


def started(model: TunedModel, how: str, reset):
    """`TunedModel.reset` with another initialisation of the head."""

    def start(seed: int = 0) -> None:
        reset(seed)
        weight, generator = torch.empty(model.head.weight.shape), stream(seed, "start")
        if how == "truncated normal":
            nn.init.trunc_normal_(weight, std=0.02, generator=generator)
        else:
            nn.init.kaiming_normal_(weight, mode="fan_out", generator=generator)
        with torch.no_grad():
            model.head.weight.copy_(weight)
            # a class in a hundred
            model.head.bias.fill_(0.0 if how == "truncated normal" else -math.log(99))

    return start


def compiled(features):
    """`features` through torch.compile.

    It also runs uncompiled on one image, once with gradients and once without: compiled code does
    not run as Python, and a record names the functions that ran.
    """
    torch.compiler.reset()  # versions of a function are limited, and a third method has too many
    fast, ran = torch.compile(features), set()

    def through(x):
        if torch.is_grad_enabled() not in ran:
            ran.add(torch.is_grad_enabled())
            with torch.random.fork_rng(devices=[x.device] if x.is_cuda else []):
                features(x[:1])
        return fast(x)

    return through


def bottlenecks(model: TunedModel) -> list[Bottleneck]:
    """The bottlenecks of an adapter method."""
    return [part for part in model.method.modules() if isinstance(part, Bottleneck)]


def drops(model: TunedModel, recipe: Recipe) -> Iterator[tuple]:
    """What dropout wraps: (object, name of the function, wrapper of it)."""
    method, rate = model.method, recipe.dropout
    if rate and isinstance(method, prompts.Shallow):
        yield method, "before_block", lambda enter: behind_class_token(method, rate, enter)
    if rate and isinstance(method, prompts.Deep) and method.form == "concatenate":
        yield method, "around", lambda around: before_layer(method, rate, around)
    if rate and isinstance(method, prompts.Deep):
        # one mask a batch, since keys and values are made once for all of its images; "concatenate"
        # has one an image
        yield (
            method,
            "extra",
            lambda extra: (
                lambda index, project: extra(index, lambda p: project(dropped(method, rate, p)))
            ),
        )
    for part in bottlenecks(model) if rate else ():
        yield part, "act", lambda act, part=part: lambda x: F.dropout(act(x), rate, part.training)
    if recipe.drop_path:
        yield method, "around", lambda around: stochastic_depth(model, recipe.drop_path, around)


def dropped(method: nn.Module, rate: float, x: torch.Tensor) -> torch.Tensor:
    """Dropout on x while the method is trained."""
    return F.dropout(x, rate, method.training)


def behind_class_token(method, rate: float, enter):
    """`before_block` with dropout, per image, on prompts that enter at block 0."""

    def before_block(index, x):
        y = enter(index, x)
        if index or not method.training:
            return y
        before, tokens, patches = method.split(y)
        return torch.cat([before, dropped(method, rate, tokens), patches], 1)

    return before_block


def before_layer(method, rate: float, around):
    """`around` with dropout, per image, on prompts concatenated at each block."""

    def wrapper(index, name, layer, x):
        def with_drops(y):
            before, tokens, patches = y.tensor_split(
                [method.prefix, method.prefix + y.shape[1] - x.shape[1]], 1
            )
            return layer(torch.cat([before, dropped(method, rate, tokens), patches], 1))

        return around(index, name, with_drops if name == "block" else layer, x)

    return wrapper


def stochastic_depth(model: TunedModel, rate: float, around):
    """`around` with each branch of a block skipped for some images, more often in higher blocks."""

    def wrapper(index, name, layer, x):
        y = around(index, name, layer, x)
        if name not in ("attn", "mlp") or not model.method.training:
            return y
        return drop_path(y, rate * index / max(1, model.source.depth - 1), True)

    return wrapper
