# ---
# jupyter:
#   jupytext:
#     text_representation:
#       extension: .py
#       format_name: percent
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # AP, theory: activation prompts and normalisation tuning
#
# The paper *Visual Prompting Reimagined* {cite}`ap` says when an activation prompt does what NORM-TUNE does. This page
# computes both sides; all evidence is `derived`.

# %% tags=["parameters"]
profile = "quick"
device = "cpu"  # exact checks in float64 stay on the processor

# %% tags=["hide-input", "remove-output"]
import pandas as pd

from visbook.chapters import ap_theory_conditions as conditions
from visbook.chapters import ap_theory_normalisation as chapter
from visbook.chapters.ap_theory_runs import on_processor
from visbook.pages import plots
from visbook.pages.page import Page
from visbook.pages.parameters import Parameters, read_parameters
from visprompt.records import recorded

p = on_processor(read_parameters(Parameters, globals()))
page = Page("ap_theory_normalisation", p)
plots.style()

# %% [markdown]
# (ap.proposition-1)=
# ## Proposition 1: When AP equals normalisation tuning
#
# **What the paper says.** AP on a layer gives the same output as tuning that layer's normalisation if, for CNNs,
# $\gamma_d/\sigma_d = 1$ and all positions share one perturbation, with $\beta_d = w_d \delta + \mu_d$; and for ViTs,
# if $\gamma_d/\sigma_{b,p} = 1$ and the token means $\mu_p$ are shared by all samples, with $\beta_d = \delta_{p,d} +
# \mu_p$. Here $\gamma_d$ and $\beta_d$ are the norm's scale and shift of channel $d$, $\mu$ and $\sigma$ the mean and
# deviation that it takes out, $w_d$ the weights that give channel $d$, $b$ a sample and $p$ a position; $\gamma$,
# $\beta$ and $\sigma$ mean other things on [](ap_theory.ipynb).
#
# **What was run.** Both sides in float64 on random features that meet the conditions, then with one condition
# dropped at a time. In a dropped case the freer side is fitted to the other by least squares, so a gap means
# that nothing closes it.

# %% name="ap.proposition-1" tags=["hide-input"]
proposition = recorded("ap-proposition-1", {"seed": 0}, chapter.proposition_cells)
gaps = proposition.values["gaps"]
conditions.show(page, "ap.proposition-1", conditions.proposition_1(proposition))
rows = {
    **gaps,
    "3x3 convolution, conditions hold, away from the border": proposition.values["padded_inside"],
    "3x3 convolution, conditions hold, at the zero-padded border": proposition.values["padded"],
}
shown = {
    "evidence": "derived",
    "records": [proposition],
    "how": "Both outputs computed in float64 on random features of unit size.",
}
caption = "AP against NORM-TUNE. Green: the proposition's conditions hold."
alt = "With the conditions the outputs differ by rounding, about 1e-15; with one dropped by one or more."
page.show("ap.proposition-1", chapter.gaps_figure(rows), **shown, caption=caption, alt=alt)
table = pd.DataFrame(
    {"largest absolute difference": {case: f"{v:.1e}" for case, v in rows.items()}}
)
caption = "Outputs of AP and of NORM-TUNE, inside and outside the proposition's conditions."
page.show("ap.proposition-1", table, **shown, caption=caption)

# %% tags=["hide-input"]
dropped = [value for name, value in gaps.items() if "differ" in name]
for claim, value in (
    ("batchnorm", gaps["BatchNorm, conditions hold"]),
    ("layernorm", gaps["LayerNorm, conditions hold"]),
    ("outside-conditions", min(dropped)),
):
    page.judge(f"ap.proposition-1.{claim}", value, evidence="derived", records=[proposition])

# %% [markdown]
# **What to take from it.** The proposition is an identity and holds to machine precision. Its conditions say
# what normalisation tuning cannot do: $\beta$ has one number a channel, so for ViTs only prompts of the form
# $\delta_{p,d} = \beta_d - \mu_p$ are covered, out of one number per token and channel; and
# $\gamma_d = \sigma_{b,p}$ for all tokens at once asks that all tokens have one scale. Two things outside the
# statement: the epsilon of a real layer breaks the identity at its own size, and a zero-padded 3x3
# convolution breaks it at the border (the paper's A5 is a 1x1 convolution).

# %% [markdown]
# **What the proposition does not say.** It is "if", not "only if", and about one layer's output, not about
# training: two
# methods that can express the same function need not find it with the same step size. It does not say that AP covers
# NORM-TUNE either: $\gamma_d$ away from $\sigma_d$ is out of AP's reach.

# %% tags=["remove-output", "remove-input"]
page.close()
