"""What an hour of a card settles: the artifacts that wait for one, the shortest first."""

import csv
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from visprompt import papers, paths
from visprompt.errors import BadInput, choose
from visprompt.manifests import load_yaml

from .budget import ALL
from .plan import command, notebooks

LISTED = "h200"  # the card of hours.csv, in bf16


@dataclass(frozen=True)
class Waiting:
    """An artifact whose numbers wait for a card.

    Attributes:
        hours: of the card at its peak, so the least that the runs can take.
        claims: how many the paper's own scale would settle.
    """

    artifact: str
    runs: int
    hours: float
    gigabytes: float  # to fetch, of files whose size is known
    claims: int
    command: str


def waiting(card: str = "h100") -> list[Waiting]:
    """Every artifact that waits for a card, sorted by claims settled per hour.

    Raises:
        BadInput: devices.yaml has no such card.
    """
    cards = load_yaml(paths.MANIFESTS / "devices.yaml")
    peak = cards[choose("card", card.lower(), cards)]["bf16"]
    settled = Counter(one.artifact for one in papers.claims() if "replicated" in one.settles)
    with (paths.MANIFESTS / "hours.csv").open(newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["artifact"] != ALL]
    pages = notebooks()
    found = [
        Waiting(
            row["artifact"],
            int(row["runs"]),
            float(row["hours"]) * cards[LISTED]["bf16"] / peak,
            float(row["gigabytes"]),
            settled[row["artifact"]],
            command(row["artifact"]),
        )
        for row in rows
        if row["artifact"] in pages and (int(row["runs"]) or float(row["gigabytes"]))
    ]
    return sorted(found, key=lambda one: (-one.claims / max(one.hours, 0.01), one.hours))


def fitting(hours: float, card: str = "h100") -> list[Waiting]:
    """What settles a claim and fits into so many hours, the shortest first.

    Raises:
        BadInput: no positive number of hours, an unknown card, or nothing fits.
    """
    if not hours > 0:
        raise BadInput(f"--hours takes a number above 0, not {hours:g}.")
    chosen, left = [], hours
    for one in sorted(waiting(card), key=lambda one: one.hours):
        if one.claims and one.hours <= left:
            chosen.append(one)
            left -= one.hours
    if not chosen:
        raise BadInput(f"nothing that settles a claim fits into {hours:g} hours.")
    return chosen


def text(chosen: Sequence[Waiting], card: str) -> str:
    """Rows as a person reads them, and their sum."""
    lines = ["hours\tGB\tclaims\tartifact\tcommand"]
    for one in chosen:
        told = one.command.replace("\n", " && ")
        lines.append(f"{one.hours:.2f}\t{one.gigabytes:g}\t{one.claims}\t{one.artifact}\t{told}")
    hours, claims = (sum(getattr(one, name) for one in chosen) for name in ("hours", "claims"))
    lines.append(f"{hours:.2f} hours or more of an {card.upper()} in bf16 settle {claims} claims")
    return "\n".join(lines)
