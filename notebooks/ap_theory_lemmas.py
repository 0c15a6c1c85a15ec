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
# Why is the second layer's bound larger than the first's? Two lemmas make up Theorem 1 of *Visual Prompting Reimagined*
# {cite}`ap`. We check them, and what their proofs say about the prompt's direction, its norm and the attention. The
# model, its symbols, our choices and Theorem 1 itself are on [](ap_theory.ipynb); the runs are the same. $h$ is the layer
# with the prompt, and the hinge's edge is where $y f = 1/P$. All evidence is `derived`.

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
# **What the paper says.** For $h = 2$, $T = \eta^{-1} P^2 \log P \,/\, (1-\sigma)^{-1}$ iterations suffice (A25). The
# proof ends with $\eta^{-1} P^2 (1-\sigma)^{-1} \log P$, where the factor is on the other side. Section 5 adds that the
# trained prompt has norm $\Theta(P^2 \log P)$. Its direction is $k(\lambda e_1 + \lambda e_2 - \mu e_3 - \mu e_4)$ (A40).
# It grows by gradients of order $1/(4P)$ (A38, A39) in two stages. Up to $t_0 = 4P/\eta$ all four components grow. Then
# $e_1$ and $e_2$ go on at the same order (A50) until the attention is concentrated (A59).
#
# **What we ran.** The trials of {ref}`Theorem 1 <ap.theorem-1>`. The batch size is fixed, so iterations have the same
# slope as the samples, which we judge there. The first gradient is computed exactly. Here $1-\sigma$ is within 1.25 % of 1
# ($\sigma = 0.1/P$, $P \ge 8$). What noise costs beyond that is a constant, which we show at Theorem 1 but do not judge.

# %% name="ap.lemma-2" tags=["hide-input"]
conditions.show(page, "ap.lemma-2", conditions.lemma_2(toy))
gradients = recorded("ap-gradient", {"seed": 0}, lemmas.gradient_cells)
lemmas.gradient(toy, gradients, "ap.lemma-2", 2, [["+", "-", "+", "-"], ["+", "-", "+", "-"]])
lemmas.lemma(toy, "ap.lemma-2", 2)
page.judge(
    "ap.lemma-2.statement-matches-proof",
    1 - (-1),
    evidence="derived",
    note="$(1-\\sigma)^{-1}$ below the bar of A25 is an exponent of 1; the proof's last line has −1.",
)
limit, ends = toy.flows[2, "error", -0.5], ap_theory_ends.end_record()
cells = limit.values["cells"], ends.values["descent"]["2"]
speeds, others = (ap_limits.slope(dict(lemma_2.second_stage(each))) for each in cells)
note = f"To the end point, β = {ap_theory_ends.BETA:g}. Local slopes {local(others)}. With β = 1, where there is no end "
note += f"point, they are {local(speeds)} over the middle half of the time."
toy.judge("ap.lemma-2.second-stage", others, [ends, limit], note)

# %% [markdown]
# ### Norm and attention at the end point
#
# The norm that Section 5 calls necessary, and the attention of A59, are those at $y f \ge 1/P$ (A57). With $\beta = 1$ no
# second-layer prompt shared by all tokens gets there; with $\beta = 1.5$ one does. We search the least norm among prompts
# $k (e_1 + e_2) - m (e_3 + e_4)$, without noise. Gradient descent on the population loss ends close to it.

# %% name="ends" tags=["hide-input"]
page.show(
    "ap.lemma-2",
    ap_theory_ends.end_figure(ends),
    evidence="derived",
    records=[ends],
    how="Exact, in float64: a search for the least norm, and gradient descent on the population loss.",
    caption=f"Where y f ≥ 1/P on all four pairs, β = {ap_theory_ends.BETA:g}. The legend has log-log slopes over all P shown.",
    alt="Layer 2: the summed norm approaches P squared log P, and P times the weight grows almost like P. Layer 1: the "
    "norm grows like P, and P times the weight stays near three.",
)
ap_theory_ends.judge_ends(toy, ends, 2)

# %% [markdown]
# ### Tokens part
#
# The prompts of different tokens are free to differ. Start from one prompt shared by all, with $e_3$ and $e_4$ at the
# hinge's edge, and linearise. A small difference along $e_1 - e_2$ then grows like $e^{r \eta t}$ with
#
# $$r = \frac{\beta^2 s}{2P},\qquad s = \frac1P\big(\lambda_1 + (P-1)\lambda_2\big) = \Theta(1/P),$$
#
# Here $s$ is the mean share of the discriminative pattern in a token after layer 1 (A18, A19). We derived this; it is not
# in the paper. An *e-folding* is the time in which the difference grows by a factor of $e$.

# %% name="split" tags=["hide-input"]
split = recorded("ap-split", {"token_counts": COUNTS[2][:-1]}, lemma_2.split_cells)
page.show(
    "ap.lemma-2",
    lemma_2.split_figure(toy, split),
    evidence="derived",
    records=[split, *toy.behind[2]],
    how="Left and right: SGD trials. Middle: descent on the exact population loss with two groups of tokens.",
    caption="How tokens' prompts part. Left: own share of the median trial. Middle: the speed. Right: e-foldings until "
    "the error is zero.",
    alt="Own shares rise with one slope to about one half, from a lower value at larger P. The speed times P squared falls "
    "slowly from 0.33 to 0.2. The number of e-foldings rises slowly.",
)
if not toy.too_small:
    display(lemma_2.lemma_2_reading(toy, speeds, split))

# %% [markdown]
# **What the lemma leaves open.** It follows the *expected* prompt (A40, A50), which is the same for all tokens, and
# treats the differences between tokens' prompts (A41) as negligible. Its noise factor $1-\sigma$ is nearly 1, so it does
# not predict the slowdown that we see for noise below $1/P$.

# %% [markdown]
# (ap.lemma-3)=
# ## Lemma 3: Iterations for first-layer AP
#
# **What the paper says.** For $h = 1$, $T = \eta^{-1} P \,/\, ((1 - P\sigma)^{-1}(1+\gamma))$ iterations suffice (A28).
# The proof ends with $\eta^{-1} P (1-P\sigma)^{-1} (1+\gamma)^{-1}$. The trained prompt has norm $\Theta(P)$ (Section 5)
# and direction $k(\lambda v_1 + \lambda v_2 - \mu v_3 - \mu v_4)$ (A82). It follows the gradients A80 and A81 until
# $k\mu \ge \Theta(1)/(1+\gamma)$ (A85).
#
# **What we ran.** The trials of Theorem 1 with the prompt on the first layer's input, and $\gamma$ from $-0.9$ to $-0.1$
# at several $P$.

# %% name="ap.lemma-3" tags=["hide-input"]
conditions.show(page, "ap.lemma-3", conditions.lemma_3(toy))
lemmas.gradient(toy, gradients, "ap.lemma-3", 1, [["+", "-", "+", "-"], ["+", "-", "+", "-"]])
lemmas.lemma(toy, "ap.lemma-3", 1)
page.not_judged(
    "ap.lemma-3.statement-matches-proof", f"{lemma_3.MISPRINT}: A28 has $(1 - P\\sigma)^{{-1}}$"
)
if toy.have("ap.lemma-3", "The exponent of the noise", "noise"):
    lemma_3.judge_noise(toy)
lemma_3.judge_background(toy)
ap_theory_ends.judge_ends(toy, ends, 1)

# %% [markdown]
# ### The attention strength
#
# The paper only says $\beta = \Theta(1)$. But the sign of $v_4$ in A80 depends on it, and so does the training time.

# %% name="beta" tags=["hide-input"]
strengths = {h: ap_theory_ends.beta_run(h) for h in (1, 2)}
page.show(
    "ap.lemma-3",
    ap_theory_ends.beta_figure(strengths, ends),
    evidence="derived",
    records=[ends, *strengths.values()],
    how="Left: autograd in float64 at δ = 0, P = 512. Right: medians over six SGD trials.",
    caption="Against the attention strength β. Left: the component of A80 whose sign turns. Right: steps to the first zero "
    "error.",
    alt="The v₄ component is negative below β = √(1/2) and positive above. Steps to zero error fall as β grows, most at "
    "layer 2.",
)
ap_theory_ends.judge_sign(toy, ends)

# %% [markdown]
# ### How the time depends on $\gamma$

# %% name="gamma" tags=["hide-input"]
if toy.have("ap.lemma-3", "Steps against γ", "gamma", *WHY_GAMMA):
    curves = [("gamma", 1), ("gamma", 2), *((name, 1) for name in WHY_GAMMA)]
    page.show(
        "ap.lemma-3",
        lemma_3.gamma_figure(toy),
        evidence="derived",
        records=[
            *(toy.runs[c] for c in curves),
            *(toy.flows[1, "error", g] for g in (-0.9, -0.5, -0.1)),
        ],
        how="Medians over eight SGD trials (points) and the symmetric limit (lines).",
        caption="Left: steps against 1 + γ, with log-log slopes. Right: the constant of layer 1.",
        alt="Layer 1 needs fewer steps as 1 + γ grows, with slope about −1; layer 2 does not depend on it. The "
        "constant tends to 32 from below, from further below for γ near −1.",
    )

# %% name="lemma-3-reading" tags=["hide-input"]
if toy.absent.isdisjoint(["gamma", "noise", *WHY_GAMMA]):
    end, most = toy.flows[1, "error", -0.5].values["cells"][-1], GAMMA_COUNTS[1][-1]
    power = {name: with_interval(fit) for (name, layer), fit in toy.powers.items() if layer == 1}
    bend, bent = lemma_3.bend(toy)
    own, lost, careful = lemma_3.own_shares(toy), *lemma_3.lost_near_minus_1(toy)
    text = f"""
**What to take from it.** The direction and the order of the norm are as in the proof. The background components decide.
In the symmetric limit at P = {end["tokens"]} they stop at {end["direction"][2]:.2f}, just short of −1/(1 + γ) = −2, where
v₃ and v₄ no longer activate their neurons; v₁ and v₂ are still at {end["direction"][0]:.2f}. So zero error at layer 1
comes from *removing the background*, as the paper's proof idea says. Attention then prefers the discriminative token by
a constant factor (A90 to A95), and its weight stays of order 1/P.

- *1 + γ.* A prompt −k (v₃ + v₄) lowers the input of the background's neuron by only k (1 + γ). So the walk has length
  1/(1 + γ), at a speed of order η/P. From γ = −0.5 up the exponent is {power["1 + gamma from 0.5 on"]} at P = {most}. Over
  all γ it is {power["1 + gamma"]}. Three things bend the law near γ = −1:
    - *Constants.* In the symmetric limit (1 + γ) η T / P at this P is {bend[-0.9]:.0f} for γ = −0.9 and {bend[-0.1]:.0f}
      for γ = −0.1 (exponent {bent:.2f}). Both tend to 32, but later near −1. With one shared prompt SGD follows that limit
      (P = 32: {power["1 + gamma, one prompt shared, P = 32"]}).
    - *Tokens part* here too: at zero error the own share is {own[-0.9]:.2f} at γ = −0.9 and {own[-0.1]:.1g} at −0.1.
    - *Step size.* At P = 32 the exponent is {power["1 + gamma, P = 32"]} with the main step size and
      {power["1 + gamma, a quarter of the step, P = 32"]} with a quarter of it. With the main step size some trials
      overshoot: at γ = −0.9, {lost} reach the cap, and {careful} with a quarter of the step.
- *1 − Pσ* is on opposite sides in A28 and in the proof's last line, but noise cannot both help and hinder. It does
  neither: the exponent is {power["1 - P sigma"]}. So the proof's line is an upper bound, and the statement's is not: it
  falls to zero at Pσ = 1.
- *The first gradient* at the discriminative token is e^(−β²) (v₁ + (2β² − 1) v₄) / (4P) for large P. So A80's sign of v₄
  is right for β² < 1/2 only; above that, the gradient through the attention scores outweighs the one through the values.
  It does not matter for the bound: a token is discriminative in only one sample of P, and for the other tokens the
  gradient is as in A81.
"""
    display(Markdown(text))

# %% [markdown]
# **What the lemma leaves open.** It does not see that half of the time goes into the slide along the hinge's edge. It
# does not say how the norm depends on $\gamma$: a walk of $1/(1+\gamma)$ along $-(v_3+v_4)$ has norm $\sqrt{2/(1+\gamma)}$
# per token, so nearly opposite backgrounds make the first layer slow too. And it says nothing about $\sigma$ beyond $1/P$,
# where training fails.

# %% [markdown]
# ## Try it
#
# Change `layer`, `tokens` ($P$), `gamma`, `noise` ($P \sigma$) or `step`. {ref}`What this call does <try-it>`.

# %% name="try-it"
from visbook.chapters.try_theory import try_toy

try_toy(toy, layer=1, tokens=16, gamma=-0.9)

# %% tags=["remove-output", "remove-input"]
page.close()
