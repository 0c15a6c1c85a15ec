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
# *Visual Prompting Reimagined* {cite}`ap` says when an activation prompt does the same as NORM-TUNE. We compute both
# sides; all evidence is `derived`.

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
# **What the paper says.** AP on a layer gives the same output as tuning that layer's normalisation under these conditions:
#
# - for CNNs, $\gamma_d/\sigma_d = 1$ and all positions share one perturbation; then $\beta_d = w_d \delta + \mu_d$;
# - for ViTs, $\gamma_d/\sigma_{b,p} = 1$ and all samples share the token means $\mu_p$; then $\beta_d = \delta_{p,d} +
#   \mu_p$.
#
# Here $\gamma_d$ and $\beta_d$ are the normalisation's scale and shift of channel $d$, $\mu$ and $\sigma$ the mean and
# standard deviation that it removes, $w_d$ the weights that produce channel $d$, $b$ a sample and $p$ a position. ($\gamma$,
# $\beta$ and $\sigma$ mean other things on [](ap_theory.ipynb).)
#
# **What we ran.** Both sides in float64 on random features, first with all conditions met, then with one condition dropped
# at a time. If a condition is dropped, we fit the more flexible side to the other by least squares, so a gap means that
# nothing closes it.

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
caption = (
    "How far the outputs of AP and NORM-TUNE differ. Green: the proposition's conditions hold."
)
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
# **What to take from it.** The proposition is an identity and holds to machine precision. Its conditions show what
# normalisation tuning cannot do. $\beta$ has one number per channel, so for ViTs it covers only prompts of the form
# $\delta_{p,d} = \beta_d - \mu_p$, while AP has one number per token and channel. And $\gamma_d = \sigma_{b,p}$ asks that
# all tokens have one scale. Two details of real layers break the identity: the ε in the denominator, by about its
# own size, and a zero-padded 3 × 3 convolution, at the border (the paper's A5 is a 1 × 1 convolution).

# %% [markdown]
# **What the proposition leaves open.** It says "if", not "only if". It is about one layer's output, not about training:
# two methods that can express the same function need not find it with the same step size. Nor does it say that AP covers
# NORM-TUNE: AP cannot express $\gamma_d$ different from $\sigma_d$.

# %% tags=["remove-output", "remove-input"]
page.close()
