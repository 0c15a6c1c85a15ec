"""SGD on many shallow ViTs at once: all trials of a curve are one batch of tensors."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from visprompt.errors import BadInput, choose

from .shallow_vit import Settings, draw, gradients, initial, on_relevant

MEMORY = 16 * 2**20  # bytes of a chunk on a processor: small, so that it stays in the caches
# of an accelerator's free memory that a chunk may take; the estimate leaves out the smaller tensors
SHARE = 0.5
GLANCE = 4  # held-out samples looked at before all of them are
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


def run_trials(
    trials: list[tuple[Settings, int]],
    memory: int | None = None,
    device: str = "cpu",
    watch=None,
    keep=None,
) -> list[dict]:
    """Train one model per pair of settings and seed, all together, until each reaches the goal or
    the cap.

    A trial has its own generator and leaves the batch when done: its company changes its result by
    rounding only.

    Args:
        trials: settings that agree in the fields `SHARED`; seeds may come again with other
            settings.
        memory: bytes that one chunk of trials may take; `room` says how many unless given.
        watch: f(settings, weights, weights at the start, held-out data) -> {name: `(T,)`}, asked at
            every check.
        keep: names that the trace shall hold; all of them unless given. With none, a check stops at
            a few samples whose losses alone put the mean above the goal, which is quicker and
            changes no result.

    Returns:
        one dict a trial: "seed", "steps" (at the goal; None when censored), "loss", "error" (test,
            at the end), "trace": {"step", "loss", "error", "attention" and the names of `watch`: a
            list, one entry a check}, of which `keep` chooses.

    Raises:
        BadInput: no trials, settings that cannot be trained together, or an unknown name in `keep`.
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
    one = (
        2
        * max(s.batch, s.test_size)
        * s.tokens
        * (s.neurons + s.heads * s.tokens)
        * s.torch_dtype.itemsize
    )
    chunk = max(1, (room(device) if memory is None else memory) // one)
    results = []
    for start in range(0, len(trials), chunk):
        results += _run_chunk(trials[start : start + chunk], device, watch, keep)
    return results


class _Batches:
    """One trial's training data: new for every step, or N samples in epochs that are shuffled
    anew."""

    def __init__(self, s: Settings, g: torch.Generator):
        self.s, self.g, self.order = s, g, torch.empty(0, dtype=torch.long)
        if s.samples:
            self.x, self.y, _ = draw(s, g, s.samples)

    def block(self) -> tuple[Tensor, Tensor]:
        """Tokens `(BLOCK, B, L, d)` and labels `(BLOCK, B, K)` of the next steps: one call for many
        small steps."""
        size = self.s.batch
        if not self.s.samples:
            self.x, self.y, _ = draw(self.s, self.g, BLOCK * size)
        while len(self.order) < BLOCK * size:
            epoch = torch.randperm(len(self.y), generator=self.g)
            # what is left over is dropped
            self.order = torch.cat([self.order, epoch[: len(epoch) // size * size]])
        now, self.order = self.order[: BLOCK * size], self.order[BLOCK * size :]
        return self.x[now].unflatten(0, (BLOCK, size)), self.y[now].unflatten(0, (BLOCK, size))


def _blocks(batches: list[_Batches], device: str) -> list[Tensor]:
    """The next steps of all trials: tokens `(BLOCK, T, B, L, d)` with features first in memory, and
    labels."""
    x, y = (torch.stack(part, 1) for part in zip(*(each.block() for each in batches)))
    return [x.permute(0, 1, 4, 2, 3).contiguous().permute(0, 1, 3, 4, 2).to(device), y.to(device)]


def _far(s: Settings, w: dict[str, Tensor], test: list[Tensor]) -> bool:
    """Whether the first few losses alone, over the number of all, keep every trial's mean above the
    goal."""
    margin = gradients(s, w, test[0][:, :GLANCE], test[1][:, :GLANCE], only_margin=True)[0]
    least = torch.relu(1 - margin).sum(1) / test[0].shape[1]
    return bool((least > 1.001 * s.goal).all())  # beyond what the order of a sum can change


def _look(
    s: Settings, w: dict[str, Tensor], first: dict[str, Tensor], test: list[Tensor], watch
) -> dict[str, Tensor]:
    """What a check sees of all held-out samples: name -> `(T,)`."""
    margin, attention = gradients(s, w, test[0], test[1], only_margin=True)
    return {
        "loss": torch.relu(1 - margin).mean(1),
        "error": (margin <= 0).to(margin.dtype).mean(1),
        "attention": on_relevant(attention, test[2]),
        **(watch(s, w, first, test) if watch else {}),
    }


def _run_chunk(trials, device, watch, keep) -> list[dict]:
    s = trials[0][0]
    own = [torch.Generator().manual_seed(seed) for _, seed in trials]
    weights = [initial(each, g) for (each, _), g in zip(trials, own)]
    w = {name: torch.stack([one[name] for one in weights]).to(device) for name in weights[0]}
    w["hidden"] = w["hidden"].mT.contiguous().mT  # features first in memory, as in `layouts`
    held_out = [draw(each, g, each.test_size, even=True) for (each, _), g in zip(trials, own)]
    test = [torch.stack(part).to(device) for part in zip(*held_out)]
    first = dict(w)
    batches = [_Batches(each, g) for (each, _), g in zip(trials, own)]
    results: list[dict] = [{"seed": seed, "steps": None, "trace": {}} for _, seed in trials]
    running, check, block = list(range(len(trials))), 0, []
    for step in range(s.max_steps + 1):
        last = step == s.max_steps
        if step >= check or last:
            check = math.ceil(max(step + 1, step * s.check_growth))
            if last or keep is None or len(keep) or not _far(s, w, test):
                seen = _look(s, w, first, test, watch)
                done = seen["loss"] < s.goal
                _note(results, running, step, seen, done, keep)
                if done.any() and not s.run_on:
                    left = (~done).nonzero().squeeze(1)
                    running = [running[row] for row in left.tolist()]
                    w, first = ({n: v[left] for n, v in group.items()} for group in (w, first))
                    test, block = [part[left] for part in test], [part[:, left] for part in block]
        if not running or last:
            break
        if step % BLOCK == 0:
            block = _blocks([batches[i] for i in running], device)
        for name, gradient in gradients(s, w, block[0][step % BLOCK], block[1][step % BLOCK])[
            1
        ].items():
            w[name] = torch.sub(w[name], gradient, alpha=s.step)
    return results


def _note(
    results: list[dict], running: list[int], step: int, seen: dict[str, Tensor], done: Tensor, keep
) -> None:
    """Enter a check into the results of the trials that run."""
    numbers = {name: value.tolist() for name, value in seen.items()}
    for row, i in enumerate(running):
        if done[row] and results[i]["steps"] is None:
            results[i]["steps"] = step
        results[i] |= {"loss": numbers["loss"][row], "error": numbers["error"][row]}
        now = {
            "step": step,
            **{name: float(f"{value[row]:.4g}") for name, value in numbers.items()},
        }
        for name in now if keep is None else keep:
            results[i]["trace"].setdefault(choose("keep", name, now), []).append(now[name])
