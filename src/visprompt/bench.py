"""`make bench`: how much faster the fast forms are than the plain ones, as ratios measured side by side."""

import statistics
import time

import pandas as pd

from .backbones import load_backbone
from .methods import build_method
from .progress import progress

from .tasks import load_task
from .tuning import Recipe, fit


def table(repeats: int = 5) -> pd.DataFrame:
    """Median ratio of fast to plain with its range, each pair run in turns: plain, fast, plain, fast, …"""
    backbone, task = load_backbone("vit_micro_patch4_24", "pretrained"), load_task("position")
    recipe, depth = Recipe(epochs=8, batch_size=32), backbone.depth  # as long as the quick recipe
    pairs = [("linear probe, cached over not", "linear-probe", {})]
    pairs += [(f"AP at block {b} of {depth}, cached over not", "ap", {"block": b}) for b in (0, depth // 2, depth - 1)]
    rows = []
    for label, slug, settings in progress(pairs, "bench"):
        model = build_method(slug, backbone, task.classes, **settings)

        def once(cache, model=model):
            start = time.perf_counter()
            values = fit(model, task, recipe, seed=0, cache=cache)
            return time.perf_counter() - start, values

        ratios, gap = [], 0.0
        for _ in range(repeats):
            (plain, slow), (fast, quick) = once(False), once(True)
            ratios.append(fast / plain)
            gap = max(gap, *(abs(a - b) for a, b in zip(slow["loss"], quick["loss"], strict=True)))
        rows.append({"pair": label, **spread(ratios), "largest loss difference": f"{gap:.1e}"})
    return pd.DataFrame(rows + theory_rows(repeats))


def theory_rows(repeats: int) -> list[dict]:
    """Batched theory trials over one-by-one trials."""
    from .theory.ap_toy import bench_batched

    ratios = [1 / bench_batched() for _ in range(repeats)]
    return [{"pair": "AP toy model, batched over one by one", **spread(ratios), "largest loss difference": ""}]


def spread(ratios: list[float]) -> dict:
    """Median and range, as text."""
    return {"ratio": f"{statistics.median(ratios):.2f}", "range": f"{min(ratios):.2f} to {max(ratios):.2f}"}
