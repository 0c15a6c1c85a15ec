"""On how many independent parties a claim's verdict rests, and how far their values are apart."""

import html

from visprompt import records
from visprompt.words import NOT_RUN

from ..sharing import others

US = "us"
DONE = {
    "derived": "Computed",
    "measured": "Measured",
    "trend": "Run",
    "replicated": "Replicated",
}
SENT = ("trend", "replicated")  # what runs of training are evidence of; others send only those


def noted(claims: dict[str, dict]) -> None:
    """Note with each claim "parties", who have done all that its verdict rests on, and "spread":
    (its runs that others did too, all its runs, the largest distance in points) or None.

    Raises:
        BadInput: others sent records, and one of a claim is nowhere.
    """
    sent = others.accepted()
    asked = {id: entry["records"] for id, entry in claims.items() if entry["evidence"] in SENT}
    found = records.find_records(id for ids in asked.values() for id in ids) if sent else {}
    trained = [record for record in found.values() if record.kind == "tune"]
    names = {record.id: others.run_name(record) for record in found.values()}
    rows = {row["run"]: row for row in others.beside(trained, sent)}
    for id, entry in claims.items():
        runs = {names[record] for record in asked.get(id, ()) if sent}
        more = others.parties(runs, sent)
        entry["parties"] = [US, *more] if entry["evidence"] not in (None, NOT_RUN) else []
        apart = [rows[run]["spread"] for run in runs & {*rows}]
        entry["spread"] = (len(apart), len(runs), max(apart)) if apart else None


def told(found: dict) -> str:
    """Who came to a claim's verdict, as HTML; "" where there is none."""
    names = found["parties"]
    if not names:
        return ""
    count, who = f"{len(names)} independent parties", html.escape(", ".join(names))
    by = f"{count}: {who}" if names != [US] else "us alone"
    text = f"{DONE[found['evidence']]} by {by}."
    if found["spread"]:
        both, runs, points = found["spread"]
        text += f" Others also sent {both} of its {runs} runs; the values of one run lie up to "
        text += f"{points:.2f} points apart."
    return text
