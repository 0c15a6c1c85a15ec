"""The text of every page as a script, from which the search shows an excerpt: a page that was
opened from a folder may not read any other."""

import html
import json
import re
from pathlib import Path

ARTICLE = re.compile(r'(?s)<article class="bd-article".*?</article>')
LEFT_OUT = re.compile(
    r"(?s)<(script|style|svg|table|pre|form|nav)\b.*?</\1>|<details\b[^>]*>.*?</details>"
)
MOST = 12_000  # letters of a page
PAGES = ("*.html", "notebooks/*.html")


def write(site: Path) -> None:
    """Write _static/excerpts.js: page -> the words of its paragraphs."""
    found = {}
    for path in sorted(path for pattern in PAGES for path in site.glob(pattern)):
        if article := ARTICLE.search(path.read_text(encoding="utf-8")):
            name = path.relative_to(site).with_suffix("").as_posix()
            found[name] = words(article[0])[:MOST]
    text = json.dumps(found, ensure_ascii=False, separators=(",", ":"))
    (site / "_static" / "excerpts.js").write_text(f"window.vpTexts = {text};\n", encoding="utf-8")


def words(shown: str) -> str:
    """The words of a page, without tables, code, pictures and what is folded."""
    text = re.sub(r"<[^>]*>", " ", LEFT_OUT.sub(" ", shown))
    return " ".join(html.unescape(text).replace("#", " ").split())
