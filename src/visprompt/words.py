"""The words of profiles, evidence and verdicts, written once; and what a docstring says first."""

import inspect

PLANS = ("quick", "paper")  # that have lists of runs of their own
REAL = "real"  # has lists of runs too, on photographs of one's own, and no book
PROFILES = (*PLANS, "rehearsal")
# said by every record, page and badge of the profile rehearsal
REHEARSED = "rehearsal: the numbers mean nothing"
EVIDENCE = ("derived", "measured", "trend", "replicated")
# what is shown in several ways counts as the weakest
WEAKEST_FIRST = ("trend", "measured", "derived", "replicated")
# on a paper: of derived, measured and replicated evidence
VERDICTS = ("agrees", "disagrees", "inconclusive")
# of a trend, in the same order: no verdict on a paper
SIGHTINGS = ("seen here", "not seen here", "open")
ALIKE = "no difference"  # of a trend: none above one point
WORST_FIRST = ("disagrees", "inconclusive", "agrees")
NOT_JUDGED = "not judged"  # what was run cannot say; the reason stands beside it
NOT_RUN = "not run"  # in the place of any of these
WEIGHTS = ("core", "detail", "rounding")  # of a claim


def summary(thing) -> str:
    """The first paragraph of a docstring, on one line; "" where there is none."""
    return " ".join((inspect.getdoc(thing) or "").split("\n\n")[0].split())


def answers(evidence: str) -> tuple[str, str, str]:
    """The words of a kind of evidence for yes, no, and neither."""
    return SIGHTINGS if evidence == "trend" else VERDICTS
