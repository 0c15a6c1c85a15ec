"""What the page on AP's Proposition 1 draws."""

import matplotlib.pyplot as plt
from matplotlib.figure import Figure

from ..theory import normalisation


def proposition_cells():
    """Differences between the two outputs, case by case, and of a padded convolution."""
    whole, inside = normalisation.padded_convolution_gaps()
    return {"gaps": normalisation.proposition_1(), "padded": whole, "padded_inside": inside}


def gaps_figure(rows: dict[str, float]) -> Figure:
    """The largest difference of the two outputs, case by case."""
    fig, axis = plt.subplots(figsize=(7, 3.4))
    names = list(rows)[::-1]
    holds = [
        "hold" in name and "epsilon" not in name and "zero-padded" not in name for name in names
    ]
    written = {"epsilon 1e-5": "ε = 10⁻⁵", "sigma": "σ", "3x3": "3 × 3"}
    shown = names
    for plain, sign in written.items():
        shown = [name.replace(plain, sign) for name in shown]
    axis.barh(
        shown,
        [rows[name] for name in names],
        left=1e-17,
        color=["#009e73" if h else "#d55e00" for h in holds],
    )
    axis.axvline(2.2e-16, color="0.4", lw=1, ls=":")
    axis.text(2.6e-16, len(names) - 0.35, "rounding", fontsize=8, color="0.3")
    axis.set(xscale="log", xlim=(1e-17, 100), xlabel="largest absolute difference of the outputs")
    axis.set_title("Equal to rounding where the conditions hold")
    axis.tick_params(axis="y", labelsize=8.5)
    return fig
