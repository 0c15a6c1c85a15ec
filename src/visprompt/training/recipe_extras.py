"""What recipes ask of a fit beyond the plain loop: decays, dropout, schedules, compilation.

`loop.fit` knows none of it. `within` wraps the live model and the optimiser while a fit runs, and
restores both when it ends. It wraps objects, and the loop has no branches for it, because records
name the code that ran: a recipe without extras runs the plain loop alone, and no change in this
module outdates its record.
"""

import math
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import fields

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
from .recipe import Recipe

BESIDE = (
    "head_decay",
    "spared",
    "schedule",
    "dropout",
    "drop_path",
    "head_start",
    "compile",
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
        stack.enter_context(torch.random.fork_rng(devices=devices))
        torch.manual_seed(int(torch.randint(2**62, (), generator=stream(seed, "preparation"))))
        steps = Steps(model, recipe, len(task.train[1]))
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
def wrapped(owner: nn.Module, name: str, wrap) -> Iterator[None]:
    """Temporarily replace an attribute of an object by `wrap` of it."""
    own = name in vars(owner)
    before = getattr(owner, name)
    setattr(owner, name, wrap(before))
    try:
        yield
    finally:
        setattr(owner, name, before) if own else delattr(owner, name)


class Steps:
    """Called before each optimiser step: sets the learning rate and decays each parameter.

    Each parameter has its own weight decay, applied as the optimiser does: AdamW's p (1 - rate
    decay), SGD's gradient + decay p.
    """

    def __init__(self, model: TunedModel, recipe: Recipe, images: int):
        self.model, self.recipe, self.of, self.step = model, recipe, None, 0
        self.epoch = math.ceil(images / recipe.batch_size)  # steps
        self.total = recipe.epochs * self.epoch
        self.warm = max(1, round(recipe.warmup * self.total))

    def factor(self, step: int) -> float:
        """The rate at a step divided by the recipe's: linear warm-up, then a whole cosine."""
        if self.recipe.schedule == "warm-up, then cosine, by epoch":
            step -= step % self.epoch
        if step < self.warm:
            return (step + 1) / self.warm
        return 0.5 * (1 + math.cos(math.pi * (step - self.warm) / max(1, self.total - self.warm)))

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
        for group in optimizer.param_groups:
            if self.recipe.schedule != "cosine":
                group["lr"] = group["initial_lr"] * self.factor(self.step)
            group["weight_decay"] = 0.0
            for parameter in group["params"]:
                decay = self.decay(parameter)
                if decay and parameter.grad is not None and isinstance(optimizer, torch.optim.SGD):
                    parameter.grad.add_(parameter, alpha=decay)
                elif decay and parameter.grad is not None:
                    parameter.mul_(1 - group["lr"] * decay)
        self.step += 1


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
    torch.compiler.reset()  # the versions of a function are limited, and the third method has too many
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
