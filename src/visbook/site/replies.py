"""What authors reply to what this book says of a claim, in their own words beside it."""

import html

from visprompt import manifests, paths

from ..pages.judging import rich


def given() -> dict[str, list[dict]]:
    """Claim -> replies of authors, oldest first, from `replies.yaml`.

    Raises:
        BadInput: the file is damaged, or a claim is unknown.
    """
    return manifests.load_yaml(paths.MANIFESTS / "replies.yaml")


def mark(claim: str) -> str:
    """What a folded claim shows of its replies, as HTML; "" where there is none."""
    return ' <span class="vp-how">(with an author\'s reply)</span>' if claim in given() else ""


def told(claim: str) -> list[str]:
    """The replies to a claim, each as HTML."""
    found = []
    for reply in given().get(claim, ()):
        name, day = html.escape(reply["from"]), html.escape(reply["date"])
        more = f' <a href="{html.escape(reply["link"])}">More</a>' if "link" in reply else ""
        found.append(f"<b>Reply of {name}, {day}:</b> “{rich(reply['text'].strip())}”{more}")
    return found
