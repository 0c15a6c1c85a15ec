"""What every method costs at any number of prompts and classes: counted at three numbers, in
between exact."""

import html
import json

from visprompt.measure.cost import count_flops, training_memory
from visprompt.methods import METHODS, build_method, settings_of
from visprompt.methods.parameters import count_parameters
from visprompt.models.backbones import load_backbone
from visprompt.progress import progress
from visprompt.records import Record, recorded

from ..pages.page import Page
from ..pages.plots import NAMES

BACKBONES = {"vit_base_patch16_224": "ViT-B/16", "vit_large_patch16_224": "ViT-L/16"}
# parameters, operations and memory are at most quadratic in the number of prompts
TOKENS = (10, 20, 50)
CLASSES, BATCH = 100, 64
# shown where scripts do not run: backbone, prompts, classes
USUAL = ("vit_base_patch16_224", 10, 100)


def takes_prompts(slug: str) -> bool:
    """Whether a method's number of prompt tokens can be chosen."""
    return hasattr(settings_of(slug), "prompt_tokens")


def counts(slug: str, backbone: str, run: bool = True) -> Record | None:
    """Record of a method's counts, one entry a number of prompts of TOKENS, or one where it has
    none.

    Values: "method" (trained parameters without the head), "flops" (an image, inference) and
    "memory" (bytes that a training step of BATCH images must hold, see `training_memory`), all with
    a head of CLASSES classes; "width" of its input.
    """
    asked = [{"prompt_tokens": count} for count in TOKENS] if takes_prompts(slug) else [{}]

    def compute():
        shapes = load_backbone(backbone, device="meta")
        models = [build_method(slug, shapes, CLASSES, **settings) for settings in asked]
        return {
            "width": shapes.width,
            "method": [count_parameters(model)["method"] for model in models],
            "flops": [count_flops(model)["flops"] for model in models],
            "memory": [training_memory(model, BATCH)["total"] for model in models],
        }

    chosen = {
        "what": "a method at several numbers of prompts",
        "backbone": backbone,
        "method": slug,
        "asked": asked,
    }
    return recorded("count", chosen | {"classes": CLASSES, "batch_size": BATCH}, compute, run=run)


def all_counts() -> dict[str, dict[str, Record]]:
    """Backbone -> method -> record; the larger backbone only where all its records are kept."""
    found = {}
    for backbone in BACKBONES:
        run = backbone == USUAL[0]
        rows = {
            slug: counts(slug, backbone, run)
            for slug in progress(METHODS, f"counting on {BACKBONES[backbone]}")
        }
        if all(rows.values()):
            found[backbone] = rows
    return found


def at(values: list[int], tokens: int) -> int:
    """The parabola through the counts at TOKENS, at another number; one count is the same
    everywhere."""
    if len(values) == 1:
        return values[0]
    total = 0.0
    for here, value in zip(TOKENS, values, strict=True):
        part = float(value)
        for other in TOKENS:
            part *= (tokens - other) / (here - other) if other != here else 1
        total += part
    return round(total)


def cost_at(record: Record, tokens: int, classes: int) -> dict[str, int]:
    """Trained parameters of the method, with its head, and operations of an image, two for a
    multiply-add."""
    found, head = record.values, record.values["width"] + 1
    return {
        "method": at(found["method"], tokens),
        "total": at(found["method"], tokens) + classes * head,
        "flops": at(found["flops"], tokens) + 2 * found["width"] * (classes - CLASSES),
        "memory": at(found["memory"], tokens),
    }


def explorer(found: dict[str, dict[str, Record]]) -> str:
    """Where a reader chooses, as HTML: a table of all methods, and what the script beside it needs
    to count anew."""
    backbone, tokens, classes = USUAL
    rows = []
    for slug, record in found[backbone].items():
        cost = cost_at(record, tokens, classes)
        cells = [
            f"{cost['method']:,}",
            f"{cost['total']:,}",
            f"{cost['flops'] / 1e9:.2f}",
            f"{cost['memory'] / 2**30:.2f}",
        ]
        name = f'<th scope="row" data-slug="{slug}">{html.escape(NAMES[slug])}</th>'
        rows.append(f"<tr>{name}{''.join(f'<td>{cell}</td>' for cell in cells)}</tr>")
    given = {
        "backbones": BACKBONES,
        "tokens": TOKENS,
        "classes": CLASSES,
        "usual": USUAL,
        "counts": {
            name: {slug: record.values for slug, record in rows.items()}
            for name, rows in found.items()
        },
    }
    heads = "".join(
        f'<th scope="col">{head}</th>'
        for head in (
            "Method",
            "Trained by it",
            "With the head",
            "GFLOPs, one image alone",
            f"GiB, a step of {BATCH}",
        )
    )
    said = f"{BACKBONES[backbone]}, {tokens} prompts where a method has them, {classes} classes"
    return (
        f'<div class="vp-explorer"><script type="application/json">{json.dumps(given)}</script>'
        f'<div class="vp-table" '
        f'tabindex="0"><table><caption>{said}</caption><thead><tr>{heads}</tr></thead>'
        f"<tbody>{''.join(rows)}</tbody></table></div></div>"
    )


def show(page: Page, found: dict[str, dict[str, Record]]) -> None:
    """Display the explorer with its evidence."""
    page.present(
        explorer(found),
        evidence="derived",
        how=f"Counted on shapes at {', '.join(map(str, TOKENS))} prompts and {CLASSES} "
        f"classes, in between exact.",
        records=[record for rows in found.values() for record in rows.values()],
        caption="What every method costs.",
        cell="explorer",
    )
