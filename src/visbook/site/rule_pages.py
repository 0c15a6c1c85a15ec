"""What the page on evidence says of the rule by which a trend is judged: how often it finds a
difference that is there, and what chance alone would give."""

from pathlib import Path

from scipy import stats

from visprompt import papers
from visprompt.words import SIGHTINGS

from ..pages.friendly import counted
from ..studies.effects import simulated
from .tables import table

POINTS, TASKS, SEEDS = (0, 1, 2, 3, 5), (1, 3, 5), (3, 5, 10)
FALLEN = (1.5, 1.5, 22.5)  # spread of the seeds on three tasks, of which one has a fallen run


def power(results: dict, root: Path) -> str:
    """How often a difference is seen, by its size, the number of tasks and of seeds; simulated."""
    rows = [
        [str(tasks), str(seeds), *(share(points, tasks, seeds) for points in POINTS)]
        for tasks in TASKS
        for seeds in SEEDS
    ]
    shown = table(["Tasks", "Seeds", *(counted(points, "point") for points in POINTS)], rows)
    fallen = simulated(0, 3, 3, of_seeds=FALLEN)
    wrong = 100 * (fallen["above"] + fallen["below"])
    return (
        f"{shown}\n\nIf one task of three has a collapsed run (a spread of seeds "
        f"{FALLEN[-1] / FALLEN[0]:.0f} times that of the others), three seeds give a false "
        f"difference, in either direction, in {wrong:.0f} % of studies instead of 5 %."
    )


def share(points: int, tasks: int, seeds: int) -> str:
    """In percent, how often one method is seen above the other."""
    return f"{100 * simulated(points, tasks, seeds, trials=400)['above']:.0f} %"


def chance(results: dict, root: Path) -> str:
    """How many claims of a trend chance would let be seen, and how many stand at a false discovery
    rate of 5 %."""
    found = {
        claim.id: (claim, one)
        for claim in papers.claims()
        if (one := results["claims"].get(claim.id, {})).get("verdict") in SIGHTINGS
        and None not in (one["low"], one["high"])
        and claim.direction != "equal"
    }
    if not found:
        return "No claim is judged by a trend here."
    seen = [id for id, (_, one) in found.items() if one["verdict"] == SIGHTINGS[0]]
    adjusted = dict(zip(found, stats.false_discovery_control([*map(p_value, found.values())])))
    stand = [id for id in seen if adjusted[id] <= 0.05]
    return (
        f"Of {len(found)} claims whose direction is tested by a trend, {len(seen)} are seen here. "
        f"If there were no true differences, {0.025 * len(found):.1f} would be seen by chance. At "
        f"a false discovery rate of 5 %, {len(stand)} of the {len(seen)} remain."
    )


def p_value(one: tuple) -> float:
    """Two-sided, of the margin, from the interval of 95 % as of a normal distribution."""
    claim, found = one
    error = (found["high"] - found["low"]) / (2 * stats.norm.ppf(0.975))
    return float(2 * stats.norm.sf(abs(found["estimate"] - claim.margin) / error))


MAKERS = {"power": power, "chance": chance}
