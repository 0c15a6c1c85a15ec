"""What would be said in every caption and below every claim, and is said once instead: on the page
of words."""

import re

# Reasons that follow from the form of what is asked: "above 0", "exactly 19", "0.60 ± 0.005".
FORMS = re.compile(
    r"Only the (?:sign|order) is judged: the sizes? (?:belongs?|depends?) [^.;]*\. ?"
    r"|Half a unit of the last printed digit\. ?"
    r"|(?:A count|A place|A rank)(?: (?:from|of) printed cells)? is exact\. ?"
)
ENDLESS = re.compile(
    r"Even 100 seeds would not decide: the mean is too near the margin or the test images are too "
    r"few\."
)
SEEN = re.compile(
    r"on (?P<kind>drawn|drawn and real|real) images \((?P<tasks>[^)]*)\) by (?P<by>.*)"
)
KINDS = {"drawn": "Drawings", "real": "Photographs", "drawn and real": "Drawings and photographs"}
OURS = "small networks of this project"
SCALE = "Small backbones and tasks of this project, a direction only."
CARRIED = re.compile(
    r" ?\d+ of \d+ records were carried to newer code \(sample run again: [^)]*\)\."
)


def reason(why: str) -> str:
    """Why a claim is asked as it is, without what its form says."""
    return FORMS.sub("", why).strip()


def note(text: str) -> str:
    """A note below a claim."""
    return ENDLESS.sub("100 seeds would not decide.", text)


def seen(images: str) -> str:
    """On which images a trend was seen, as a sentence; "" where it is no trend."""
    match = SEEN.fullmatch(images)
    if match is None:
        return f"Seen {images}." if images else ""
    by = "" if match["by"] == OURS else f"; {match['by']}"
    return f"{KINDS[match['kind']]}: {match['tasks']}{by}."


def caption(shown: str) -> str:
    """A figure's or table's HTML without what its badge says, and without which of its records
    were carried: each record says it."""
    return CARRIED.sub("", shown.replace(f"{SCALE} ", "").replace(SCALE, ""))
