"""Links inside of the built website: each leads to a file that is there, and to an id that is on
its page."""

import os
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urldefrag, urlsplit

from visprompt.errors import BadInput

LEADING = {
    "a": "href",
    "link": "href",
    "img": "src",
    "script": "src",
}  # tag -> what leads elsewhere


class Ends(HTMLParser):
    """The ids of a page, and where its links lead."""

    def __init__(self, page: Path):
        super().__init__()
        self.ids: set[str] = set()
        self.links: dict[str, None] = {}
        self.feed(page.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        if id := given.get("id"):
            self.ids.add(id)
        if link := given.get(LEADING.get(tag, "")):
            self.links[link] = None


def dead(site: Path) -> list[str]:
    """Every internal link of a site that leads to no file or to no id, as "page -> link"."""
    pages = [page for page in sorted(site.rglob("*.html")) if page.parent.name != "_static"]
    found = {page: Ends(page) for page in pages}  # a theme keeps its templates in _static
    lost = []
    for page, ends in found.items():
        for link in ends.links:
            address, anchor = urldefrag(link)
            parts = urlsplit(address)
            if parts.scheme:
                continue
            path = Path(os.path.normpath(page.parent / unquote(parts.path))) if parts.path else page
            if not path.is_file() or (
                anchor and path in found and unquote(anchor) not in found[path].ids
            ):
                lost.append(f"{page.relative_to(site)} -> {link}")
    return lost


def check(site: Path) -> None:
    """Raise BadInput where a link of the site leads nowhere; the message names the first three."""
    if lost := dead(site):
        more = f", and {len(lost) - 3} more" if len(lost) > 3 else ""
        raise BadInput(
            f"links of the website lead nowhere: {'; '.join(lost[:3])}{more}. Mend them, or make "
            f"what they lead to."
        )
