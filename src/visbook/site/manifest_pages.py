"""What the pages on data sets and backbones show of their manifests."""

import base64
import html
import io
import json
from functools import partial
from pathlib import Path

import timm
import torch
from PIL import Image

from visprompt import manifests, papers
from visprompt.data import catalogue
from visprompt.data.drawing import draw
from visprompt.data.layouts import LAYOUTS
from visprompt.data.leaves import draw_leaves
from visprompt.data.tasks import SPLITS, load_task
from visprompt.models.loading import load_backbone

from ..pages.friendly import NETWORK, named
from ..studies.forecast import checkpoint_bytes
from .tables import code, table


def data(results: dict, root: Path) -> str:
    """The tasks of data_manifests/tasks.yaml, each with its first training images."""

    def examples(group: str, name: str) -> str:
        if group != "embedded":
            return ""
        task = load_task(name)
        labels = [task.class_names[label] for label in task.train[1][:10]]
        classes = ", ".join(labels).replace("_", " ")
        return strip(task.train[0][:10], f"Ten images of {named(name)}, of the classes {classes}.")

    return manifest(root / "data_manifests" / "tasks.yaml", examples)


def names(root: Path) -> str:
    """A script: the names that readers see of embedded tasks and networks, each with the place of
    its pictures."""
    found = {
        named(name): f"{page}.html#{name.replace('_', '-').replace('.', '-')}"
        for page, file in (("data", "tasks"), ("backbones", "backbones"))
        for name in manifests.load_yaml(root / "data_manifests" / f"{file}.yaml")["embedded"]
    }
    return f"window.vpNames = {json.dumps(found)};\n"


def datasets(results: dict, root: Path) -> str:
    """The papers' data sets: what of them is for whom, how to get them, how large, in which
    splits."""
    rows = []
    for name, found in catalogue.datasets().items():
        known = [file.size for file in found.files if file.size]
        size = f"{sum(known) / 1e9:.2f} GB" if known else ""
        size += (
            " and more"
            if known and len(known) < len(found.files)
            else ""
            if known
            else "not published"
        )
        pinned = sum(bool(file.checksum) for file in found.files)
        rows.append(
            [
                f'<a id="data-{name}" '
                f'href="{html.escape(found.home)}">{html.escape(found.title)}</a><br>{code(name)} '
                + " ".join(map(code, found.aliases)),
                "<br>".join(
                    filter(None, (task_row(task, about) for task, about in found.tasks.items()))
                ),
                found.access,
                html.escape(found.licence),
                f"{size}, {pinned} of {len(found.files)} checksums" if found.files else size,
                html.escape(
                    ", ".join(what for what in found.unverified if what not in ("home", "licence"))
                ),
            ]
        )
    head = [
        "Data set, and its names",
        "Tasks: classes, train/val/test",
        "Access",
        "Licence",
        "To fetch",
        "Unverified",
    ]
    return table(head, rows, filterable=True, choices=("Access",), widths=(24, 30, 10, 14, 12, 10))


def task_row(task: str, about: dict) -> str:
    """A task of a data set in a line."""
    numbers = about.get("splits", {})
    splits = (
        "/".join(f"{numbers[part]:,}" if part in numbers else "-" for part in SPLITS)
        if numbers
        else "no counts printed"
    )
    more = [html.escape(named(about[key])) for key in ("source", "label") if key in about]
    kind = (
        about["benchmark"]
        if about["group"] == "other"
        else f"{about['benchmark']}, {about['group']}"
    )
    return f"{code(task)} ({html.escape(kind)}): {about['classes']:,}; {'; '.join([splits, *more])}"


def layouts_page(results: dict, root: Path) -> str:
    """The layouts of data sets, each with what a folder needs to have it."""
    rows = [
        [
            "the field's lists",
            f"{code('train800.txt')}, {code('val200.txt')}, {code('test.txt')}, the "
            f"pictures they name",
        ]
    ]
    rows += [[html.escape(layout.name), code(layout.wants)] for layout in LAYOUTS.values()]
    tasks = {
        name: [found.name for found in catalogue.datasets().values() if found.layout == name]
        for name in LAYOUTS
    }
    for row, name in zip(rows[1:], LAYOUTS):
        row.append(", ".join(map(code, tasks[name])) or "any")
    rows[0].append("any")
    return table(["Layout", "A folder has it that holds", "Data sets"], rows)


def preprocessing(results: dict, root: Path) -> str:
    """How each paper prepares the pictures of a benchmark."""
    said = manifests.load_yaml(root / "data_manifests" / "preprocessing.yaml")
    short = {slug: paper["short"] for slug, paper in papers.papers().items()}
    rows = [
        [kind, html.escape(short[slug]), html.escape(text)]
        for kind, by in said.items()
        for slug, text in by.items()
    ]
    return table(["Benchmark", "Paper", "Pictures"], rows)


def backbones(results: dict, root: Path) -> str:
    """The backbones of data_manifests/backbones.yaml, and what they were trained on."""
    sources = (partial(draw, "source"), draw_leaves)
    images, leaves = (
        torch.from_numpy(drawn(10, seed=0)[0]).permute(0, 3, 1, 2) for drawn in sources
    )
    source = strip(
        images,
        "Ten drawn images of the source task: outlines with four fills, and strokes, on many "
        "backgrounds.",
    )
    behind = strip(
        leaves,
        "Ten drawn images of the source of leaves: the same shapes over up to two others, on "
        "soft backgrounds.",
    )
    return (
        f"The source task looks like this:\n\n{source}\n\nNetworks marked *leaves* learned from "
        "shapes that cover each other. Like photographs, these images have edges, smooth regions "
        f"and occlusions, so that outlines decide what a hidden patch shows:\n\n{behind}\n\n"
        + manifest(root / "data_manifests" / "backbones.yaml", timm_facts)
    )


def timm_facts(group: str, name: str) -> str:
    """What timm says of a published checkpoint: parameters without the head, input, normalisation,
    where, licence."""
    if group != "published":
        return ""
    said, network = timm.get_pretrained_cfg(name), load_backbone(name, device="meta")
    heads = [
        part.numel()
        for key, part in network.model.named_parameters()
        if key.startswith(("head.", "fc."))
    ]
    count = sum(part.numel() for part in network.model.parameters()) - sum(heads)
    facts = {
        "parameters without the classifier": f"{count:,}",
        "size": f"{checkpoint_bytes(name) / 1e6:,.1f} MB, four bytes per parameter",
        "input": f"{network.image_size} x {network.image_size}, mean {rounded(network.mean)}, "
        f"std {rounded(network.std)}",
        "pooling": getattr(network.model, "global_pool", "avg")
        if network.is_vit
        else "mean of all places",
        "from": said.hf_hub_id or said.url,
        "licence, as timm has it": said.license or "none stated",
    }
    return table(
        ["Fact", "Value"],
        [[html.escape(key), value(fact)] for key, fact in facts.items()],
    )


def rounded(numbers: tuple[float, ...]) -> str:
    """Three numbers, each with three digits."""
    return ", ".join(f"{number:.3g}" for number in numbers)


def strip(images: torch.Tensor, alt: str, scale: int = 4) -> str:
    """Images (n, 3, S, S) uint8 side by side, enlarged without smoothing, as one picture in the
    page itself."""
    row = torch.nn.functional.pad(images, [0, 1], value=255).permute(2, 0, 3, 1).flatten(1, 2)
    big = row.repeat_interleave(scale, 0).repeat_interleave(scale, 1)
    buffer = io.BytesIO()
    Image.fromarray(big.numpy()).save(buffer, "PNG")
    data = base64.b64encode(buffer.getvalue()).decode()
    return f'<img class="vp-strip" src="data:image/png;base64,{data}" alt="{html.escape(alt)}">'


def manifest(path: Path, extra=lambda group, name: "") -> str:
    """A manifest, group -> name -> fields: a heading a group, a small table a name, and what
    `extra` adds to it."""
    parts = []
    for group, entries in manifests.load_yaml(path).items():
        parts.append(f"## {html.escape(group.replace('_', ' ').capitalize())}\n")
        for name, fields in entries.items():
            rows = [
                [html.escape(field.replace("_", " ")), value(content)]
                for field, content in fields.items()
            ]
            parts.append(
                f"### `{html.escape(str(name))}`\n\n{extra(group, name)}\n\n"
                f"{table(['Field', 'Value'], rows)}\n"
            )
    return "\n".join(parts)


def value(thing) -> str:
    """One field of a manifest for reading."""
    if thing is None:
        return ""
    if isinstance(thing, dict):
        return "<br>".join(f"{html.escape(str(key))}: {value(part)}" for key, part in thing.items())
    if isinstance(thing, list):
        return ", ".join(map(value, thing))
    text = NETWORK.sub(lambda match: code(match[0]), html.escape(str(thing)))
    return f'<a href="{text}">{text}</a>' if text.startswith("https://") else text


MAKERS = {
    "data": data,
    "datasets": datasets,
    "preprocessing": preprocessing,
    "layouts": layouts_page,
    "backbones": backbones,
}
