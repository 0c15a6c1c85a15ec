"""`make bench`: the fast forms beside the plain ones, as ratios of times measured in turns in one
process.

Every row leaves a record. A later call shows the records that this machine made with today's code,
and times only what has none; `--again` deletes them first.
"""

import math
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from functools import partial

import torch
from torch.utils.flop_counter import FlopCounterMode

from visprompt.errors import BadInput, choose
from visprompt.measure.cost import count_flops, training_memory
from visprompt.methods import METHODS
from visprompt.methods.parameters import count_parameters
from visprompt.models.backbones import load_backbone
from visprompt.progress import progress
from visprompt.records import Record, is_current, recorded, remember, unwatched

from ..timing import host_costs
from ..timing.clock import Side, machine
from ..timing.pairs import epochs_in_turns, methods_in_turns, pair_in_turns
from ..timing.start_times import start_times
from ..timing.task_memory import LABEL, task_memory

MODELS = {
    "cpu": ["vit_small_patch16_224", "vit_base_patch16_224"],
    "cuda": ["vit_base_patch16_224", "vit_large_patch16_224"],
}
BASE = "vit_base_patch16_224"  # the size that the papers use, and that most aims are for
BATCH = {"cpu": 8, "cuda": 64}  # on two cores the whole takes about ten minutes
CALLS = {"cpu": 1, "cuda": 3}  # steps in a turn
# prompts -> step time at ViT-Base, fast over plain
AIMS = {100: 0.62, 50: 0.75, 20: 0.87, 10: 0.95}
SPT_POOL = 5400  # 90 % of CUB-200-2011's training images, which SPT's Table 1 is about
SPT_IMAGES = {"cpu": 16, "cuda": SPT_POOL}
EMBEDDED = "vit_micro_patch4_24"
# among the methods, each at its defaults with whatever is constant cached
PLAIN = "vpt-deep, concatenated"
MEMORY_BATCH = 32  # images of the step whose memory is counted
BY_METHOD = {slug: Side(slug, cached=True) for slug in METHODS}
BY_METHOD[PLAIN] = Side("vpt-deep", {"form": "concatenate"}, trims=False)


@dataclass(frozen=True)
class Pair:
    """Two sides whose steps take turns; the ratio is the first's time over the second's."""

    label: str
    first: Side
    second: Side
    aim: float | None = None
    equal: bool = False  # one function, computed in two ways
    infer: bool = False  # time inference too


def deep(tokens: int, **changes) -> Side:
    """VPT-Deep."""
    return Side("vpt-deep", {"prompt_tokens": tokens}, **changes)


@remember
def pairs(backbone: str, device: str) -> dict[str, Pair]:
    """Name -> pair, for a ViT."""
    found, depth = {}, load_backbone(backbone, device="meta").depth
    for tokens, aim in AIMS.items():
        plain = Side("vpt-deep", {"prompt_tokens": tokens, "form": "concatenate"}, trims=False)
        label = f"VPT-Deep, {tokens} prompts: keys and values over concatenated"
        found[f"vpt-deep-{tokens}"] = Pair(
            label, deep(tokens), plain, aim if backbone == BASE else None, equal=True
        )
    ivpt = Side("ivpt", {"prompt_tokens": 10, "salient_tokens": 10})
    found["ivpt"] = Pair(
        "iVPT, N = k = 10, over VPT-Deep, 10 prompts", ivpt, deep(10), 1.05, infer=True
    )
    found["da-vpt"] = Pair(
        "DA-VPT over VPT-Deep, 10 prompts, 100 classes", Side("da-vpt"), deep(10), 1.10
    )
    block = depth // 2
    ap = Side("ap", {"block": block})
    label = f"AP at block {block} of {depth}: cached over not"
    found["ap-cached"] = Pair(label, replace(ap, cached=True), ap, (depth - block) / depth)
    if device.startswith("cuda"):
        for name, pair in list(found.items()):
            sides = {
                key: replace(getattr(pair, key), precision="bf16") for key in ("first", "second")
            }
            found[f"{name}-bf16"] = replace(pair, **sides)
        label = "VPT-Deep, 100 prompts: bf16 and compiled over float32"
        found["bf16-compiled"] = Pair(
            label, deep(100, precision="bf16", compiled=True), deep(100), 0.3
        )
    return found


def jobs(
    models: list[str], device: str, batch_size: int | None, repeats: int
) -> list[tuple[str, Callable]]:
    """(what, function of `run` that returns a record) of everything that is timed."""
    kind, found = device.split(":")[0], []
    for model in models:
        shared = {"device": device, "calls": CALLS[kind], "batch_size": batch_size or BATCH[kind]}
        for name, pair in pairs(model, device).items():
            more = {**shared, "repeats": repeats, "equal": pair.equal, "infer": pair.infer}
            found.append(
                (pair.label, partial(pair_in_turns, name, model, pair.first, pair.second, **more))
            )
        if model == BASE:
            few = min(repeats, 3)
            found.append(
                ("every method", partial(methods_in_turns, model, BY_METHOD, repeats=few, **shared))
            )
            pool = {"pool": SPT_POOL, "images": SPT_IMAGES[kind], "repeats": few, "device": device}
            found.append(("SPT's starts", partial(start_times, model, **pool)))
    for name, label in host_costs.LABELS.items():
        more = {"device": device, "repeats": repeats, "calls": CALLS[kind]}
        found.append((label, partial(host_costs.host_cost, name, **more)))
    if kind == "cpu":
        for name, (label, slug, settings, _) in epochs().items():
            more = {"repeats": repeats}
            found.append(
                (
                    label,
                    partial(epochs_in_turns, name, EMBEDDED, "position", slug, settings, **more),
                )
            )
        found.append((LABEL, task_memory))
        found.append((THEORIES["theory"], partial(theory, "theory", repeats)))
    return found + [(THEORIES[name], partial(theory, name, repeats, device)) for name in NEURONS]


def epochs(depth: int = 8) -> dict[str, tuple]:
    """Name -> label, method, settings and (L - l) / L of the epochs timed on the embedded ViT."""
    found = {"epoch-linear": ("Linear probe, an epoch: cached over not", "linear-probe", {}, 0.0)}
    for block in (0, depth // 2, depth - 1):
        label = f"AP at block {block} of {depth}, an epoch: cached over not"
        found[f"epoch-ap-{block}"] = (label, "ap", {"block": block}, (depth - block) / depth)
    return found


THEORIES = {  # what is timed: a theory's model, always in float32
    "theory": "AP's toy model",
    "theory-shallow": "shallow ViT, 100 neurons",
    "theory-shallow-1000": "shallow ViT, 1,000 neurons",
}
NEURONS = {"theory-shallow": 100, "theory-shallow-1000": 1000}
TRIALS = {"cpu": 24, "cuda": 64}  # of the shallow ViT
STEPS = 200  # of every trial
# the aim: five times as fast on two cores, twenty times on a GPU
BATCHED = {"cpu": 0.2, "cuda": 0.05}


def theory(name: str, repeats: int, device: str = "cpu", run: bool = True) -> Record | None:
    """Record of batched theory trials over one-by-one trials."""
    chosen = {
        "what": "theory",
        "name": name,
        "machine": machine(device),
        "device": device,
        "repeats": repeats,
    }

    def compute():
        if name == "theory":
            return {"ratios": [toy_batched() for _ in range(repeats)]}
        rounds = [shallow_batched(device, NEURONS[name]) for _ in range(repeats)]
        found = {key: [once[key] for once in rounds] for key in rounds[0]}
        return {**found, "floor": shallow_operations(NEURONS[name]) / rate(device)}

    return recorded("bench", chosen, compute, run=run)


def toy_batched(trials: int = 16) -> float:
    """Time of 200 steps of some trials of AP's toy model in one batch over their time one by
    one."""
    from ..theory.ap_toy import Settings, run_trials

    settings, seeds = Settings(tokens=12, layer=2, max_steps=STEPS), list(range(trials))
    run_trials(settings, seeds[:1])
    with unwatched():
        start = time.perf_counter()
        run_trials(settings, seeds)
        middle = time.perf_counter()
        for seed in seeds:
            run_trials(settings, [seed])
        return (middle - start) / (time.perf_counter() - middle)


def shallow_batched(device: str, neurons: int) -> dict[str, float]:
    """Some trials in Figure 4's setting: "ratios", their time in one batch over one by one, and the
    batch's "seconds".

    These are of a trial and step, with the drawing of data and a check every step at first and ever
    more rarely.
    """
    from ..theory.shallow_training import run_trials
    from ..theory.shallow_vit import Settings

    chosen = Settings(neurons=neurons, output="own", max_steps=STEPS, run_on=True)
    trials = [(chosen, seed) for seed in range(TRIALS[device.split(":")[0]])]
    run_trials(trials[:1], device=device)
    with unwatched():
        start = time.perf_counter()
        run_trials(trials, device=device)
        middle = time.perf_counter()
        for trial in trials:
            run_trials([trial], device=device)
        batched = middle - start
        return {
            "ratios": batched / (time.perf_counter() - middle),
            "seconds": batched / len(trials) / STEPS,
        }


def shallow_operations(neurons: int) -> int:
    """Additions and multiplications in the matrix products of one trial's step, counted."""
    from ..theory.shallow_vit import Settings, draw, gradients, initial

    s, g = Settings(neurons=neurons, output="own"), torch.Generator().manual_seed(0)
    w = {name: value.unsqueeze(0) for name, value in initial(s, g).items()}
    x, y, _ = draw(s, g, s.batch)
    with FlopCounterMode(display=False) as counter:
        gradients(s, w, x.unsqueeze(0), y.unsqueeze(0))
    return counter.get_total_flops()


def rate(device: str, size: int = 1024, rounds: int = 10) -> float:
    """Operations a second of a large float32 product, the best of some rounds: what no step can
    exceed."""
    a, best = torch.ones(size, size, device=device), math.inf
    for _ in range(rounds):
        start = time.perf_counter()
        (a @ a)[0, 0].item()  # waits for a GPU
        best = min(best, time.perf_counter() - start)
    return 2 * size**3 / best


def forward_macs(backbone: str, side: Side, batch_size: int) -> Record:
    """Record of the counted forward operations of one image of a batch: "macs"."""
    chosen = {
        "what": "forward macs",
        "backbone": backbone,
        "side": asdict(side),
        "batch_size": batch_size,
    }

    def compute():
        return {
            "macs": count_flops(
                side.build(load_backbone(backbone, device="meta")), batch_size=batch_size
            )["macs"]
        }

    return recorded("count", chosen, compute)


def counted_memory(slug: str) -> Record:
    """Record of what a training step of a method at BASE must hold, counted on shapes: "memory",
    "parameters"."""
    side = BY_METHOD[slug]
    chosen = {
        "what": "training memory",
        "backbone": BASE,
        "side": asdict(side),
        "batch_size": MEMORY_BATCH,
    }

    def compute():
        model = side.build(load_backbone(BASE, device="meta"))
        return {
            "memory": training_memory(model, MEMORY_BATCH),
            "parameters": count_parameters(model)["method"],
        }

    return recorded("count", chosen, compute)


def bench(
    models: list[str], device: str, batch_size: int | None, repeats: int, again: bool
) -> tuple[list, list]:
    """Do what has no current record of this machine; return all records, and what failed as "what:
    why".

    Raises:
        BadInput: an impossible number, an unknown model, or a GPU that is not there.
    """
    choose("device", device.split(":")[0], MODELS)
    if device.startswith("cuda") and not torch.cuda.is_available():
        raise BadInput(
            "device cuda is not there: torch finds no GPU on this machine. Give --device cpu."
        )
    for name, value in (("repeats", repeats), ("batch-size", batch_size)):
        if value is not None and value < 1:
            raise BadInput(f"{name} must be 1 or more, not {value}.")
    found, failed, old, bar = (
        [],
        [],
        [],
        progress(jobs(models, device, batch_size, repeats), "bench"),
    )
    for label, job in bar:
        bar.set_postfix_str(label)
        before = job(run=False)
        known = before is not None and is_current(before)
        if known and not again:
            old.append(before)
        try:
            found.append(job(run="again" if again else True))
        except BadInput:
            raise
        except Exception as error:  # such as a compiler that is missing; the others go on
            failed.append(f"{label}: {type(error).__name__}: {error}")
    if old:
        print(
            f"{len(old)} of {len(found)} were timed before on this machine, by today's "
            f"code, the first on "
            f"{min(record.date for record in old)}; --again times them anew.",
            file=sys.stderr,
        )
    return found, failed
