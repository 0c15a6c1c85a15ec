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
# # AP, theory: Lemmas 2 and 3
#
# Why the second layer's bound is larger than the first's: the two lemmas that make up Theorem 1 of *Visual Prompting
# Reimagined* {cite}`ap`, with the direction, the norm and the attention that their proofs speak of. The model, its
# symbols, what had to be decided, and Theorem 1 itself are on [](ap_theory.ipynb); the runs are the same. $h$ is the
# layer that has the prompt, and the hinge's edge is where $y f = 1/P$. All evidence is `derived`.

# %% tags=["parameters"]
profile = "quick"
device = "cpu"  # the toy model stays on the processor
seeds = None  # list of trial seeds; give it or token_counts to judge a run of your own in place of the kept one
token_counts = None  # list of P, two at least
larger = False  # also run what is kept, about an hour on one core; else the kept run is shown where there is one

# %% tags=["hide-input", "remove-output"]
from IPython.display import Markdown, display

from visbook.chapters import ap_theory_conditions as conditions
from visbook.chapters import ap_theory_ends
from visbook.chapters import ap_theory_lemma_2 as lemma_2
from visbook.chapters import ap_theory_lemma_3 as lemma_3
from visbook.chapters import ap_theory_lemmas as lemmas
from visbook.chapters.ap_theory_runs import COUNTS, GAMMA_COUNTS, WHY_GAMMA, ToyRuns, local
from visbook.pages.plots import with_interval
from visbook.theory import ap_limits
from visprompt.records import recorded

toy = ToyRuns.opened("ap_theory_lemmas", globals())
p, page = toy.p, toy.page

# %% name="runs" tags=["hide-input", "remove-output"]
toy.make()

# %% [markdown]
# (ap.lemma-2)=
# ## Lemma 2: Iterations for second-layer AP
#
# **What the paper says.** For $h = 2$, $T = \eta^{-1} P^2 \log P \,/\, (1-\sigma)^{-1}$ iterations suffice
# (A25); the proof ends with $\eta^{-1} P^2 (1-\sigma)^{-1} \log P$, the factor on the other side. Section 5
# adds that the trained prompt has norm $\Theta(P^2 \log P)$. Its direction is
# $k(\lambda e_1 + \lambda e_2 - \mu e_3 - \mu e_4)$ (A40), from gradients of order $1/(4P)$ (A38, A39) in two
# stages: up to $t_0 = 4P/\eta$ all four parts grow, then $e_1$ and $e_2$ go on at the same order (A50) until the
# attention is concentrated (A59).
#
# **What was run.** The trials of Theorem 1; the batch size is fixed, so iterations have the slope of the samples,
# which {ref}`Theorem 1 <ap.theorem-1>` judges. The first gradient is computed exactly. The factor $1-\sigma$ is
# within 1.25 % of 1 here ($\sigma = 0.1/P$, $P \ge 8$): what noise costs beyond that is a constant, shown at Theorem
# 1 and judged nowhere.

# %% name="ap.lemma-2" tags=["hide-input"]
conditions.show(page, "ap.lemma-2", conditions.lemma_2(toy))
gradients = recorded("ap-gradient", {"seed": 0}, lemmas.gradient_cells)
lemmas.gradient(toy, gradients, "ap.lemma-2", 2, [["+", "-", "+", "-"], ["+", "-", "+", "-"]])
lemmas.lemma(toy, "ap.lemma-2", 2)
page.judge(
    "ap.lemma-2.statement-matches-proof",
    1 - (-1),
    evidence="derived",
    note="(1 - sigma)^-1 below the bar of A25 is an exponent of +1; the proof's last line has -1.",
)
limit, ends = toy.flows[2, "error", -0.5], ap_theory_ends.end_record()
cells = limit.values["cells"], ends.values["descent"]["2"]
speeds, others = (ap_limits.slope(dict(lemma_2.second_stage(each))) for each in cells)
note = f"To the end point, beta = {ap_theory_ends.BETA:g}. Local slopes {local(others)}; with beta = 1, where there is no end "
note += f"point, over the middle half of the time {local(speeds)}."
toy.judge("ap.lemma-2.second-stage", others, [ends, limit], note)

# %% [markdown]
# ### Norm and attention at the end point
#
# The norm that Section 5 calls necessary, and the attention of A59, belong to $y f \ge 1/P$ (A57). With $\beta = 1$
# no second-layer prompt shared by all tokens gets there; with $\beta = 1.5$ it does. The least norm is searched among
# prompts $k (e_1 + e_2) - m (e_3 + e_4)$, without noise; descent on the population loss ends close to it.

# %% name="ends" tags=["hide-input"]
page.show(
    "ap.lemma-2",
    ap_theory_ends.end_figure(ends),
    evidence="derived",
    records=[ends],
    how="Exact, in float64: a search for the least norm, and gradient descent on the population loss.",
    caption=f"Where y f >= 1/P on all four pairs, beta = {ap_theory_ends.BETA:g}, with log-log slopes over all P drawn.",
    alt="Layer 2: the summed norm approaches P squared log P, and P times the weight grows almost like P. Layer 1: the "
    "norm grows like P, and P times the weight stays near three.",
)
ap_theory_ends.judge_ends(toy, ends, 2)

# %% [markdown]
# ### Tokens part
#
# Prompts of different tokens are free to differ. Linearised about one that they share, with $e_3$ and $e_4$ at the
# hinge's edge, the population gradient makes a difference along $e_1 - e_2$ grow like $e^{r \eta t}$ with
#
# $$r = \frac{\beta^2 s}{2P},\qquad s = \frac1P\big(\lambda_1 + (P-1)\lambda_2\big) = \Theta(1/P),$$
#
# $s$ being the mean share of the discriminative pattern in a token after layer 1 (A18, A19). This is derived here, not
# in the paper.

# %% name="split" tags=["hide-input"]
split = recorded("ap-split", {"token_counts": COUNTS[2][:-1]}, lemma_2.split_cells)
page.show(
    "ap.lemma-2",
    lemma_2.split_figure(toy, split),
    evidence="derived",
    records=[split, *toy.behind[2]],
    how="Left and right: SGD trials. Middle: descent on the exact population loss with two groups of tokens.",
    caption="How tokens' prompts part. Left: own share of the median trial. Middle: the rate. Right: how many times a "
    "difference grows by e before the error is zero.",
    alt="Own shares rise with one slope to about one half, from a start that is lower at larger P; the rate times P "
    "squared falls slowly from "
    "0.33 to 0.2; the number of e-foldings rises slowly.",
)
if not toy.too_small:
    display(lemma_2.lemma_2_reading(toy, speeds, split))

# %% [markdown]
# **What the lemma does not say.** It bounds the *expected* prompt (A40, A50), which is the same for all
# tokens; what one
# trained prompt a token does beyond that is the scatter of A41, taken as small. Its noise factor $1-\sigma$ is
# next to 1,
# so it has no word for the slowing that noise within $\sigma \le 1/P$ brings.

# %% [markdown]
# (ap.lemma-3)=
# ## Lemma 3: Iterations for first-layer AP
#
# **What the paper says.** For $h = 1$, $T = \eta^{-1} P \,/\, ((1 - P\sigma)^{-1}(1+\gamma))$ iterations
# suffice (A28), against $\eta^{-1} P (1-P\sigma)^{-1} (1+\gamma)^{-1}$ at the end of the proof. The trained
# prompt has norm $\Theta(P)$ (Section 5) and direction $k(\lambda v_1 + \lambda v_2 - \mu v_3 - \mu v_4)$
# (A82), from the gradients A80 and A81, until $k\mu \ge \Theta(1)/(1+\gamma)$ (A85).
#
# **What was run.** The trials of Theorem 1 with the prompt on the first layer's input, and $\gamma$ from
# -0.9 to -0.1 at several $P$.

# %% name="ap.lemma-3" tags=["hide-input"]
conditions.show(page, "ap.lemma-3", conditions.lemma_3(toy))
lemmas.gradient(toy, gradients, "ap.lemma-3", 1, [["+", "-", "+", "-"], ["+", "-", "+", "-"]])
lemmas.lemma(toy, "ap.lemma-3", 1)
page.not_judged(
    "ap.lemma-3.statement-matches-proof", f"{lemma_3.MISPRINT}: A28 has (1 - P sigma)^-1"
)
if toy.have("ap.lemma-3", "The exponent of the noise", "noise"):
    lemma_3.judge_noise(toy)
lemma_3.judge_background(toy)
ap_theory_ends.judge_ends(toy, ends, 1)

# %% [markdown]
# ### The attention strength
#
# The paper leaves $\beta$ at $\Theta(1)$. The sign of $v_4$ in A80 depends on it, and so does the time.

# %% name="beta" tags=["hide-input"]
strengths = {h: ap_theory_ends.beta_run(h) for h in (1, 2)}
page.show(
    "ap.lemma-3",
    ap_theory_ends.beta_figure(strengths, ends),
    evidence="derived",
    records=[ends, *strengths.values()],
    how="Left: autograd in float64 at delta = 0, P = 512. Right: medians over six SGD trials.",
    caption="Against beta. Left: the part of A80 whose sign turns. Right: steps to the first zero error.",
    alt="The v4 part is negative below the square root of one half and positive above. Steps to zero error fall as "
    "beta grows, most at layer 2.",
)
ap_theory_ends.judge_sign(toy, ends)

# %% [markdown]
# ### How the time depends on gamma

# %% name="gamma" tags=["hide-input"]
if toy.have("ap.lemma-3", "Steps against gamma", "gamma", *WHY_GAMMA):
    curves = [("gamma", 1), ("gamma", 2), *((name, 1) for name in WHY_GAMMA)]
    page.show(
        "ap.lemma-3",
        lemma_3.gamma_figure(toy),
        evidence="derived",
        records=[
            *(toy.runs[c] for c in curves),
            *(toy.flows[1, "error", g] for g in (-0.9, -0.5, -0.1)),
        ],
        how="Medians over eight SGD trials (points) and the symmetric limit (black).",
        caption="Steps against 1 + gamma, with log-log slopes, and the constant that is left at layer 1.",
        alt="Layer 1 needs fewer steps as 1 + gamma grows, with slope about -1; layer 2 does not depend on it. The "
        "constant tends to 32 from below, from further below for gamma near -1.",
    )

# %% name="lemma-3-reading" tags=["hide-input"]
if toy.absent.isdisjoint(["gamma", "noise", *WHY_GAMMA]):
    end, most = toy.flows[1, "error", -0.5].values["cells"][-1], GAMMA_COUNTS[1][-1]
    power = {name: with_interval(fit) for (name, layer), fit in toy.powers.items() if layer == 1}
    bend, bent = lemma_3.bend(toy)
    own, lost, careful = lemma_3.own_shares(toy), *lemma_3.lost_near_minus_1(toy)
    text = f"""
**What to take from it.** Direction and order of the norm are as the proof has them. The background parts decide: in the
symmetric limit at P = {end["tokens"]} they stop at {end["direction"][2]:.2f}, just short of -1/(1 + gamma) = -2, where
v3 and v4 no longer activate their neurons, while v1 and v2 are still at {end["direction"][0]:.2f}. So zero error at
layer 1 comes from *removing the background*, as the paper's proof idea says. Attention then prefers the discriminative
token by a constant factor (A90 to A95), which leaves its weight of order 1/P.

- *1 + gamma.* A prompt -k (v3 + v4) lowers what the background's neuron sees by k (1 + gamma) only, so the walk is
  1/(1 + gamma) long at a speed of order eta/P. From gamma = -0.5 up the exponent is {power["1 + gamma from 0.5 on"]} at
  P = {most}; over all gamma it is {power["1 + gamma"]}, with a median trial that depends on luck. Three things bend it
  near gamma = -1. *Constants:* in the symmetric limit (1 + gamma) eta T / P at this P is {bend[-0.9]:.0f} for
  gamma = -0.9 and {bend[-0.1]:.0f} for -0.1 (exponent {bent:.2f}); it tends to 32 for both, but later near -1. With one
  shared prompt SGD follows that (P = 32: {power["1 + gamma, one prompt shared, P = 32"]}). *Tokens part* here too: the
  own share at zero error is {own[-0.9]:.2f} at gamma = -0.9 and {own[-0.1]:.1g} at -0.1. *Step size:* with a quarter of
  it the exponent is {power["1 + gamma, a quarter of the step, P = 32"]}, flatter than the limit, against
  {power["1 + gamma, P = 32"]} at the same P with the judged one, at which some trials overshoot: {lost} at gamma = -0.9
  reach the cap, and {careful} with a quarter of the step.
- *1 - P sigma* stands on opposite sides in A28 and in the proof's last line: noise cannot both help and hinder. It does
  neither: the exponent is {power["1 - P sigma"]}. So the proof's line bounds the need, and the statement's, which falls
  to nothing at P sigma = 1, does not.
- *The first gradient* at the discriminative token is e^{{-beta^2}} (v1 + (2 beta^2 - 1) v4) / (4P) for large P: A80's
  sign of v4 is right for beta^2 < 1/2; above, the part through the scores outweighs that through the values. It does
  not matter for the bound, since a token is discriminative in one sample of P only, and the others' gradient is as A81
  has it.
"""
    display(Markdown(text))

# %% [markdown]
# **What the lemma does not say.** Where the time goes: near its end the prompt slides along the hinge's edge, which the
# proof does not see. How the norm needed depends on $\gamma$: a walk of $1/(1+\gamma)$ along $-(v_3+v_4)$ has norm
# $\sqrt{2/(1+\gamma)}$ a token, so nearly opposite backgrounds make the first layer slow too. And nothing of
# $\sigma$ beyond $1/P$, where it fails.

# %% [markdown]
# ## Try it
#
# Change `layer`, `tokens` ($P$), `gamma`, `noise` ($P \sigma$) or `step`. {ref}`What this call does <try-it>`.

# %% name="try-it"
from visbook.chapters.try_theory import try_toy

try_toy(toy, layer=1, tokens=16, gamma=-0.9)

# %% tags=["remove-output", "remove-input"]
page.close()
