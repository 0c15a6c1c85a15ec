"""What the pages on the methods show: a picture each with its line of costs, the settings, the
rates that were tried."""

import ast
import functools
import html
import importlib
import inspect
import re
from collections.abc import Sequence
from dataclasses import fields

import pandas as pd
import torch

from visprompt.errors import choose
from visprompt.measure.cost import count_flops
from visprompt.methods import METHODS, build_method, method_class
from visprompt.methods.parameters import count_parameters
from visprompt.models.backbones import Backbone, load_backbone
from visprompt.records import Record, recorded, remember

from ..pages import diagrams, plots
from ..pages.page import Page
from ..pages.parameters import Parameters
from ..studies.rates import below, recipe_at
from . import method_code

BACKBONE, CLASSES, BATCH = "vit_base_patch16_224", 100, 64
FAMILIES = {"vit": "ViT", "resnet": "ResNet", "swin": "Swin"}
# page -> the idea that its methods share, and the methods
PAGES = {
    "methods_baselines": ("baseline", ["linear-probe", "full-finetune", "bias", "norm-tune"]),
    "methods_adapters": ("adapter", ["lora", "adapter", "adaptformer", "ssf"]),
    "methods_added": ("added to image or activations", ["vp", "ap"]),
    "methods_prompts": (
        "prompt tokens",
        ["vpt-shallow", "vpt-deep", "gate-vpt", "e2vpt", "provp", "express"],
    ),
    "methods_ivpt": ("prompts connected across blocks", ["cdc", "ivpt"]),
    "methods_spt": ("prompts initialised from the task", ["spt-shallow", "spt-deep"]),
    "methods_davpt": ("prompts guided by classes", ["da-vpt", "da-vpt-plus"]),
}
DRAWN = "A drawing made from code, of what the methods' code does."
COUNTED = f"Counted on the shapes of {BACKBONE} with {CLASSES} classes, a batch of {BATCH}."


def by_idea() -> list[tuple[str, str, str]]:
    """(slug, idea, page) of every method, as the pages have them; one that is on none yet comes
    last, without both."""
    told = [(slug, idea, page) for page, (idea, slugs) in PAGES.items() for slug in slugs]
    return told + [(slug, "", "") for slug in METHODS if slug not in {slug for slug, _, _ in told}]


@remember
def shapes(trims: bool) -> Backbone:
    """The backbone as shapes; without `trims` every token goes through its last block, as the
    papers run it."""
    found = load_backbone(BACKBONE, device="meta")
    if not trims:
        found.trims = False
    return found


def cost(slug: str, trims: bool = True, **settings) -> Record:
    """Record of trained parameters and of multiply-adds for one image, on the shapes of
    ViT-B/16."""
    model = build_method(slug, shapes(trims), CLASSES, **settings)
    chosen = {
        "what": "a method's cost",
        "backbone": BACKBONE,
        "classes": CLASSES,
        "batch_size": BATCH,
        "trims": trims,
        "method": slug,
        "method_settings": settings,
    }
    return recorded(
        "count",
        chosen,
        lambda: {**count_parameters(model), "macs": count_flops(model, batch_size=BATCH)["macs"]},
        made=[model, model.source],
    )


@functools.cache
def bare() -> Record:
    """The cost of the bare backbone with a head, run as the papers run it."""
    return cost("linear-probe", trims=False)


def over_bare(record: Record) -> str:
    """Multiply-adds over those of the bare backbone."""
    return f"{record.values['macs'] / bare().values['macs']:.3f}"


def cost_line(slug: str, record: Record) -> dict:
    """What a method costs and what it runs on, as one row."""
    return {
        "trained parameters": f"{record.values['method']:,}",
        "GMACs per image": f"{record.values['macs'] / 1e9:.2f}",
        "relative to the bare backbone": over_bare(record),
        "runs on": ", ".join(FAMILIES[family] for family in method_class(slug).families),
    }


class MethodsPage(Page):
    """A page on methods: pictures, lines of costs, tables. Opening it computes nothing."""

    def __init__(self, name: str, settings: Parameters):
        super().__init__(name, settings)
        plots.style()
        torch.set_num_threads(1)

    def table(
        self,
        rows,
        caption: str,
        records: Sequence[Record] = (),
        how: str = COUNTED,
        evidence: str = "derived",
    ) -> None:
        """A table of what is no artifact of a paper; its cells may hold HTML."""
        self.present(
            pd.DataFrame(rows),
            evidence=evidence,
            how=how,
            records=records,
            caption=caption,
            escape=False,
        )

    def picture(self, name: str, caption: str) -> None:
        """A picture that is no artifact of a paper; the cell that draws it has its name."""
        more = {"caption": caption, "alt": diagrams.alt(name), "cell": name}
        self.present(diagrams.draw(name), evidence="derived", how=DRAWN, **more)

    def counterpart(
        self,
        artifact: str,
        name: str,
        caption: str,
        records: Sequence[Record] = (),
        how: str = DRAWN,
    ) -> None:
        """A picture that is the counterpart of a drawing in a paper."""
        more = {"records": records, "caption": caption, "alt": diagrams.alt(name)}
        self.show(artifact, diagrams.draw(name), evidence="derived", how=how, **more)

    def method(self, slug: str, caption: str, artifact: str | None = None) -> None:
        """The picture of a method, its line of costs and its code."""
        record = cost(slug)
        if artifact:
            self.counterpart(artifact, slug, caption, [record])
        else:
            self.picture(slug, caption)
        self.table(
            [cost_line(slug, record)],
            f"Cost of {plots.NAMES[slug]} with its default settings.",
            [record],
        )
        method_code.show_method(slug, record)


def reference_row(trimmed: Record) -> dict:
    """What the lines of costs refer to, as one row."""
    return {
        "backbone": BACKBONE,
        "classes": CLASSES,
        "batch": BATCH,
        "bare GMACs": f"{bare().values['macs'] / 1e9:.2f}",
        "if the last block computes only the class token": over_bare(trimmed),
        "parameters of the head": f"{bare().values['head']:,}",
    }


def summary_row(slug: str, idea: str, page: str, record: Record) -> dict:
    """One method among all, with a link to where it is described."""
    name = plots.NAMES[slug]
    linked = f'<a href="{page}.html#method-{slug}">{name}</a>' if page else name
    return {
        "method": linked,
        "name in code": f"<code>{slug}</code>",
        "idea": idea,
        **cost_line(slug, record),
    }


def settings_rows(slug: str) -> list[dict]:
    """Name, default and reason of every setting of a method, read off its `Settings` and the
    comments in its source.

    The reason is the comment behind a field or on the lines above it; failing that, what the
    docstring of `Settings` says of it; failing that, the comment of the last field, which then
    speaks of both.
    """
    module = importlib.import_module(method_class(choose("method", slug, METHODS)).__module__)
    reasons = {}
    for kind in reversed(module.Settings.__mro__[:-1]):
        lines, first = inspect.getsourcelines(kind)
        doc, comment = inspect.getdoc(kind) or "", ""
        for node in ast.parse("".join(lines)).body[0].body:
            if isinstance(node, ast.AnnAssign):
                own = comment_at(lines, node)
                said = re.search(rf"`{node.target.id}`:? (.+?)(?:\.\s|\.$)", doc, re.DOTALL)
                comment = own or (" ".join(said[1].split()) if said else comment)
                reasons[node.target.id] = comment
    return [
        {
            "method": slug,
            "setting": field.name,
            "default": repr(field.default),
            "reason": reasons[field.name],
        }
        for field in fields(module.Settings)
    ]


def comment_at(lines: list[str], node: ast.AST) -> str:
    """The comment behind a statement of a source, else the one on the lines above it; or ""."""
    behind = re.search(r"#\s*(.+)$", lines[node.end_lineno - 1])
    if behind:
        return behind[1].strip()
    first = node.lineno - 1
    while lines[first - 1].strip().startswith("#"):
        first -= 1
    return " ".join(line.strip().lstrip("# ") for line in lines[first : node.lineno - 1])


def all_settings() -> list[dict]:
    """The settings of all methods as rows of HTML; DA-VPT+'s without those that DA-VPT has."""
    inherited = {row["setting"] for row in settings_rows("da-vpt")}
    return [
        {
            key: f"<code>{html.escape(value)}</code>" if key != "reason" else html.escape(value)
            for key, value in row.items()
        }
        for slug, _, _ in by_idea()
        for row in settings_rows(slug)
        if slug != "da-vpt-plus" or row["setting"] not in inherited
    ]


def tried_rates(found: dict[str, dict[float, Record]]) -> list[dict]:
    """Validation accuracy by method and learning rate as rows of HTML, the recipe's rate in bold,
    and what it lacks."""
    rates, rows = sorted({rate for records in found.values() for rate in records}), []
    for slug, records in found.items():
        shown = {rate: f"{record.values['val']:.1f}" for rate, record in records.items()}
        chosen = recipe_at(slug, None).learning_rate
        cells = {rate: f"<b>{text}</b>" if rate == chosen else text for rate, text in shown.items()}
        row = {
            "method": plots.NAMES[slug],
            **{f"{rate:g}": cells.get(rate, "") for rate in rates},
        }
        rows.append(
            {
                **row,
                "below the best": below(
                    {rate: record.values["val"] for rate, record in records.items()}, chosen
                ),
            }
        )
    return rows
