"""The pages on the papers' recipes, and on where released code differs from its paper."""

import html
import re
from collections.abc import Mapping
from pathlib import Path

from visprompt import manifests
from visprompt.methods import names
from visprompt.papers import papers
from visprompt.training.protocol import Protocol, protocol
from visprompt.training.recipe_files import SAID
from visprompt.words import NOT_RUN

from ..chapters import released_pairs
from ..chapters.chapter import PARTS
from ..pages.recipe_words import values, word
from ..studies.plan import recipes as recipes_of_papers
from .tables import badge, code, table

TITLES = {  # of the recipes that are no paper's of the list
    "quick": "quick: small networks and embedded tasks",
    "real": "real: photographs and a published ViT-Tiny",
    "vpt": "vpt: VPT, which the others follow",
}
UNNAMED = "this project's default"


def recipes(results: dict, root: Path) -> str:
    """Every recipe: its fields with their sources, what is searched, what a task has of its own,
    what is lacking."""
    parts, titles = [], dict(TITLES)
    for slug, name in recipes_of_papers().items():
        titles[name] = f"{name}: {papers()[slug]['short']}"
    for name, entry in manifests.load_yaml(root / "data_manifests" / "recipes.yaml").items():
        own = protocol(name)
        rows = [
            [
                code(field),
                "<br>".join(map(html.escape, values(field, entry, own))),
                html.escape(own.sources.get(field, UNNAMED)),
            ]
            for field in SAID
            if field != "seeds" or field in own.sources
        ]
        parts.append(
            f"## {html.escape(titles.get(name, name))}\n\n"
            f"{table(['Field', 'Value', 'Where it is said'], rows)}\n"
        )
        parts.append(
            f"\n{table(['Search', 'Values', 'Trials per cell, for every method'], searched(own))}\n"
        )
        parts += [
            by_task(slug, part, tasks)
            for slug in own.per_task
            for part, tasks in own.tasks_of(slug).items()
        ]
        if own.lacking:
            lines = [
                f"- **{html.escape(what)}**: {html.escape(why)}"
                for what, why in own.lacking.items()
            ]
            parts.append("\nWhat is done there and not here:\n\n" + "\n".join(lines) + "\n")
    return "\n".join(parts)


def by_task(slug: str, part: str, tasks: Mapping[str, dict]) -> str:
    """What tasks have of their own for a method, on the checkpoint of a part if it has a name."""
    rows = {task: given | given.get("recipe", {}) for task, given in tasks.items()}
    columns = dict.fromkeys(n for row in rows.values() for n in row if n != "recipe")
    every = [
        [code(task), *(html.escape(word(row.get(name, "–"))) for name in columns)]
        for task, row in rows.items()
    ]
    where = f", {PARTS[part]}" if part else ""
    title = f"Of {html.escape(names()[slug])}{where}, by task:"
    return f"\n{title}\n\n{table(['Task', *map(code, columns)], every)}\n"


def searched(own: Protocol) -> list[list[str]]:
    """A row a search."""
    rows = []
    for name, grid in own.searches.items():
        lists = [
            f"{code(field)}: "
            f"{', '.join(f'{v:g}' if isinstance(v, float) else str(v) for v in grid[field])}"
            for field in grid
        ]
        most = [f"to {own.budget[name] + more}" for more in grid.get("outward", ())]
        rows.append([code(name), "<br>".join(lists), " ".join([f"{own.budget[name]}", *most])])
    return rows


def differences(results: dict, root: Path) -> str:
    """Where released code does something else than its paper, and the option that does what the
    code does."""
    rows = []
    for slug, entries in manifests.load_yaml(root / "data_manifests" / "differences.yaml").items():
        for entry in entries:
            option = {**entry.get("option", {})}
            fields = option.pop("recipe", {})
            told = [code(f"{name}={value!r}") for name, value in option.items()]
            told += [f"recipe {code(f'{name}={value!r}')}" for name, value in fields.items()]
            cells = [html.escape(entry[name]) for name in ("what", "paper", "code")]
            why = re.sub("`(.+?)`", r"<code>\1</code>", html.escape(entry.get("none", "")))
            rest = f'<span class="vp-how">{why}</span>' if why else ""
            rows.append(
                [html.escape(names()[slug]), *cells, "<br>".join([*told, *filter(None, [rest])])]
            )
    head = ["Method", "What", "The paper", "Its released code", "Option here"]
    return table(head, rows, filterable=True, choices=("Method",), widths=(11, 15, 24, 24, 26))


def pairs(results: dict, root: Path) -> str:
    """What each option moves on the small world, from the records of its two runs."""
    head = ["Method", "What", "Points moved", "95 % interval", "Seeds"]
    rows = released_pairs.rows(released_pairs.frame())
    shown = table(head, rows) if rows else ""
    lacking = released_pairs.options() - len(rows)
    told = f"{badge(NOT_RUN)} {lacking} of {lacking + len(rows)} options have no pair of runs yet."
    return f"{shown}\n\n{told}" if lacking else shown


MAKERS = {"recipes": recipes, "differences": differences, "pairs": pairs}
