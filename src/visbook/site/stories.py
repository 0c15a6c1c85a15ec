"""How a page begins and ends: a picture with the question and the idea, and what to take away. By
hand, in book/stories.yaml."""

import functools
import html
import re
from dataclasses import dataclass, field, fields
from pathlib import Path

from visprompt import manifests
from visprompt.errors import BadInput, choose

from . import front, overview, pictograms, scatter
from .tables import badge

WORDS = 400  # by hand of a page, at most
STORY = {  # of a paper's first page
    "paper": "The paper found",
    "ours": "We found",
    "why": "Why they differ",
}
# Words of book/glossary.md that are explained where a page uses them first.
TERMS = (
    "linear probe",
    "class token",
    "photographs",
    "drawings",
    "VTAB-1k",
    "FGVC",
    "MAE",
    "MoCo-v3",
)


@dataclass(frozen=True)
class Story:
    """One entry of book/stories.yaml; a sentence is {says, rests: {claim: verdict}} or a text."""

    takes: list  # sentences: what to take away
    asks: str = ""
    idea: str = ""
    picture: str = ""  # a drawing of `pictograms`, or an axis of `scatter`
    paper: list = field(default_factory=list)
    ours: list = field(default_factory=list)
    why: list = field(default_factory=list)


@functools.cache
def told(root: Path) -> dict[str, Story]:
    """Notebook -> what book/stories.yaml says of it; {} where there is no such file.

    Raises:
        BadInput: an unknown field, a page without `takes`, or too many words.
    """
    path = root / "book" / "stories.yaml"
    if not path.exists():
        return {}
    given, names = manifests.load_yaml(path), [one.name for one in fields(Story)]
    for name, entry in given.items():
        for key in entry:
            choose(f"field of {name} in {path.name}:", key, names)
        if not entry.get("takes"):
            raise BadInput(f"{path}: {name} does not say what to take away; write `takes`.")
        if (words := len(" ".join(texts(entry)).split())) > WORDS:
            raise BadInput(f"{path}: {name} has {words} words; say it in {WORDS}.")
    return {name: Story(**entry) for name, entry in given.items()}


def texts(entry: dict) -> list[str]:
    """All that is written by hand of a page."""
    parts = [part for key in ("takes", *STORY) for part in entry.get(key, ())]
    parts = [part["says"] if isinstance(part, dict) else part for part in parts]
    return [entry.get("asks", ""), entry.get("idea", ""), *parts]


def said(sentences: list, results: dict) -> str:
    """Sentences as HTML, with their numbers filled in; see `front.say`.

    Raises:
        BadInput: a sentence shows a claim that it does not name under `rests`.
    """
    whole = [one if isinstance(one, dict) else {"says": one, "rests": {}} for one in sentences]
    for one in whole:
        if loose := {id for id, _ in front.FOUND.findall(one["says"])} - one["rests"].keys():
            raise BadInput(
                f"book/stories.yaml shows {', '.join(sorted(loose))}; write under `rests` what "
                f"it must come to."
            )
    return front.say(whole, results, "../")


def opening(story: Story, results: dict) -> str:
    """The picture, the question and the idea; of a paper's first page also what it found, what we
    found, and why the two differ; "" of a page that asks nothing."""
    if not story.asks:
        return ""  # of a page that begins with its own pictures
    asked = f"<p><b>{html.escape(story.asks)}</b> {html.escape(story.idea)}</p>"
    parts = [
        f"<dt>{name}</dt><dd>{said(getattr(story, key), results)}</dd>"
        for key, name in STORY.items()
        if getattr(story, key)
    ]
    more = f"<dl>{''.join(parts)}</dl>" if parts else ""
    first = [drawn(story.picture), asked]
    if story.picture in scatter.AXES:  # as wide as the page, where a drawing stands beside the text
        first.reverse()
    return f'<div class="vp-story">{explained("".join(first) + more)}</div>'


def explained(shown: str) -> str:
    """HTML in which the first use of each of TERMS leads to the glossary."""
    for term in TERMS:
        used = re.compile(rf"(<(a|svg|dt)\b.*?</\2>|<[^>]*>)|\b({term})\b", re.S)
        for match in used.finditer(shown):
            if match[3]:
                address = f"../glossary.html#term-{term.replace(' ', '-')}"
                link = f'<a class="vp-term" href="{address}">{term}</a>'
                shown = shown[: match.start()] + link + shown[match.end() :]
                break
    return shown


def drawn(picture: str) -> str:
    """A drawing, or all methods on photographs against what they cost; "" where there is none."""
    if picture in scatter.AXES:
        if not (found := overview.overview()):
            return ""
        shown = scatter.picture(found, scatter.AXES[picture])
        caption = (
            "Every method on photographs (ViT-Tiny). Small marks: seeds. Cross: a run collapsed."
        )
        caption = f"<figcaption>{caption} {badge('trend')}</figcaption>"
        return f'<figure tabindex="0">{shown}{caption}</figure>'  # it scrolls on a phone
    return pictograms.draw(picture) if picture else ""


def ending(story: Story, results: dict) -> str:
    """The last section of a page."""
    return f"## What to take away\n\n<p>{said(story.takes, results)}</p>"
