"""What the pages on the methods check in numbers, a record each: two forms of prompts, biases,
re-weighting, a theorem."""

import matplotlib.pyplot as plt
import pandas as pd
import torch
from matplotlib.figure import Figure

from visprompt.data.tasks import load_task
from visprompt.methods import build_method
from visprompt.models.backbones import load_backbone
from visprompt.records import Record, recorded
from visprompt.training.recipe import load_recipe

from ..theory.attention_shift import (
    attention_change,
    draw,
    exponent,
    reweighting,
    rises,
    rises_where_positive,
)
from . import figure_claims
from .methods import CLASSES, cost, over_bare

SMALL, TINY = "vit_small_patch16_224", "vit_micro_patch4_24"


def forms_costs(counts: tuple[int, ...]) -> tuple[list[dict], list[Record]]:
    """VPT-Deep's cost in both forms by the number of prompts, as rows, and their records."""
    rows, used = [], []
    for tokens in counts:
        plain = cost("vpt-deep", trims=False, prompt_tokens=tokens, form="concatenate")
        fast = cost("vpt-deep", prompt_tokens=tokens)
        used += [plain, fast]
        rows.append(
            {
                "prompts per block": tokens,
                "concatenated": over_bare(plain),
                "keys and values only": over_bare(fast),
                "their ratio": f"{fast.values['macs'] / plain.values['macs']:.3f}",
            }
        )
    return rows, used


def two_forms() -> Record:
    """Record of how far VPT-Deep's two forms differ."""
    return recorded(
        "check", {"what": "two forms of VPT-Deep", "backbone": SMALL, "seed": 0}, two_forms_differ
    )


def two_forms_differ() -> dict:
    """Largest difference of two logits between both forms, on random weights, in float64."""
    frozen = load_backbone(SMALL).double()
    images = torch.randn(
        2, 3, 224, 224, dtype=torch.float64, generator=torch.Generator().manual_seed(0)
    )
    with torch.no_grad():
        plain, fast = (
            build_method("vpt-deep", frozen, CLASSES, form=form).double()(images)
            for form in ("concatenate", "keys and values")
        )
    return {"difference": (plain - fast).abs().max().item(), "largest": plain.abs().max().item()}


def biases() -> Record:
    """Record of what random biases of queries, keys and values do, in BIAS and in DA-VPT+."""
    return recorded("check", {"what": "biases by kind", "backbone": SMALL, "seed": 0}, bias_changes)


def bias_changes() -> dict:
    """A row for each method and kind of bias."""
    found = [
        (slug, category)
        for slug in ("bias", "da-vpt-plus")
        for category in ("query", "key", "value")
    ]
    return {
        "rows": [
            {"method": slug, "bias of": category, **shifted(slug, category)}
            for slug, category in found
        ]
    }


def shifted(slug: str, category: str) -> dict:
    """Change of the logits when one kind of bias gets random values, and the gradient that it
    receives."""
    frozen = load_backbone(SMALL).double()
    settings = {"bias": {"categories": (category,)}, "da-vpt-plus": {"biases": (category,)}}[slug]
    model = build_method(slug, frozen, CLASSES, **settings).double()
    generator = torch.Generator().manual_seed(0)
    images = torch.randn(2, 3, 224, 224, dtype=torch.float64, generator=generator)
    before = model(images)
    shifts = list(model.method.shifts.parameters())
    gradients = torch.autograd.grad(
        torch.nn.functional.cross_entropy(before, torch.tensor([0, 1])), shifts
    )
    with torch.no_grad():
        for shift in shifts:
            shift.copy_(torch.randn(shift.shape, generator=generator))
        change = (model(images) - before).abs().max().item()
    return {
        "change": change,
        "gradient": max(gradient.abs().max().item() for gradient in gradients),
    }


def bias_rows(record: Record) -> list[dict]:
    """The rows of `bias_changes`, for reading."""
    return [
        {
            "method": row["method"],
            "bias of": row["bias of"],
            "largest change of a logit": f"{row['change']:.1e}",
            "largest entry of its gradient": f"{row['gradient']:.1e}",
        }
        for row in record.values["rows"]
    ]


def both_sides(aggregated: bool, norm: bool) -> dict:
    """Attention over joined prompts and VPT's attention times the factors, for 20 random cases of
    10 prompts."""
    pairs = [reweighting(draw(seed, aggregated=aggregated), norm) for seed in range(20)]
    direct, scaled = (torch.cat(side) for side in zip(*pairs, strict=True))
    return {
        "direct": direct.tolist(),
        "scaled": scaled.tolist(),
        "gap": (direct - scaled).abs().max().item(),
    }


def all_sides() -> dict:
    """`both_sides` with and without DA's weights, with and without LayerNorm."""
    return {
        f"{aggregated} {norm}": both_sides(aggregated, norm)
        for aggregated in (False, True)
        for norm in (False, True)
    }


def reweighted() -> Record:
    """Record of both sides of iVPT's Eq. 10 and 13."""
    chosen = {
        "what": "re-weighting of attention",
        "seeds": 20,
        "prompts": 10,
        "width": 768,
        "head": 64,
    }
    return recorded("check", chosen, all_sides)


def draw_sides(record: Record) -> Figure:
    """Both sides against each other, without LayerNorm and with it."""
    fig, axes = plt.subplots(1, 2, figsize=(7, 3.5), sharex=True, sharey=True)
    for ax, norm in zip(axes, (False, True), strict=True):
        for label, aggregated, color in (
            ("CDC (Eq. 10)", False, "#0072b2"),
            ("CDC and DA (Eq. 13)", True, "#d55e00"),
        ):
            case = record.values[f"{aggregated} {norm}"]
            ax.loglog(case["scaled"], case["direct"], ".", ms=5, color=color, label=label)
        ax.plot([1e-5, 1], [1e-5, 1], color="black", lw=0.8, zorder=0)
        ax.set(
            xlabel="VPT's attention × factors",
            title=f"With LayerNorm, {largest_gap(record, norm):.2f} apart"
            if norm
            else "Equal without LayerNorm",
        )
        ax.set(xlim=(1e-4, 1.3), ylim=(1e-4, 1.3), aspect="equal")
    axes[0].set_ylabel("attention over joined prompts")
    axes[0].legend(loc="upper left")
    return fig


def largest_gap(record: Record, norm: bool) -> float:
    """Largest difference of the two sides, with LayerNorm or without."""
    return max(record.values[f"{aggregated} {norm}"]["gap"] for aggregated in (False, True))


STEPS = torch.logspace(-5, -2, 7, dtype=torch.float64)
SEEDS = range(10)
LOOKS = {
    "the prompt moves": ("theorem's formula, the prompt moves", "#d55e00", "o-"),
    "one score moves": ("theorem's formula, one score moves", "#0072b2", "s-"),
    "all scores, whole derivative": ("whole derivative, the prompt moves", "#009e73", "^--"),
}


def errors_by_step() -> dict:
    """Mean error by reading and seed, and how often the weight rises."""
    found = [attention_change(STEPS, seed) for seed in SEEDS]
    return {
        "steps": STEPS.tolist(),
        "errors": {name: [case[name].tolist() for case in found] for name in found[0]},
        "rises": [100 * rises(seed, 1e-4) for seed in SEEDS],
    }


def first_order() -> Record:
    """Record of the errors of DA-VPT's Theorem 1."""
    chosen = {"what": "Theorem 1 of DA-VPT", "seeds": len(SEEDS), "tokens": 196, "head": 64}
    return recorded("check", chosen, errors_by_step)


def signs() -> dict:
    """How often the weight rises under the condition dp v > 0, by draw: patches around 0, and with
    a common mean as long as their own part."""
    return {
        name: [100 * rises_where_positive(seed, 1e-4, shared) for seed in SEEDS]
        for name, shared in (("around 0", 0.0), ("common mean", 1.0))
    }


def sign() -> Record:
    """Record of the sign that DA-VPT reads off its Theorem 1."""
    chosen = {"what": "Sign after Theorem 1 of DA-VPT", "seeds": len(SEEDS), "tokens": 196}
    return recorded("check", {**chosen, "head": 64}, signs)


def cases(record: Record, name: str) -> torch.Tensor:
    """Errors (draws, steps) of one reading of the theorem."""
    return torch.tensor(record.values["errors"][name], dtype=torch.float64)


def powers(record: Record, name: str) -> list[float]:
    """The power of the step that the error of one reading follows, by draw."""
    return [exponent(STEPS, case) for case in cases(record, name)]


def first_order_conditions() -> pd.DataFrame:
    """What Theorem 1 of DA-VPT and its proof take for granted, and whether the cases tried have
    it."""
    steps = f"steps of {STEPS[0]:.0e} to {STEPS[-1]:.0e}"
    rows = [
        ("a small change", "stated, no bound", steps, "yes"),
        ("the weights are a softmax of p v / sqrt(d)", "stated", "196 patches, d = 64", "yes"),
        ("the score of that patch alone changes", "taken in the proof", "one score moves", "yes"),
        (
            "the score of that patch alone changes",
            "taken in the proof",
            "the prompt moves, and all scores with it",
            "no",
        ),
    ]
    return pd.DataFrame(rows, columns=["condition", "in the paper", "here", "met?"])


def draw_errors(record: Record) -> Figure:
    """Mean error against the step, a line a reading."""
    fig, ax = plt.subplots(figsize=(7, 3.6))
    for name, (label, color, line_style) in LOOKS.items():
        # two lines nearly coincide
        size = {"ms": 9, "mfc": "none"} if name == "one score moves" else {"ms": 4}
        ax.loglog(STEPS, cases(record, name).mean(0), line_style, color=color, label=label, **size)
    ax.set(xlabel="length of the step", ylabel="mean error of the weight's change")
    ax.legend()
    return fig


def spt_starts() -> Record:
    """Record of what SPT's Figures 1 and S2 assert, on the embedded ViT."""
    tiny = load_backbone(TINY, "pretrained")
    return recorded(
        "drawings",
        {"what": "starts of SPT-Deep", "backbone": tiny.name, "task": "position"},
        lambda: figure_claims.token_starts(tiny, load_task("position")),
        weights=tiny.fingerprint,
        made=[tiny],
    )


def davpt_clusters() -> Record:
    """Record of what DA-VPT's Figure 2 asserts, on the embedded ViT."""
    tiny, recipe = load_backbone(TINY, "pretrained"), load_recipe("quick", "da-vpt", True)
    return recorded(
        "drawings",
        {"what": "clusters of DA-VPT", "backbone": tiny.name, "task": "flowers"},
        lambda: figure_claims.clusters(tiny, load_task("flowers"), recipe),
        weights=tiny.fingerprint,
        made=[tiny],
    )
