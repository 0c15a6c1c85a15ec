"""The parts of the website that are made from manifests and results: tables as plain HTML, no script."""

import base64
import html
import inspect
import io
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

import timm
import torch
from PIL import Image

import visprompt

from .. import manifests, papers
from ..data import catalogue
from ..data.drawing import draw
from ..data.layouts import LAYOUTS
from ..data.tasks import SPLITS, load_task
from ..models.loading import load_backbone
from ..pages.judging import badge as shown_badge
from ..words import EVIDENCE, NOT_JUDGED, NOT_RUN, SIGHTINGS, VERDICTS

EVERY = (*VERDICTS, *SIGHTINGS, NOT_JUDGED, NOT_RUN)  # what may stand for a claim
# Modules and rooms that only this site and its pages use.
HIDDEN = {"__init__", "__main__", "manifest", "chapters", "site"}  # but for what `import visprompt` offers


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
        address: what is picked and typed stands in the page's address, and what stands there is picked.
    """
    kind = " ".join(filter(None, ["vp-table", "vp-filterable" * filterable, "vp-fixed" * bool(widths), kind]))
    picks = f' data-choices="{",".join(str(head.index(name)) for name in choices)}"' if choices else ""
    picks += " data-address" * address
    columns = "".join(f'<col style="width: {width}%">' for width in widths)
    lines = [f'<div class="{kind}" tabindex="0"{picks}><table>{columns}', "<thead><tr>"]
    lines += [f'<th scope="col">{cell}</th>' for cell in head] + ["</tr></thead>", "<tbody>"]
    heads = [re.sub("<[^>]*>", "", name) for name in head] if "vp-cards" in kind else [""] * len(head)
    for row in rows:
        lines.append(f"<tr>{''.join(map(table_cell, row, heads))}</tr>")
    return re.sub(r"\n\s*\n", "\n", "\n".join([*lines, "</tbody></table></div>"]))


def table_cell(content: str, head: str = "") -> str:
    """One cell; a long text gets a wide column and a short one stays on a line; `head` is shown on narrow screens."""
    length = len(re.sub("<[^>]*>", "", content))
    kind = ' class="vp-wide"' if length > 60 else ' class="vp-short"' if length < 24 else ""
    head = f' data-head="{html.escape(head)}"' if head else ""
    return f"<td{kind}{head}>{content}</td>"


def printed_name(row) -> str:
    """How the paper calls it: "Table 1", "Figure A2", "Lemma 3"."""
    return f"{row['kind'].capitalize()} {row['number']}"


def link(artifact: str, text: str, results: dict, above: str = "") -> str:
    """A link to an artifact's section, or the plain text where no notebook has it yet; `above` leads to the front page."""
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
    """Every table, figure and theorem of the papers, with its evidence, its claims and what would run the rest."""
    rows, judged = [], {}
    for claim in papers.claims():
        judged.setdefault(claim.artifact, Counter())[results["claims"][claim.id]["verdict"]] += 1
    for id, row in papers.artifacts().iterrows():
        entry = results["artifacts"][id]
        shown = dict.fromkeys(show["evidence"] for show in entry["shows"])
        words = " ".join(map(badge, shown)) if shown else badge(NOT_RUN)
        how = "<br>".join(dict.fromkeys(html.escape(show["how"]) for show in entry["shows"]))
        if entry["not_run"]:
            how += f"{'<br>' if how else ''}<em>Not run:</em> {html.escape(entry['not_run']['why'])} "
            how += code(" ".join(entry["not_run"]["command"].split()))
        if not entry["notebook"]:
            how = "No notebook speaks of it yet."
        record = f' (<a href="records/{html.escape(id)}.html">record</a>)' if entry["notebook"] else ""
        short = html.escape(papers.papers()[row["paper"]]["short"])
        name = link(id, printed_name(row), results)
        counted = " ".join(f"{badge(word)}&nbsp;{n}" for word in EVERY if (n := judged.get(id, {}).get(word)))
        rows.append([short, f"{name}{record}<br>{code(id)}", html.escape(row["title"]), words, counted, how])
    head = ["Paper", "Artifact", "Title", "Evidence", "Claims", "How"]
    return table(head, rows, filterable=True, choices=("Paper", "Evidence", "Claims"), widths=(8, 16, 17, 10, 12, 37))


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
    return table(["Notebook", "Artifacts", "Source", "Executed"], rows)


def data(results: dict, root: Path) -> str:
    """The tasks of data_manifests/tasks.yaml, each with its first training images."""

    def examples(group: str, name: str) -> str:
        if group != "embedded":
            return ""
        task = load_task(name)
        labels = [task.class_names[label] for label in task.train[1][:10]]
        return strip(task.train[0][:10], f"Ten images of {name}, of the classes {', '.join(labels)}.")

    return manifest(root / "data_manifests" / "tasks.yaml", examples)


def datasets(results: dict, root: Path) -> str:
    """The papers' data sets: what of them is for whom, how to get them, how large, in which splits."""
    rows = []
    for name, found in catalogue.datasets().items():
        known = [file.size for file in found.files if file.size]
        size = f"{sum(known) / 1e9:.2f} GB" if known else ""
        size += " and more" if known and len(known) < len(found.files) else "" if known else "not published"
        pinned = sum(bool(file.checksum) for file in found.files)
        rows.append(
            [
                f'<a id="data-{name}" href="{html.escape(found.home)}">{html.escape(found.title)}</a><br>{code(name)} '
                + " ".join(map(code, found.aliases)),
                "<br>".join(filter(None, (task_row(task, about) for task, about in found.tasks.items()))),
                found.access,
                html.escape(found.licence),
                f"{size}, {pinned} of {len(found.files)} checksums" if found.files else size,
                html.escape(", ".join(found.unverified)),
            ]
        )
    head = ["Data set, and its names", "Tasks: classes, train/val/test", "Access", "Licence", "To fetch", "Unverified"]
    return table(head, rows, filterable=True, choices=("Access",), widths=(24, 30, 10, 14, 12, 10))


def task_row(task: str, about: dict) -> str:
    """A task of a data set in a line."""
    numbers = about.get("splits", {})
    splits = "/".join(f"{numbers[part]:,}" if part in numbers else "-" for part in SPLITS) if numbers else "no counts printed"
    more = [html.escape(about[key]) for key in ("source", "label") if key in about]
    kind = about["benchmark"] if about["group"] == "other" else f"{about['benchmark']}, {about['group']}"
    return f"{code(task)} ({html.escape(kind)}): {about['classes']:,}; {'; '.join([splits, *more])}"


def layouts_page(results: dict, root: Path) -> str:
    """The layouts of data sets, each with what a folder needs to have it."""
    rows = [["the field's lists", f"{code('train800.txt')}, {code('val200.txt')}, {code('test.txt')}, the pictures they name"]]
    rows += [[html.escape(layout.name), code(layout.wants)] for layout in LAYOUTS.values()]
    tasks = {name: [found.name for found in catalogue.datasets().values() if found.layout == name] for name in LAYOUTS}
    for row, name in zip(rows[1:], LAYOUTS):
        row.append(", ".join(map(code, tasks[name])) or "any")
    rows[0].append("any")
    return table(["Layout", "A folder has it that holds", "Data sets"], rows)


def preprocessing(results: dict, root: Path) -> str:
    """How each paper prepares the pictures of a benchmark."""
    said = manifests.load_yaml(root / "data_manifests" / "preprocessing.yaml")
    short = {slug: paper["short"] for slug, paper in papers.papers().items()}
    rows = [[kind, html.escape(short[slug]), html.escape(text)] for kind, by in said.items() for slug, text in by.items()]
    return table(["Benchmark", "Paper", "Pictures"], rows)


def backbones(results: dict, root: Path) -> str:
    """The backbones of data_manifests/backbones.yaml, and what they were trained on."""
    images = torch.from_numpy(draw("source", 10, seed=0)[0]).permute(0, 3, 1, 2)
    source = strip(images, "Ten drawn images of the source task: outlines with four fills, and strokes, on many grounds.")
    return f"The source task looks like this:\n\n{source}\n\n" + manifest(
        root / "data_manifests" / "backbones.yaml", timm_facts
    )


def timm_facts(group: str, name: str) -> str:
    """What timm says of a published checkpoint: parameters without the head, input, normalisation, where, licence."""
    if group != "published":
        return ""
    said, network = timm.get_pretrained_cfg(name), load_backbone(name, device="meta")
    heads = [part.numel() for key, part in network.model.named_parameters() if key.startswith(("head.", "fc."))]
    count = sum(part.numel() for part in network.model.parameters()) - sum(heads)
    facts = {
        "parameters without the classifier": f"{count:,}",
        "input": f"{network.image_size} x {network.image_size}, mean {network.mean}, std {network.std}",
        "pooling": getattr(network.model, "global_pool", "avg") if network.is_vit else "mean of all places",
        "from": said.hf_hub_id or said.url,
        "licence, as timm has it": said.license or "none stated",
    }
    return table(["Fact", "Value"], [[html.escape(key), html.escape(str(fact))] for key, fact in facts.items()])


def strip(images: torch.Tensor, alt: str, scale: int = 4) -> str:
    """Images (n, 3, S, S) uint8 side by side, enlarged without smoothing, as one picture in the page itself."""
    row = torch.nn.functional.pad(images, [0, 1], value=255).permute(2, 0, 3, 1).flatten(1, 2)
    big = row.repeat_interleave(scale, 0).repeat_interleave(scale, 1)
    buffer = io.BytesIO()
    Image.fromarray(big.numpy()).save(buffer, "PNG")
    data = base64.b64encode(buffer.getvalue()).decode()
    return f'<img class="vp-strip" src="data:image/png;base64,{data}" alt="{html.escape(alt)}">'


def manifest(path: Path, extra=lambda group, name: "") -> str:
    """A manifest, group -> name -> fields: a heading a group, a small table a name, and what `extra` adds to it."""
    parts = []
    for group, entries in manifests.load_yaml(path).items():
        parts.append(f"## {html.escape(group.replace('_', ' ').capitalize())}\n")
        for name, fields in entries.items():
            rows = [[html.escape(field.replace("_", " ")), value(content)] for field, content in fields.items()]
            parts.append(f"### {html.escape(str(name))}\n\n{extra(group, name)}\n\n{table(['Field', 'Value'], rows)}\n")
    return "\n".join(parts)


def value(thing) -> str:
    """One field of a manifest for reading."""
    if thing is None:
        return ""
    if isinstance(thing, dict):
        return "<br>".join(f"{html.escape(str(key))}: {value(part)}" for key, part in thing.items())
    if isinstance(thing, list):
        return ", ".join(map(value, thing))
    text = html.escape(str(thing))
    return f'<a href="{text}">{text}</a>' if text.startswith("https://") else text


def contributing(results: dict, root: Path) -> str:
    """CONTRIBUTING.md without its title, which the page has already."""
    path = root / "CONTRIBUTING.md"
    return path.read_text(encoding="utf-8").split("\n", 1)[1] if path.exists() else "See the repository."


def api(results: dict, root: Path) -> str:
    """What `import visprompt as vp` offers, each name with its first line, then the rooms of the package."""
    rows = []
    for name in visprompt.HOMES:
        thing = getattr(visprompt, name)
        said = (inspect.getdoc(thing) or "").split("\n")[0] if callable(thing) else "All methods, by slug."
        rows.append([f'<a href="{home(name)}">{code(f"vp.{name}")}</a>', html.escape(said)])
    rooms = [[f'<a href="api/{room}.html">{code(room)}</a>', str(len(modules))] for room, modules in rooms_of(root).items()]
    return table(["Name", "What it is"], sorted(rows)) + "\n\n## By room\n\n" + table(["Room", "Modules"], rooms)


def home(name: str) -> str:
    """The address of what `import visprompt as vp` offers under a name; a constant has none of its own."""
    room = f"api/{visprompt.HOMES[name].partition('.')[0]}.html"
    return (
        f"{room}#visprompt.{visprompt.HOMES[name]}.{visprompt.RENAMED.get(name, name)}"
        if callable(getattr(visprompt, name))
        else room
    )


def rooms_of(root: Path) -> dict[str, list[str]]:
    """Room of the package -> its modules; a module beside the rooms is one of its own."""
    package, found = root / "src" / "visprompt", {}
    for path in sorted(package.rglob("*.py"), key=lambda path: (len(path.parts), path)):
        parts = path.relative_to(package).with_suffix("").parts
        if parts == ("__init__",) or "__main__" in parts:
            continue
        name = ".".join(part for part in parts if part != "__init__")
        if name in visprompt.HOMES.values() or not HIDDEN & set(parts) - {"__init__"}:
            found.setdefault(parts[0], []).append(name)
    return found


def api_pages(root: Path) -> Iterator[tuple[str, str]]:
    """A page a room: (room, its text), filled in by autodoc from the docstrings."""
    for room, modules in rooms_of(root).items():
        parts = [f"# `{room}`\n"]
        for name in modules:  # a room's own module says what it defines, not what it hands on
            only = "\n   :ignore-module-all:" * (name == room)
            parts.append(f"## {name}\n\n```{{eval-rst}}\n.. automodule:: visprompt.{name}{only}\n```\n")
        yield room, "\n".join(parts)


MAKERS = {
    "evidence": evidence,
    "artifacts": artifacts,
    "notebooks": notebooks,
    "data": data,
    "datasets": datasets,
    "preprocessing": preprocessing,
    "layouts": layouts_page,
    "backbones": backbones,
    "api": api,
    "contributing": contributing,
}
