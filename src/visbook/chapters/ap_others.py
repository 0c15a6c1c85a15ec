"""AP on other networks and data: its gain over VP, and where every single block would have it."""

import numpy as np
import pandas as pd

from visprompt.models.backbones import load_backbone

from ..pages import plots
from .ap_blocks import at_every_block, block_costs, by_block
from .chapter import Chapter

# of Table 5
LARGE = {
    "CLIP's ViT-B/32": "vit_base_patch32_clip_quickgelu_224",
    "Swin-B": "swin_base_patch4_window7_224",
}


def show_costs(chapter: Chapter, artifact: str) -> None:
    """Prompt entries and training operations of AP at every block of the paper's two networks, on
    shapes alone."""
    lines, used = [], []
    for printed, name in LARGE.items():
        shapes = load_backbone(name, device="meta").shapes()
        ends = [
            (shapes.index(shape), len(shapes) - 1 - shapes[::-1].index(shape))
            for shape in dict.fromkeys(shapes)
        ]
        record, rows = block_costs(name, [block for pair in ends for block in pair])
        used.append(record)
        entries, share = rows.parameters.iloc[::2], 100 * rows.share
        for number, (first, last) in enumerate(ends):
            lines.append(
                {
                    "network": printed,
                    "blocks": f"{first} to {last}",
                    "what enters them": " × ".join(map(str, shapes[first])),
                    "prompt entries": f"{entries.iloc[number]:,.0f}",
                    "training FLOPs, % of VP's": f"{share[2 * number]:.0f} to "
                    f"{share[2 * number + 1]:.0f}",
                }
            )
    chapter.page.show(
        artifact,
        pd.DataFrame(lines),
        evidence="derived",
        records=used,
        how="Counted on shapes at 224 pixels; where the class token is pooled, the last block "
        "computes it alone.",
        caption="Cost of AP by block on the paper's architectures: entries of the prompt, and "
        "operations of a training step relative to VP's.",
    )


def judge_beside_vpt(chapter: Chapter, part: str, on) -> None:
    """Judge what Figure A2 says of AP and of VPT at single blocks: the same places, and AP
    above."""
    claim, slugs = "ap.figure-a2.ap-over-vpt", ("ap", "vpt-deep")
    rows = at_every_block(chapter, claim, part, on, slugs)
    if len(rows):
        pair = tuple(f"{plots.NAMES[slug]} at one block, mean over blocks" for slug in slugs)
        sides = rows.assign(variant=np.where(rows.variant.str.startswith("ap,"), *pair))
        chapter.judge(claim, sides, *pair, on=on, parts=[part], drawn=True)
        ap, vpt = (
            by_block(rows, slug).groupby(["seed", "task", "block"]).test.mean().unstack()
            for slug in slugs
        )
        claim, alike = (
            "ap.figure-a2.same-layer-preference",
            ap.corrwith(vpt, axis=1, method="spearman"),
        )
        if alike.isna().any():  # no ranks to compare
            chapter.page.not_judged(
                claim, "one of the two is equally accurate at every block in some run"
            )
        else:
            chapter.judge_values(claim, alike.unstack(), [*rows.record])
