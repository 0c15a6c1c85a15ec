"""What the pages on AP's theory share: their parameters, the runs of the toy model, and what is
read off them."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from visprompt.errors import BadInput
from visprompt.progress import progress
from visprompt.records import Record, recorded

from ..pages import plots
from ..pages.page import Page
from ..pages.parameters import Parameters, read_parameters
from ..pages.plots import with_interval
from ..studies import plan
from ..theory import ap_limits, ap_toy

COLOURS = {1: "#0072b2", 2: "#d55e00"}
JUDGED = "main setting"
# what is judged: the kept run, or one with parameters of your own; where neither is, this run is
# shown
MAIN = "main"
COUNTS = {1: [8, 12, 16, 24, 32, 48, 64, 128], 2: [8, 12, 16, 24, 32, 48, 64]}
CAPS = {1: 20_000, 2: 400_000}  # steps; a trial that reaches them is censored
LOUD_CAPS = {1: 6_000, 2: 12_000}  # where noise can keep the goal out of reach
TOLD = ["steps", "error", "token_norm", "direction", "own"]
READINGS = {  # name: what differs, P at layer 1, P at layer 2
    "a quarter of the step": ({"step": 1.0}, [8, 16, 32, 64], [8, 12, 16, 24, 32]),
    "four times the batch": ({"batch": 32}, [8, 16, 32], [8, 12, 16, 24]),
    "one prompt shared by all tokens": ({"shared": True}, [8, 16, 32, 64], [8, 12, 16, 24, 32]),
    "batches drawn freely": (
        {"balanced": False, "max_steps": 20_000},
        [8, 16, 32, 64],
        [8, 12, 16, 24],
    ),
    "zero error that lasts to 1.25 T": (
        {"hold": 1.25, "max_steps": 8_000},
        [8, 16, 32],
        [8, 12, 16],
    ),
    "goal y f ≥ 1/P": (
        {"goal": "margin", "max_steps": 8_000},
        [8, 16, 32],
        [],
    ),  # beyond reach at layer 2
    "σ = 0.5/P": ({"noise": 0.5, "max_steps": 20_000}, [8, 16, 32, 64], [8, 12, 16]),
}
FIXED = "σ = 0.05 at every P"  # P sigma = 0.4 to 3.2
FIXED_COUNTS = {1: [8, 16, 32, 64], 2: [8, 12, 16]}
GAMMAS, GAMMA_COUNTS = [-0.9, -0.7, -0.5, -0.3, -0.1], {1: [16, 32, 64], 2: [8, 16]}
# layer 1
WHY_GAMMA = {
    "gamma, a quarter of the step": {"step": 1.0},
    "gamma, one prompt shared": {"shared": True},
}
NOISES, NOISE_COUNT = [0.0, 0.1, 0.25, 0.5, 0.75, 0.9, 1.0, 2.0, 4.0], {1: 32, 2: 16}
STEPS, STEP_COUNT = [1.0, 2.0, 4.0, 8.0], {1: 32, 2: 16}
OCTAVES = [8, 16, 32, 64, 128]
SETTLED = "The settings were fixed after trial runs."
LAWS = {1: (lambda n: n, "$P$"), 2: (lambda n: n**2 * np.log(n), r"$P^2 \log P$")}
STANDARD = ap_toy.Settings()
LOOKS = STANDARD.check_growth  # the factor between two looks at a trial


@dataclass(frozen=True)
class ToyParameters(Parameters):
    """What a page on AP's theory takes."""

    seeds: list[int] | None = None
    token_counts: list[int] | None = None
    larger: bool = False

    def __post_init__(self):
        super().__post_init__()
        if self.seeds is not None and (not self.seeds or len(set(self.seeds)) < len(self.seeds)):
            raise BadInput(
                "parameter seeds must be a list of different integers, e.g. [0, 1, 2, 3]."
            )
        if self.token_counts is not None and len(set(self.token_counts)) < 2:
            raise BadInput(
                "parameter token_counts must name two values of P or more, e.g. [8, 16]."
            )
        for tokens in self.token_counts or ():
            ap_toy.Settings(tokens=tokens)


def on_processor(p: Parameters) -> Parameters:
    """The parameters of a page on AP's theory; one line says that another device is not used."""
    if p.device != "cpu":
        print(f"device {p.device} is not used: AP's theory stays on the processor.")
    return p


def toys(layer: int, counts: Sequence[int], **changes) -> list[ap_toy.Settings]:
    """Settings of the toy model, one a number of tokens."""
    return [
        ap_toy.Settings(tokens=n, layer=layer, **{"max_steps": CAPS[layer], **changes})
        for n in counts
    ]


def curves() -> Iterator[tuple[tuple[str, int], list[ap_toy.Settings]]]:
    """Name and layer of each kept curve -> its settings."""
    for h in (1, 2):
        yield (JUDGED, h), toys(h, COUNTS[h])
        for name, (changes, *counts) in READINGS.items():
            if counts[h - 1]:
                yield (name, h), toys(h, counts[h - 1], **changes)
        yield (
            (FIXED, h),
            [toys(h, [n], noise=0.05 * n, max_steps=LOUD_CAPS[h])[0] for n in FIXED_COUNTS[h]],
        )
        yield ("gamma", h), [toys(h, [n], gamma=g)[0] for n in GAMMA_COUNTS[h] for g in GAMMAS]
        if h == 1:
            for name, changes in WHY_GAMMA.items():
                yield (name, h), [toys(h, [32], gamma=g, **changes)[0] for g in GAMMAS]
        yield (
            ("noise", h),
            [toys(h, [NOISE_COUNT[h]], noise=c, max_steps=LOUD_CAPS[h])[0] for c in NOISES],
        )
        yield ("step", h), [toys(h, [STEP_COUNT[h]], step=e)[0] for e in STEPS]


def toy_record(cells, seeds, whole, run):
    """The record of a curve; `whole` also keeps the norms, the attention and the median trial's
    trace."""
    keep = TOLD + (["norm_sum", "frobenius", "attention"] if whole else [])
    settings = {"cells": cells, "seeds": seeds, "keep": keep, "trace": whole}
    return recorded(
        "ap-toy", settings, lambda: {"cells": ap_toy.run_curve(cells, seeds, keep, whole)}, run=run
    )


def flow(layer, counts, goal="error", gamma=-0.5, run=True):
    """The record of the symmetric limit."""
    settings = {"layer": layer, "token_counts": counts, "goal": goal, "gamma": gamma}
    return recorded(
        "ap-flow", settings, lambda: {"cells": ap_limits.population_flow(**settings)}, run=run
    )


class ToyRuns:
    """The runs of the toy model, as a page sees them.

    Args:
        page: the notebook's page.
        p: its parameters.

    Attributes, from `make` on:
        runs: (name, layer) -> record of a curve; under MAIN what is judged.
        own: layer -> record of this page's own small run.
        flows: (layer, goal, gamma) -> record of the symmetric limit.
        absent: names of curves of which no record is kept.
        too_small: records that no claim is judged by.
        fits, limits: layer -> slope against P of SGD's steps, and of the symmetric limit's time.
        behind: layer -> the records behind `fits`.
        predicted: layer -> slope of the paper's law over the P of the fit.
        powers: (quantity, layer) -> slope against it, of the scans that are there.
    """

    def __init__(self, page: Page, p: ToyParameters):
        self.page, self.p = page, p
        self.of_mine = bool(p.seeds or p.token_counts)

    @classmethod
    def opened(cls, name: str, namespace: dict) -> "ToyRuns":
        """Those of a notebook, from the parameters among its variables (`globals()`). Runs nothing
        yet."""
        plots.style()
        p = on_processor(read_parameters(ToyParameters, namespace))
        return cls(Page(name, p), p)

    def make(self) -> None:
        """Look up the kept curves (with `larger`, run those that are not there) and run the small
        part of this page."""
        p, self.runs, self.absent = self.p, {}, set()
        for (name, layer), cells in progress(list(curves()), "AP toy model"):
            found = toy_record(
                cells, list(range(16 if name == JUDGED else 8)), name == JUDGED, p.larger
            )
            if found is None:
                self.absent.add(name)
            else:
                self.runs[name, layer] = found
        counts, seeds = sorted(p.token_counts or [8, 16, 24]), p.seeds or list(range(6))
        self.own = {
            h: toy_record(toys(h, counts), seeds, True, True) for h in progress([1, 2], "this run")
        }
        self.runs |= {
            (MAIN, h): r if self.of_mine else self.runs.get((JUDGED, h), r)
            for h, r in self.own.items()
        }
        self.make_flows()
        self.too_small = [
            r for h, r in self.own.items() if not self.of_mine and (JUDGED, h) not in self.runs
        ]
        self.too_small += [self.flows[2, "error", -0.5]] * ("symmetric limit" in self.absent)
        self.measure()

    def make_flows(self) -> None:
        """The symmetric limit; at layer 2 only a part of it where the whole is not kept."""
        counts = [8, 16, 32, 64, 128, 256]
        gammas = progress([-0.9, -0.5, -0.1], "symmetric limit")
        self.flows = {(1, "error", g): flow(1, counts, gamma=g) for g in gammas}
        self.flows[1, "margin", -0.5] = flow(1, [8, 16, 32, 64], "margin")
        self.flows[2, "error", -0.5] = flow(2, COUNTS[2], run=self.p.larger)
        if self.flows[2, "error", -0.5] is None:
            self.absent.add("symmetric limit")
            self.flows[2, "error", -0.5] = flow(2, [8, 12, 16, 24])

    def measure(self) -> None:
        """The slopes that more than one section speaks of."""
        self.fits = {h: ap_limits.slope(self.trials(MAIN, h, "steps"), looks=LOOKS) for h in (1, 2)}
        self.limits = {h: ap_limits.slope(self.limit_values(h)) for h in (1, 2)}
        self.behind = {h: [self.runs[MAIN, h]] for h in (1, 2)}
        laws = {h: {n: [LAWS[h][0](n)] for n in self.fits[h]["used"]} for h in (1, 2)}
        self.predicted = {h: ap_limits.slope(law)["slope"] for h, law in laws.items()}
        self.powers = {
            (quantity, h): ap_limits.slope(self.scanned(name, h, *rest), looks=LOOKS)
            for (quantity, h), (name, *rest) in SCANS.items()
            if (name, h) in self.runs
        }

    def have(self, artifact: str, what: str, *names: str) -> bool:
        """Whether the kept curves of these names are there; where not, `what` of the artifact is
        not run."""
        if self.absent.isdisjoint(names):
            return True
        self.page.not_run(
            artifact,
            why=f"{what}: no record of it is kept. It takes up to twenty minutes on one core.",
            command=plan.command(artifact, "quick"),
        )
        return False

    def of_cells(self, name: str, layer: int, field: str) -> list[tuple[dict, list]]:
        """(settings, one value a trial) for each point of a curve."""
        record = self.runs[name, layer]
        return [
            (cell, found[field])
            for cell, found in zip(record.settings["cells"], record.values["cells"])
        ]

    def trials(self, name: str, layer: int, field: str) -> dict[int, list]:
        """{P: one value a trial}."""
        return {cell["tokens"]: values for cell, values in self.of_cells(name, layer, field)}

    def scanned(
        self, name: str, layer: int, of: Callable, only: Callable = lambda cell: True
    ) -> dict[float, list]:
        """{of(settings): steps a trial} of a scan."""
        return {
            of(cell): values for cell, values in self.of_cells(name, layer, "steps") if only(cell)
        }

    def limit_values(self, layer: int, field="time", goal="error", gamma=-0.5) -> dict[int, list]:
        """{P: [value]} of the symmetric limit."""
        return {c["tokens"]: [c[field]] for c in self.flows[layer, goal, gamma].values["cells"]}

    def judge(self, claim: str, fit: Mapping, records: Sequence[Record], note: str = "") -> None:
        """Judge a slope, but not by the small part that a page runs itself where nothing is
        kept."""
        if not any(record in self.too_small for record in records):
            measured = fit["slope"], fit["low"], fit["high"]
            self.page.judge(claim, *measured, evidence="derived", records=records, note=note)


def at(tokens: int) -> Callable[[dict], bool]:
    """Whether settings are of this P."""
    return lambda cell: cell["tokens"] == tokens


def from_half_on(cell: dict) -> bool:
    """Whether settings are of the largest P of the scan of gamma, and 1 + gamma is 0.5 or more."""
    return at(GAMMA_COUNTS[1][-1])(cell) and 1 + cell["gamma"] >= 0.5


SCANS = {  # quantity and layer -> curve, what it is in the settings, which of them
    **{("1 / eta", h): ("step", lambda c: 1 / c["step"]) for h in (1, 2)},
    **{
        ("1 + gamma", h): ("gamma", lambda c: 1 + c["gamma"], at(GAMMA_COUNTS[h][-1]))
        for h in (1, 2)
    },
    ("1 - P sigma", 1): ("noise", lambda c: 1 - c["noise"], lambda c: c["noise"] < 1),
    ("1 + gamma from 0.5 on", 1): ("gamma", lambda c: 1 + c["gamma"], from_half_on),
    ("1 + gamma, P = 32", 1): ("gamma", lambda c: 1 + c["gamma"], at(32)),
    **{(f"1 + {name}, P = 32", 1): (name, lambda c: 1 + c["gamma"]) for name in WHY_GAMMA},
}


def median(values: Sequence) -> float:
    """Median of a trial number; one that is censored counts as infinite."""
    return float(np.median([np.inf if v is None else v for v in values]))


def medians(values: Mapping) -> dict:
    """The median of each point's trials."""
    return {key: median(trial_values) for key, trial_values in values.items()}


def fitted(values: Mapping) -> str:
    """The slope of some trials with its interval as text."""
    try:
        return with_interval(ap_limits.slope(values, looks=LOOKS))
    except BadInput:
        return with_interval(None)


def local(fit: Mapping) -> str:
    """The slopes between neighbouring points as text."""
    return ", ".join(f"{s:.2f}" for s in fit["local"])


def constant(time: float, tokens: int, gamma: float = STANDARD.gamma) -> float:
    """(1 + gamma) eta T / P, which Lemma 3 has as Theta(1)."""
    return (1 + gamma) * time / tokens
