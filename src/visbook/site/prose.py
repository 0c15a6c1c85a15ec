"""The pages of prose in book/, as they are before their generated parts are filled in."""

from pathlib import Path

from visprompt.papers import papers

COUNTED = (
    "no papers",
    "one paper",
    *(f"{word} papers" for word in "two three four five six seven eight nine ten".split()),
)


def pages(root: Path) -> dict[str, str]:
    """Name -> text, by name. `{papers}` becomes "five papers", as many as papers.yaml lists.

    A file whose name begins with `_` is a page for each paper: `_numbers.md` is `numbers-ap` and
    so on, with `{slug}` and `{short}` as papers.yaml has them.
    """
    found = {}
    for path in (root / "book").glob("*.md"):
        text = path.read_text(encoding="utf-8").replace("{papers}", counted(len(papers())))
        if path.stem.startswith("_"):
            for slug, paper in papers().items():
                own = text.replace("{slug}", slug).replace("{short}", paper["short"])
                found[f"{path.stem[1:]}-{slug}"] = own
        else:
            found[path.stem] = text
    return dict(sorted(found.items()))


def counted(count: int) -> str:
    """A number of papers in words, from eleven on in digits."""
    return COUNTED[count] if count < len(COUNTED) else f"{count} papers"
