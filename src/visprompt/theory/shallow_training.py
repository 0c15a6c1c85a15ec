"""SGD on many shallow ViTs at once: all trials of a curve are one batch of tensors."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from ..errors import BadInput
from .shallow_vit import Settings, draw, gradients, initial, on_relevant

MEMORY = 32 * 2**20  # bytes of a chunk on a processor, near the size of its caches: there larger ones are slower
SHARE = 0.5  # of an accelerator's free memory that a chunk may take; the estimate leaves out the smaller tensors
BLOCK = 32  # steps whose data are drawn together; part of what a seed means
SHARED = (
    "tokens",
    "drop",
    "dim",
    "neurons",
    "output",
    "attention",
    "heads",
    "skip",
    "classes",
    "step",
    "batch",
    "max_steps",
    "goal",
    "run_on",
    "test_size",
    "check_growth",
    "dtype",
)


def room(device: str) -> int:
    """Bytes that one chunk of trials may take on a device."""
    if device.startswith("cuda"):
        return int(SHARE * torch.cuda.mem_get_info(device)[0])
    return MEMORY


def run_trials(trials: list[tuple[Settings, int]], memory: int | None = None, device: str = "cpu", watch=None) -> list[dict]:
    """Train one model per pair of settings and seed, all together, until each reaches the goal or the cap.

    A trial has its own generator and leaves the batch when done: its company changes its result by rounding only.

    Args:
        trials: settings that agree in the fields `SHARED`; seeds may come again with other settings.
        memory: bytes that one chunk of trials may take; `room` says how many unless given.
        watch: f(settings, weights, weights at the start, held-out data) -> {name: `(T,)`}, asked at every check.

    Returns:
        one dict a trial: "seed", "steps" (at the goal; None when censored), "loss", "error" (test, at the end),
        "trace": {"step", "loss", "error", "attention" and the names of `watch`: a list, one entry a check}.

    Raises:
        BadInput: no trials, or settings that cannot be trained together.
    """
    if not trials:
        raise BadInput("trials must hold at least one pair (settings, seed)")
    wanted = {name: getattr(trials[0][0], name) for name in SHARED}
    for s, _ in trials:
        other = [name for name in SHARED if getattr(s, name) != wanted[name]]
        if other:
            raise BadInput(f"trials of one batch must agree in {', '.join(other)}")
    s = trials[0][0]
    # The hidden layer and its gate, the attention and its gradient.
    one = 2 * max(s.batch, s.test_size) * s.tokens * (s.neurons + s.heads * s.tokens) * s.torch_dtype.itemsize
    chunk = max(1, (room(device) if memory is None else memory) // one)
    results = []
    for start in range(0, len(trials), chunk):
        results += _run_chunk(trials[start : start + chunk], device, watch)
    return results


class _Batches:
    """One trial's training data: new for every step, or N samples in epochs that are shuffled anew."""

    def __init__(self, s: Settings, g: torch.Generator):
        self.s, self.g, self.order = s, g, torch.empty(0, dtype=torch.long)
        if s.samples:
            self.x, self.y, _ = draw(s, g, s.samples)

    def next(self) -> tuple[Tensor, Tensor]:
        if len(self.order) < self.s.batch:  # what an epoch leaves over is dropped
            if not self.s.samples:  # many steps' data in one call: drawing is otherwise half of a small step
                self.x, self.y, _ = draw(self.s, self.g, BLOCK * self.s.batch)
            self.order = torch.randperm(len(self.y), generator=self.g)
        now, self.order = self.order[: self.s.batch], self.order[self.s.batch :]
        return self.x[now], self.y[now]


def _run_chunk(trials, device, watch) -> list[dict]:
    s = trials[0][0]
    own = [torch.Generator().manual_seed(seed) for _, seed in trials]
    weights = [initial(each, g) for (each, _), g in zip(trials, own)]
    w = {name: torch.stack([one[name] for one in weights]).to(device) for name in weights[0]}
    held_out = [draw(each, g, each.test_size, even=True) for (each, _), g in zip(trials, own)]
    test = [torch.stack(part).to(device) for part in zip(*held_out)]
    first = dict(w)
    batches = [_Batches(each, g) for (each, _), g in zip(trials, own)]
    results: list[dict] = [{"seed": seed, "steps": None, "trace": {}} for _, seed in trials]
    running, check = list(range(len(trials))), 0
    for step in range(s.max_steps + 1):
        if step >= check or step == s.max_steps:
            check = math.ceil(max(step + 1, step * s.check_growth))
            margin = gradients(s, w, test[0], test[1], only_margin=True)[0]
            seen = {
                "loss": torch.relu(1 - margin).mean(1),
                "error": (margin <= 0).to(margin.dtype).mean(1),
                "attention": on_relevant(s, w, test[0], test[2]),
                **(watch(s, w, first, test) if watch else {}),
            }
            done = seen["loss"] < s.goal
            for row, i in enumerate(running):
                if done[row] and results[i]["steps"] is None:
                    results[i]["steps"] = step
                results[i] |= {"loss": seen["loss"][row].item(), "error": seen["error"][row].item()}
                for name, value in {"step": torch.full_like(done, step, dtype=torch.long), **seen}.items():
                    number = value[row].item()
                    results[i]["trace"].setdefault(name, []).append(number if name == "step" else float(f"{number:.4g}"))
            if done.any() and not s.run_on:
                keep = (~done).nonzero().squeeze(1)
                running = [running[row] for row in keep.tolist()]
                w, first = ({n: v[keep] for n, v in group.items()} for group in (w, first))
                test = [part[keep] for part in test]
        if not running or step == s.max_steps:
            break
        pairs = [batches[i].next() for i in running]
        x, y = (torch.stack(part).to(device) for part in zip(*pairs))
        for name, gradient in gradients(s, w, x, y)[1].items():
            w[name] = w[name] - s.step * gradient
    return results
