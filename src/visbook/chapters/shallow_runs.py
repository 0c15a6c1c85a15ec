"""What the pages on the shallow ViT share: their parameters, one record a curve, and what is read
off it."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy import stats

from visprompt.errors import BadInput
from visprompt.progress import progress
from visprompt.records import Record, recorded

from ..pages import plots
from ..pages.page import Page
from ..pages.parameters import Parameters, read_parameters
from ..studies import plan
from ..studies.statistics import interval
from ..theory import shallow_measures, shallow_training, shallow_vit

PROFILE = {
    "quick": dict(seeds=list(range(4)), neurons=100),
    "paper": dict(seeds=list(range(20)), neurons=1000),
}
BLUE, SKY, RED, ORANGE, GREEN, GREY = "#0072b2", "#56b4e9", "#d55e00", "#e69f00", "#009e73", "0.45"
# Section 4.1; the other figures print no number
PAPER_NEURONS, PAPER_TRIALS = (1000, {"shallowvit.figure-1": 20})
COUNTS = [5, 10, 15, 20]  # M
WATCHES = {"": None, "growth": shallow_measures.growth, "by_query": shallow_measures.by_query}


@dataclass(frozen=True)
class TrialParameters(Parameters):
    """What a page with trials of the toy model takes; None stands for what the profile has."""

    seeds: list[int] | None = None
    neurons: int | None = None
    # runs that take minutes; in the paper profile its trials and neurons, which take hours
    larger: bool = False

    @property
    def scale(self) -> str:
        """Whose trials and neurons are run: the paper's only where they are asked for."""
        return "paper" if self.plan == "paper" and self.larger else "quick"

    def __post_init__(self):
        super().__post_init__()
        for name, value in PROFILE[self.scale].items():
            if getattr(self, name) is None:
                object.__setattr__(self, name, value)
        if len(self.seeds) < 3 or len(set(self.seeds)) < len(self.seeds):
            raise BadInput(
                "parameter seeds must be a list of three different integers or more, e.g. "
                "[0, 1, 2]."
            )
        shallow_vit.Settings(neurons=self.neurons)


@dataclass(frozen=True)
class ImageParameters(TrialParameters):
    """With the folder of the images of Figure 6 as printed."""

    data_dir: str | None = None


Job = Callable[..., Record | None]  # f(parameters, run=True): the record at these parameters' size


def opened(name: str, parameters: type, namespace: dict):
    """Open a page: (parameters, `Page`, `Runs`). Nothing is trained before `Runs.compute`.

    Raises:
        BadInput: an unknown parameter or an impossible value among `namespace`, the notebook's
            `globals()`.
    """
    p = read_parameters(parameters, namespace)
    plots.style()
    page = Page(name, p)
    return p, page, Runs(page)


def scan(vary, *, keep=(), watch="", **base) -> Job:
    """The job of a curve: for each change in `vary`, one result a seed. `keep` names what to keep
    over time."""

    def job(p: TrialParameters, run: bool = True) -> Record | None:
        chosen = [
            shallow_vit.Settings(**{"output": "own", "neurons": p.neurons, **base, **change})
            for change in vary
        ]

        def compute():
            groups, cells = {}, [[] for _ in chosen]
            for i, s in enumerate(chosen):
                shared = tuple(getattr(s, name) for name in shallow_training.SHARED)
                groups.setdefault(shared, []).extend((i, s, seed) for seed in p.seeds)
            for group in groups.values():
                trials = [part[1:] for part in group]
                found = shallow_training.run_trials(
                    trials, device=p.device, watch=WATCHES[watch], keep=keep
                )
                for (i, _, _), result in zip(group, found):
                    cells[i].append(result)
            return {"cells": cells}

        settings = {"cells": chosen, "seeds": list(p.seeds), "keep": list(keep), "watch": watch}
        return recorded("shallow-vit", settings, compute, run=run)

    return job


def of_four(job: Job) -> Job:
    """A job that is the same in every profile: four trials are enough where they hardly differ."""
    return lambda p, run=True: job(replace(p, seeds=[0, 1, 2, 3]), run)


def size(m):
    return {"patterns": m, "dim": 10 if m == 5 else 20}


class Runs:
    """The records of a page by name; `[name]` gives one."""

    def __init__(self, page: Page):
        self.page, self.made = page, {}

    def compute(self, jobs: Mapping[str, Job]) -> None:
        """Take the records of some jobs at the paper's size where all of them are there; else run
        those of this size."""
        p = self.page.settings
        if all(getattr(p, name) == value for name, value in PROFILE["quick"].items()):
            profile = "paper" if p.profile == "quick" else p.profile
            paper = replace(p, profile=profile, larger=True, **PROFILE["paper"])
            large = {name: job(paper, run=False) for name, job in jobs.items()}
            if all(large.values()):
                self.made |= large
            else:
                self.say_small()
        for name in progress([name for name in jobs if name not in self.made], "shallow ViT"):
            self.made[name] = jobs[name](p)

    def say_small(self) -> None:
        """Say of every artifact of the page that what is shown is below the paper's size."""
        why = (
            "The paper's 1000 neurons and 20 trials: not all records of them are kept, "
            "so what is shown is smaller."
        )
        for artifact in self.page.artifacts:
            self.page.not_run(artifact, why=why, command=plan.command(artifact))

    @property
    def trials(self) -> int:
        """Trials of a curve."""
        return max(
            len(record.settings["seeds"])
            for record in self.made.values()
            if "seeds" in record.settings
        )

    @property
    def neurons(self) -> int:
        """Hidden neurons of the models; some curves may have other numbers."""
        return min(
            c["neurons"] for record in self.made.values() for c in record.settings.get("cells", [])
        )

    def __getitem__(self, name: str) -> Record:
        return self.made[name]

    def cells(self, name: str) -> list[list[dict]]:
        """The trials of a record, one list for each setting."""
        return self[name].values["cells"]

    def steps(self, name: str, cell: int) -> list[int | None]:
        """The iterations that each trial needed; None where it is censored."""
        return [trial["steps"] for trial in self.cells(name)[cell]]

    def curve(self, name: str, keys: Sequence[float]) -> dict[float, list]:
        """{key: samples a trial needed, None where censored}; N = B T."""
        found = {}
        for i, key in enumerate(keys):
            batch = self[name].settings["cells"][i]["batch"]
            found[key] = [n and n * batch for n in self.steps(name, i)]
        return found

    def traces(self, name: str, field: str, cell: int = 0) -> np.ndarray:
        """One row a trial over the looks; all trials of a cell that runs on have the same looks."""
        return np.array([trial["trace"][field] for trial in self.cells(name)[cell]])

    def records(self, which: Sequence[str | Record]) -> list[Record]:
        """Records by name, and those that are records already."""
        return [self[one] if isinstance(one, str) else one for one in which]

    def evidence(self, id: str, records: Sequence[Record]) -> str:
        """`derived` for trials of the paper's size and for what needs none, else `trend`.

        Args:
            id: an artifact or a claim, for the number of trials that the paper prints for it.
        """
        wanted = next((n for artifact, n in PAPER_TRIALS.items() if id.startswith(artifact)), 0)
        trained = [record for record in records if record.kind in ("shallow-vit", "shallow-kept")]
        small = [
            min(cell["neurons"] for cell in record.settings["cells"]) < PAPER_NEURONS
            for record in trained
        ]
        few = [len(record.settings["seeds"]) < wanted for record in trained]
        return "trend" if any(small + few) else "derived"

    def show(self, artifact: str, thing, *which: str | Record, evidence: str = "", **more) -> None:
        """`Page.show` with records by name."""
        records = self.records(which)
        self.page.show(
            artifact,
            thing,
            evidence=evidence or self.evidence(artifact, records),
            records=records,
            **more,
        )

    def present(self, thing, *which: str | Record, **more) -> None:
        """`Page.present` with records by name."""
        records = self.records(which)
        self.page.present(thing, evidence=self.evidence("", records), records=records, **more)

    def judge(
        self, claim: str, found, *which: str | Record, evidence: str = "", note: str = ""
    ) -> None:
        """Judge a claim by a number or (estimate, low, high)."""
        values, records = found if isinstance(found, tuple) else (found,), self.records(which)
        evidence = evidence or self.evidence(claim, records)
        self.page.judge(claim, *values, evidence=evidence, records=records, note=note)


def fitted(values: Mapping[float, Sequence]) -> dict | None:
    """The power against the keys, or None where too few cells are done."""
    try:
        return shallow_measures.power(values)
    except BadInput:
        return None


def bounds(fit: dict) -> tuple[float, float, float]:
    """A fitted power with its interval."""
    return fit["slope"], fit["low"], fit["high"]


def paired_log(many, few, cap: float) -> tuple[float, float, float]:
    """Mean over seeds of log(many / few) with its interval, which takes in the looks; a censored
    trial counts as the cap."""
    middle, low, high = interval([np.log((a or cap) / (b or cap)) for a, b in zip(many, few)])
    blur = np.log(shallow_measures.LOOKS)
    return middle, low - blur, high + blur


def share_of(done: int, trials: int) -> tuple[float, float, float]:
    """A share of trials, %, with the interval of Clopper and Pearson: 20 of 20 is at least 83."""
    exact = stats.binomtest(done, trials).proportion_ci()
    return 100 * done / trials, 100 * exact.low, 100 * exact.high


def inverse(shares: Sequence[float]) -> list[float]:
    """1 / alpha* of each."""
    return [1 / a for a in shares]


def medians(values: Mapping[float, Sequence]) -> list[float]:
    """The samples at which half of the trials are done, by key."""
    return [shallow_measures.needed(v) for v in values.values()]


def text(values: Mapping[float, Sequence]) -> str:
    """`medians` as text."""
    return ", ".join("over cap" if np.isinf(m) else f"{m:,.0f}" for m in medians(values))
