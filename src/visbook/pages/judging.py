"""How a claim is judged: which words its evidence may use, what was found, and how a page says
so."""

import html
import math
import re
from collections.abc import Iterator, Sequence

from visprompt import papers, paths
from visprompt import records as run_records
from visprompt.data.mask_tasks import drawn_tasks
from visprompt.data.tasks import embedded_tasks
from visprompt.errors import BadInput
from visprompt.models.embedded import networks
from visprompt.words import ALIKE, NOT_JUDGED, REHEARSED, answers

RED = "background: #b00020; color: #fff"  # also where no style sheet is

# as what a page leaves its results in its last cell
RESULTS_MIME = "application/vnd.visprompt.results+json"
EXPONENTS = ("log-log slope", "slope of the logarithm")  # as the metric of a law of growth begins
MATHEMATICS = re.compile(r"\$([^$]+)\$")
# how a metric ends that has a unit, and how the unit is written behind a number
UNITS = {
    "points": "points",
    "thousands": "thousand",
    "millions": "million",
    "billions": "billion",
    "bits": "bits",
    "%": "%",
    "per cent": "%",
}
UNIT = re.compile(rf", ({'|'.join(UNITS)})(?! of)(?=[ ,;:)]|$)")


def verdict(
    claim: papers.Claim, low: float, high: float, evidence: str, alike: float | None = None
) -> str:
    """Hold an interval against a claim: yes, no or neither, in the words of the evidence
    (`words.answers`).

    Args:
        alike: of a trend's difference: `ALIKE` in place of neither where the interval lies within
            so many units of 0.
    """
    yes, no, neither = answers(evidence)
    if claim.direction == "equal":
        bottom, top = claim.published - claim.tolerance, claim.published + claim.tolerance
        if bottom <= low and high <= top:
            return yes
        return no if high < bottom or low > top else neither
    if claim.direction == "less":
        low, high, margin = -high, -low, -claim.margin
    else:
        margin = claim.margin
    if low > margin:
        return yes
    if high < margin:
        return no
    near = alike is not None and -alike < low and high < alike
    return ALIKE if near and evidence == "trend" else neither


def judged(
    claim: papers.Claim,
    estimate,
    low,
    high,
    evidence: str,
    records: Sequence,
    note: str,
    alike: float | None = None,
) -> dict:
    """What a page remembers of a claim: the verdict with all that decided it.

    Bounds of None are an exact value, but never of a trend, which has an interval or can decide
    nothing.

    Raises:
        BadInput: a trend whose records do not say on which data it was seen.
    """
    images = ""
    if evidence == "trend":
        tasks, images = scene(records)
        if not tasks:
            raise BadInput(
                f"{claim.id}: a trend says on which data it was seen; give records=, the "
                f"runs behind it."
            )
        if len(tasks) == 1 < claim.data_sets:
            why = (
                f"It speaks of {claim.data_sets} data sets; one task ({tasks[0]}) cannot "
                f"stand for them."
            )
            return unjudged(why, records)
    if low is None and evidence in ("trend", "replicated"):
        low, high = -math.inf, math.inf
    elif low is None:
        low = high = estimate
    elif low == high and evidence != "derived":
        low, high, note = (
            -math.inf,
            math.inf,
            f"{note} Every repetition gave this value, so there is no interval.".strip(),
        )
    low, high = possible(claim, low, high)
    return {
        "evidence": evidence,
        "verdict": verdict(claim, low, high, evidence, alike),
        "estimate": float(estimate),
        "low": finite(low),
        "high": finite(high),
        "images": images,
        "records": list(dict.fromkeys(record.id for record in records)),
        "note": note,
    }


def unjudged(why: str, records: Sequence = ()) -> dict:
    """What a page remembers of a claim that the setting at hand cannot test."""
    nothing = dict.fromkeys(("evidence", "estimate", "low", "high"))
    return {
        **nothing,
        "verdict": NOT_JUDGED,
        "images": "",
        "records": [record.id for record in records],
        "note": why,
    }


def possible(claim: papers.Claim, low: float, high: float) -> tuple[float, float]:
    """An interval without what the estimate cannot be, such as a share above 100 %; no interval
    stays none."""
    least = -math.inf if claim.least is None else claim.least
    most = math.inf if claim.most is None else claim.most
    return (max(low, least) if math.isfinite(low) else low), (
        min(high, most) if math.isfinite(high) else high
    )


def same_measurement(one: papers.Claim, found: dict, other: papers.Claim, again: dict) -> bool:
    """Whether two claims ask the same of the same measurement, which then is judged once."""
    if one.id == other.id or None in (found["low"], found["high"]) or found["low"] == found["high"]:
        return False
    asks = (
        ("direction", "published", "tolerance")
        if one.direction == "equal"
        else ("direction", "margin")
    )
    return (
        all(getattr(one, name) == getattr(other, name) for name in asks)
        and all(found[key] == again[key] for key in ("evidence", "estimate", "low", "high"))
        and bool({*found["records"]} & {*again["records"]})
    )


def repeated(earlier: str, found: dict) -> dict:
    """What is remembered in place of `found` where the claim `earlier` had that measurement
    already."""
    return {
        **unjudged(f"The same measurement is judged as {earlier}."),
        "records": found["records"],
    }


def scene(records: Sequence[run_records.Record]) -> tuple[list[str], str]:
    """(the tasks behind some records, "Drawings: letters."): the networks are named where they are
    not this project's small ones."""
    named = {text for record in records for text in texts(record.settings)}
    known = embedded_tasks() | drawn_tasks()
    others = {
        record.settings["task"]
        for record in records
        if isinstance(record.settings.get("task"), str)
    } - {*known}
    tasks = sorted({*known} & named) + sorted(others)
    theories = tuple(papers.theories().values())
    if records and not tasks and all(record.kind.startswith(theories) for record in records):
        return ["synthetic"], "Synthetic data of the theory, below the paper's size."
    drawn = [name in known and known[name]["nature"].startswith("drawn") for name in tasks]
    kind = "Drawings" if all(drawn) else "Drawings and real images" if any(drawn) else "Real images"
    backbones = {
        record.settings["backbone"]
        for record in records
        if isinstance(record.settings.get("backbone"), str)
    }
    large = sorted(backbones - {*networks()})
    by = f"; {', '.join(large)}" if large else ""  # else by small networks of this project
    return tasks, f"{kind}: {', '.join(tasks)}{by}."


def texts(thing) -> Iterator[str]:
    """All texts in nested settings."""
    if isinstance(thing, str):
        yield thing
    elif isinstance(thing, (dict, list, tuple)):
        for part in thing.values() if isinstance(thing, dict) else thing:
            yield from texts(part)


def warning() -> str:
    """The red line at the head of a rehearsal's pages."""
    return f'<p class="vp-rehearsal" style="{RED}; padding: .5em">{REHEARSED}</p>'


def badge(word: str) -> str:
    """A word of evidence or of an answer as HTML; on the stage of a rehearsal a red one follows
    it."""
    told = f'<span class="vp-badge vp-{word.replace(" ", "-")}">{word}</span>'
    return (
        f'{told} <span class="vp-badge vp-rehearsal" style="{RED}">rehearsed, means nothing</span>'
        if paths.REHEARSAL
        else told
    )


def rich(text: str) -> str:
    """A text as HTML; what stands between dollars is mathematics, as Sphinx hands it to MathJax."""
    parts = MATHEMATICS.split(text)
    parts[::2] = map(html.escape, parts[::2])
    parts[1::2] = [
        f'<span class="math notranslate nohighlight">\\({html.escape(part)}\\)</span>'
        for part in parts[1::2]
    ]
    return "".join(parts)


def sentence(text: str) -> str:
    """A text with one full stop at its end, and a capital at its start unless that is a formula or
    a name."""
    text = text.strip()
    text = text if text.endswith((".", "?", "!")) or not text else f"{text}."
    return text[:1].upper() + text[1:] if text[1:2].islower() or text[:2] == "a " else text


def printed(claim: papers.Claim) -> str:
    """What the paper says, as a sentence; a cell without words is told to be printed."""
    text = claim.printed or claim.metric
    words = set(re.findall(r"[A-Za-z]{3,}", MATHEMATICS.sub("", text))) - {"against", "and"}
    if claim.says:
        return sentence(f"{claim.says} (printed: {text})" if claim.printed else claim.says)
    return sentence(text if words or "$" in text else f"the paper prints {text}")


def number(value: float, step: float = 0) -> str:
    """Three significant digits, or as many as show a difference of `step`; a whole number is
    whole."""
    value = float(f"{value:.12g}")  # 1.43499999999999 is 1.435
    if value.is_integer() and abs(value) < 1e9:
        return f"{value + 0.0:,.0f}"  # no sign before zero
    places = 2 - int(f"{value:.2e}".partition("e")[2])
    if step:
        places = max(places, math.ceil(-math.log10(step)))
    return f"{value:.2e}" if abs(value) >= 1e9 or places > 8 else f"{value:,.{max(places, 0)}f}"


def unit(claim: papers.Claim, value: float) -> str:
    """The unit of a value of a claim's metric, with a blank before it; "" where it has none."""
    if claim.exceptions:
        return " exception" + "s" * (value != 1)
    named = UNIT.findall(claim.metric)
    told = f" {UNITS[named[-1]]}" if named else ""
    return told.removesuffix("s") if value == 1 else told


def condition(claim: papers.Claim) -> str:
    """What the estimate must be, in a few words."""
    if claim.exceptions:
        return "no exceptions"
    if claim.direction != "equal" and claim.metric.startswith(EXPONENTS):
        least = "at least" if claim.direction == "greater" else "at most"
        return f"{least} {claim.margin:g}, a bound on the exponent"
    if claim.direction != "equal":
        side = "above" if claim.direction == "greater" else "below"
        return f"{side} {claim.margin:g}{unit(claim, claim.margin)}"
    told = unit(claim, claim.published)
    if not claim.tolerance:
        return f"exactly {number(claim.published)}{told}"
    if not claim.published:
        return f"at most {claim.tolerance:g}{told} from 0"
    return f"{number(claim.published, claim.tolerance)} ± {claim.tolerance:g}{told}"


def found_text(claim: papers.Claim, found: dict) -> str:
    """The estimate with its interval; "" where there is none."""
    if found["estimate"] is None:
        return ""
    step = claim.tolerance or 0
    exact = found["low"] == found["high"]
    seen = found["estimate"] if exact else round(found["estimate"], 9)
    text, told = number(seen, step), unit(claim, seen if exact else 0)  # of an interval the plural
    if None in (found["low"], found["high"]):
        return f"{text}{told} (no interval)"
    if found["high"] > found["low"]:
        text += f" [{number(found['low'], step)}, {number(found['high'], step)}]"
    return f"{text}{told}"


def claim_html(claim: papers.Claim, found: dict, above: str = "../") -> str:
    """A claim on a page: the paper's sentence, what was found, and how; `above` leads to the page
    of all claims."""
    badges = " ".join(map(badge, filter(None, (found["verdict"], found["evidence"]))))
    lead = f"<b>{html.escape(claim.where)}:</b> {rich(printed(claim))}"
    told = rich(sentence(claim.metric.strip().rstrip(".")).rstrip("."))
    if found["estimate"] is None:
        rest = f"{told}: {rich(found['note'])}"
    else:
        seen = f" ({html.escape(found['images'].rstrip('.'))})" if found["images"] else ""
        rest = (
            f"{told}{seen}: <b>{found_text(claim, found)}</b>; the claim asks for "
            f"{condition(claim)}. {rich(found['note'])}"
        )
    address = f'<a href="{above}claims.html#{claim.id}"><code>{claim.id}</code></a>'
    return f'<p class="vp-claim">{badges} {lead} <br>{rest.strip()} {address}</p>'


def finite(value: float) -> float | None:
    """A bound as JSON knows it: None where there is none."""
    return float(value) if math.isfinite(value) else None
