"""Tables as plain HTML, no script, and those of artifacts and notebooks that are made from
results."""

import html
import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from visprompt import manifests, papers
from visprompt.words import ALIKE, EVIDENCE, NOT_JUDGED, NOT_RUN, SIGHTINGS, VERDICTS

from ..pages.judging import badge as shown_badge

EVERY = (*VERDICTS, *SIGHTINGS, ALIKE, NOT_JUDGED, NOT_RUN)  # what may stand for a claim


def badge(word: str | None) -> str:
    """One evidence or verdict word, coloured; the word itself carries the meaning."""
    return shown_badge(html.escape(word or NOT_RUN))


def css(word: str) -> str:
    """The CSS class of a word."""
    return f"vp-{word.replace(' ', '-')}"


def code(text: str) -> str:
    """An id as HTML."""
    return f"<code>{html.escape(text)}</code>"


def table(
    head: list[str],
    rows: list[list[str]],
    filterable: bool = False,
    choices: Sequence[str] = (),
    kind: str = "",
    widths: Sequence[int] = (),
    address: bool = False,
) -> str:
    """An HTML table from finished cells, in a box that scrolls sideways where it must.

    No blank line inside: in Markdown that would end the HTML, and what follows would be Markdown.

    Args:
        filterable: a text field above it leaves the rows with the typed words.
        choices: heads of the columns whose words can be picked from lists beside that field.
        kind: further CSS classes.
        widths: of the columns, percent: the table is then as wide as the page, and its texts wrap.
        address: what is picked and typed stands in the page's address, and what stands there is
            picked.
    """
    kind = " ".join(
        filter(None, ["vp-table", "vp-filterable" * filterable, "vp-fixed" * bool(widths), kind])
    )
    picks = (
        f' data-choices="{",".join(str(head.index(name)) for name in choices)}"' if choices else ""
    )
    picks += " data-address" * address
    columns = "".join(f'<col style="width: {width}%">' for width in widths)
    lines = [f'<div class="{kind}" tabindex="0"{picks}><table>{columns}', "<thead><tr>"]
    lines += [f'<th scope="col">{cell}</th>' for cell in head] + ["</tr></thead>", "<tbody>"]
    heads = (
        [re.sub("<[^>]*>", "", name) for name in head] if "vp-cards" in kind else [""] * len(head)
    )
    for row in rows:
        lines.append(f"<tr>{''.join(map(table_cell, row, heads))}</tr>")
    return re.sub(r"\n\s*\n", "\n", "\n".join([*lines, "</tbody></table></div>"]))


def table_cell(content: str, head: str = "") -> str:
    """One cell; a long text gets a wide column and a short one stays on a line; `head` is shown on
    narrow screens."""
    length = len(re.sub("<[^>]*>", "", content))
    kind = ' class="vp-wide"' if length > 60 else ' class="vp-short"' if length < 24 else ""
    head = f' data-head="{html.escape(head)}"' if head else ""
    return f"<td{kind}{head}>{content}</td>"


def printed_name(row) -> str:
    """How the paper calls it: "Table 1", "Figure A2", "Lemma 3"."""
    return f"{row['kind'].capitalize()} {row['number']}"


def link(artifact: str, text: str, results: dict, above: str = "") -> str:
    """A link to an artifact's section, or the plain text where no notebook has it yet; `above`
    leads to the front page."""
    notebook = results["artifacts"][artifact]["notebook"]
    text, target = html.escape(text), html.escape(f"{above}notebooks/{notebook}.html#{artifact}")
    return f'<a href="{target}">{text}</a>' if notebook else text


def evidence(results: dict, root: Path) -> str:
    """Per paper: how many artifacts have which evidence."""
    found = {id: entry["evidence"] for id, entry in results["artifacts"].items()}
    return counts("Artifacts", (*EVIDENCE, NOT_RUN), found)


def counts(what: str, words: tuple[str, ...], found: dict[str, str]) -> str:
    """A table of how many ids of each paper have which word; an id begins with the paper's slug."""
    count = Counter((id.split(".")[0], word) for id, word in found.items())
    rows, slugs = [], papers.papers()
    for slug, paper in slugs.items():
        numbers = [count[slug, word] for word in words]
        title = f'<span title="{html.escape(paper["title"])}">{html.escape(paper["short"])}</span>'
        rows.append([title, str(sum(numbers)), *map(str, numbers)])
    totals = [sum(count[slug, word] for slug in slugs) for word in words]
    rows.append(["<strong>all</strong>", str(len(found)), *map(str, totals)])
    return table(["Paper", what, *map(badge, words)], rows)


def artifacts(results: dict, root: Path) -> str:
    """Every table, figure and theorem of the papers, with its evidence, its claims and what would
    run the rest."""
    rows, judged = [], {}
    for claim in papers.claims():
        judged.setdefault(claim.artifact, Counter())[results["claims"][claim.id]["verdict"]] += 1
    for id, row in papers.artifacts().iterrows():
        entry = results["artifacts"][id]
        shown = dict.fromkeys(show["evidence"] for show in entry["shows"])
        words = " ".join(map(badge, shown)) if shown else badge(NOT_RUN)
        how = "<br>".join(dict.fromkeys(html.escape(show["how"]) for show in entry["shows"]))
        if entry["not_run"]:
            how += (
                f"{'<br>' if how else ''}<em>Not run:</em> {html.escape(entry['not_run']['why'])} "
            )
            how += "<br>".join(map(code, entry["not_run"]["command"].splitlines()))
        if not entry["notebook"]:
            how = "No page shows it."
        record = (
            f' (<a href="records/{html.escape(id)}.html">record</a>)' if entry["notebook"] else ""
        )
        short = html.escape(papers.papers()[row["paper"]]["short"])
        name = link(id, printed_name(row), results)
        counted = " ".join(
            f"{badge(word)}&nbsp;{n}" for word in EVERY if (n := judged.get(id, {}).get(word))
        )
        rows.append(
            [short, f"{name}{record}<br>{code(id)}", html.escape(row["title"]), words, counted, how]
        )
    head = ["Paper", "Artifact", "Title", "Evidence", "Claims", "How"]
    return table(
        head,
        rows,
        filterable=True,
        choices=("Paper", "Evidence", "Claims"),
        widths=(8, 16, 17, 10, 12, 37),
    )


def notebooks(results: dict, root: Path) -> str:
    """The notebooks with their downloads."""
    rows = []
    for name, entry in manifests.load_yaml(root / "data_manifests" / "notebooks.yaml").items():
        name = html.escape(name)
        rows.append(
            [
                f'<a href="notebooks/{name}.html">{html.escape(entry["title"])}</a>',
                str(len(entry["artifacts"])),
                f'<a href="downloads/{name}.py" download>{name}.py</a>',
                f'<a href="downloads/{name}.ipynb" download>{name}.ipynb</a>',
            ]
        )
    return table(["Notebook", "Tables, figures, statements", "Source", "Notebook to run"], rows)


MAKERS = {"evidence": evidence, "artifacts": artifacts, "notebooks": notebooks}
