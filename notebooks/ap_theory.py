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
# # AP, theory: why shallow prompts on a ViT
#
# Section 5 and Appendix C of *Visual Prompting Reimagined* {cite}`ap` explain the layer preference of activation
# prompts with a toy model: a two-layer, single-head ViT. A sample has $P$ tokens. One of them is $v_1$ or $v_2$ and
# decides the label; the other $P-1$ are background, all $v_3$ or all $v_4$. We build this model and check each statement
# on its own data, so all evidence on this page is `derived`.
#
# **Symbols.** The four patterns $v_1$ to $v_4$ have length 1, and $\gamma = v_3^\top v_4$. After the first layer they are
# called $e_1$ to $e_4$. Tokens carry Gaussian noise of standard deviation $\sigma$. In layer $l$ a query is its token
# times $\beta_l$; so is a key, permuted by $P_x$. We call $\beta$ the attention strength. $f$ is the output, $y = \pm 1$
# the label, $\eta$ the step size and $N$ the number of training samples. A1, A2, … are the paper's equations.
#
# **Choices.** The paper leaves some settings open. We fixed the step size, the noise, balanced batches and the smallest
# $P$ after trial runs, and wrote the claims on gradients, noise, attention and the second stage after short runs. So this
# is not a blind test. We show the alternatives beside our choice; some of them change the answer.
#
# - **Neurons.** The $m = 4k$ neurons are $k$ copies of four. Weighted by $1/(mP)$, $k$ copies equal one neuron weighted
#   by $1/(4P)$, so we use four.
# - **Permutation.** $P_x$ permutes *tokens*, keys and values alike, as in the proofs. Attention's weighted sum does not
#   change with it; only the attention distance does.
# - **Training.** The prompt is one vector per token and starts at zero. It is trained by SGD on the hinge loss
#   $\max(0, 1/P - y f)$. Every step sees a fresh batch, so the number of samples is batch size times steps.
# - **Zero generalisation error** is measured on a held-out sample per trial, 64 of each pattern pair, checked at step
#   numbers 3 % apart. A trial ends at the first check with $y f > 0$ on every sample. Section 5 and the proofs ask for
#   more, $y f \ge 1/P$ everywhere (A57, A92); we judge that separately.
# - **Bounds.** "As long as $N \ge$" says how many samples are enough, so slower growth agrees as well. We do not judge
#   constants that a $\Theta$ hides.
# - **Step size.** $\eta = 4$ for all $P$. One neuron's gradient is at most $1/(4P)$ per token, so a step moves a token by
#   about $1/P$.
# - **Batches** contain the four pattern pairs equally often, two of each. The proofs assume that the prompt has equal
#   components along $e_1$ and $e_2$ (A40, A82). With freely drawn batches their difference drifts at random, which we
#   show as a variant.
# - **Other parameters.** $\beta_1 = \beta_2 = 1$, $\gamma = -1/2$ and $\sigma = 0.1/P$. These keep the bounds' factors
#   $1 - P\sigma$ and $1-\sigma$ close to 1, so that a slope against $P$ measures $P$ alone. We vary them below.
# - **Smallest $P$.** We start at 8. At $P = 6$ a step is a sixth of a pattern; some first-layer trials overshoot and take
#   ten times as long as others. Then the first-layer slope is lower and its interval too wide to judge
#   (`token_counts=[6, 8, 12, 16, 24, 32]` shows it).

# %% tags=["parameters"]
profile = "quick"
device = "cpu"  # the toy model stays on the processor
seeds = None  # list of trial seeds; give it or token_counts to judge a run of your own in place of the kept one
token_counts = None  # list of P, two at least
larger = False  # also run what is kept, about an hour on one core; else the kept run is shown where there is one

# %% tags=["hide-input", "remove-output"]
import pandas as pd
from IPython.display import Markdown, display

from visbook.chapters import ap_theory, ap_theory_ends
from visbook.chapters import ap_theory_conditions as conditions
from visbook.chapters import ap_theory_readings as readings
from visbook.chapters.ap_theory_runs import (
    COUNTS,
    FIXED,
    GAMMA_COUNTS,
    JUDGED,
    NOISE_COUNT,
    READINGS,
    STANDARD,
    STEP_COUNT,
    WHY_GAMMA,
    ToyRuns,
    constant,
    local,
)
from visbook.pages.plots import with_interval
from visbook.theory import ap_limits
from visprompt.records import recorded

toy = ToyRuns.opened("ap_theory", globals())
p, page = toy.p, toy.page

# %% [markdown]
# ## The model in plain torch
#
# The next three cells are the whole model: change a number and run them again. First the data: the four pairs of
# patterns take turns, and the discriminative token is at a random position.

# %% name="plain-data"
import torch

P, d, gamma, sigma = 8, 8, -0.5, 0.1 / 8  # tokens, their width, v3 . v4, noise
v = torch.zeros(4, d)  # the patterns v1 to v4
v[0, 0] = v[1, 1] = v[2, 2] = 1
v[3, 2], v[3, 3] = gamma, (1 - gamma**2) ** 0.5


def draw(count, generator):
    """Samples (count, P, d), and their labels."""
    own, background = torch.arange(count) % 4 // 2, 2 + torch.arange(count) % 2
    x = v[background][:, None] + sigma * torch.randn(count, P, d, generator=generator)
    place = torch.randint(P, (count,), generator=generator)
    x[torch.arange(count), place] += v[own] - v[background]
    return x, 1.0 - 2 * own


# %% [markdown]
# The model has two layers of attention (Eq. A13). The prompt is added to the input of one of them, and nothing else is
# trained. The loss is the hinge loss with margin $1/P$.

# %% name="plain-model"
beta, signs = 1.0, torch.tensor([1.0, -1.0, 1.0, -1.0])


def attend(u, values):
    return torch.softmax(beta**2 * u @ u.mT, -1) @ values


def output(x, prompt, layer):
    u = x + prompt if layer == 1 else x
    z = torch.relu(attend(u, u @ v.T))
    z = z + prompt if layer == 2 else z
    return (torch.relu(attend(z, z)) @ signs).sum(-1) / (4 * P)


def slope(x, y, prompt, layer):
    """The gradient of the mean hinge loss."""
    prompt = prompt.clone().requires_grad_()
    loss = torch.relu(1 / P - y * output(x, prompt, layer)).mean()
    return torch.autograd.grad(loss, prompt)[0]


# %% [markdown]
# Training takes fresh samples at every step, until no held-out sample is misclassified.

# %% name="plain-training"
B, eta = 8, 4.0  # batch, step size


def train(layer, slope=slope, most=5_000):
    """The number of steps; None beyond `most`."""
    generator = torch.Generator().manual_seed(0)
    held_x, held_y = draw(256, generator)
    prompt = torch.zeros(P, d if layer == 1 else 4)
    for step in range(1, most + 1):
        prompt = prompt - eta * slope(*draw(B, generator), prompt, layer)
        if (held_y * output(held_x, prompt, layer) > 0).all():
            return step


steps = {layer: train(layer) for layer in (1, 2)}
print(f"P = {P}: {steps[1]} steps at layer 1, {steps[2]} at layer 2")

# %% [markdown]
# The runs below use a faster form, with an analytic gradient and all trials in one batch of tensors. Up to rounding it
# gives the same gradient, so training takes the same number of steps or nearly so.

# %% name="plain-check"
from visbook.theory import ap_toy


def fast(x, y, prompt, layer):
    chosen = ap_toy.Settings(tokens=P, dim=d, layer=layer, gamma=gamma, beta=beta)
    return ap_toy.gradient(chosen, x[None], y[None], prompt[None])[0]


for layer in (1, 2):
    x, y = draw(B, torch.Generator().manual_seed(1))
    prompt = 0.1 * torch.randn(P, d if layer == 1 else 4)
    gap = (fast(x, y, prompt, layer) - slope(x, y, prompt, layer)).abs().max()
    assert gap < 1e-6
    count = train(layer, fast)
    print(f"layer {layer}: gradients differ by {gap:.0e}; {count} steps, above {steps[layer]}")

# %% [markdown]
# ## The runs
#
# Each curve is one record. The trials of a setting are trained together as one batch of tensors. Every trial has its own
# random generator and would give the same numbers alone.
#
# - The *kept run* has 16 trials per point, with $P$ from 8 to 64 at layer 2 and to 128 at layer 1. Its variants have 8
#   trials per point. It took about an hour on one core.
# - *This run* repeats a small part of it. It uses the CPU, whatever `device` says.
# - The *symmetric limit* is gradient descent on the exact population loss of the four pairs, without noise. It follows
#   the expectations that A40 and A82 take. By symmetry, all tokens keep one and the same prompt.
#
# The table of conditions of each statement has the main setting, {ref}`the table of variants <ap-theory-variants>` what
# they change, and every record all of its settings.

# %% name="runs" tags=["hide-input", "remove-output"]
toy.make()

# %% [markdown]
# (ap.lemma-1)=
# ## Lemma 1: Attention distance shrinks after one layer
#
# **What the paper says.** The mean attention distance is
# $\frac1P \sum_i |i - \arg\max_j \langle k_j, q_i\rangle|$. Let $P_x$ put the discriminative key $d_A$ positions from its
# query. Then the distance is $(1 + d_A)/P$ in the first layer and $1/P$ in the second. The reason is that after one layer
# every token is mostly background ($\lambda_2 < \lambda_1 < 1/2$, A18 and A19), so even the discriminative query prefers
# a background key.
#
# **What we ran.** Both layers of the model without a prompt, in float64, for every $P$, for $d_A = 1, 2, P/4, P/2$ and
# for eight random positions of the discriminative token. The lemma has no noise, so the $P - 1$ background keys tie
# exactly; the proof takes the nearest of them.

# %% name="ap.lemma-1" tags=["hide-input"]
conditions.show(page, "ap.lemma-1", conditions.lemma_1())
lemma_1 = recorded("ap-lemma-1", {"token_counts": COUNTS[2]}, ap_theory.lemma_1_cells)
exact, noisy, betas, first = (
    pd.DataFrame(lemma_1.values[k]) for k in ("exact", "noisy", "betas", "first")
)
page.show(
    "ap.lemma-1",
    ap_theory.lemma_1_figure(exact, noisy, betas),
    evidence="derived",
    records=[lemma_1],
    how="Both layers of the toy ViT computed in float64; ties go to the nearest key.",
    caption="Mean attention distance against P (left) and against the attention strength β (right).",
    alt="Without noise the distances lie on the paper's two lines; with noise they grow with P in both layers. "
    "Beyond β of about 1.65 the distance is the same in both layers.",
)
for when in ("before", "after"):
    page.judge(
        f"ap.lemma-1.{when}",
        exact[f"gap_{when}"].max(),
        evidence="derived",
        records=[lemma_1],
        note="Without noise, ties to the nearest key, β = 1.",
    )
display(ap_theory.lemma_1_reading(noisy, first))

# %% [markdown]
# **What the lemma leaves open.** It compares two layers of *one* fixed model without a prompt, on one kind of sample
# ($v_1$ among $v_4$). It says nothing about training. The bounds below do not use it either: $d_A$ occurs in none of
# them. The permutation behind $d_A$ drops out of attention's weighted sum, so a model with any other $d_A$ trains in
# exactly the same way. The second layer is slow because attention mixes the tokens (A18 and A19, $\lambda_1$ and
# $\lambda_2$ of order $1/P$), and the lemma's distance does not measure that.

# %% [markdown]
# (ap.theorem-1)=
# ## Theorem 1: Sample complexity of first- and second-layer AP
#
# **What the paper says.** With batch size $B \ge \Omega(1)$, SGD reaches zero generalisation error with
# $N \ge N_1 = \Theta(P)$ samples if the prompt is added to the first layer's input. At the second layer's input it needs
# $N \ge N_2 = \Theta(P^2 \log P)$.
#
# **Which layer is meant.** The proof adds the first-layer prompt to the data tokens themselves (A14). Section 3 calls
# this layer 0, plain visual prompting. So the easier case of the theorem is a prompt on the input, although the
# introduction says that theory shows input-level prompts to be worse.
#
# **What we ran.** Each trial trains one prompt until no held-out sample is misclassified. We fit slopes to the medians
# over trials; intervals are 95 % bootstraps over trials. They reflect scatter between trials, not curvature; for that,
# see the local slopes between neighbouring $P$. The *symmetric limit* beside the trials is gradient descent on the exact
# population loss, without noise.

# %% name="theorem-1-conditions" tags=["hide-input"]
conditions.show(page, "ap.theorem-1", conditions.theorem_1())

# %% name="ap.theorem-1" tags=["hide-input"]
both = [*toy.behind[1], *toy.behind[2]]
page.show(
    "ap.theorem-1",
    ap_theory.samples_figure(toy),
    evidence="derived",
    records=[*both, toy.flows[1, "error", -0.5], toy.flows[2, "error", -0.5]],
    how=f"SGD trials (dots) and their medians (lines), batch {STANDARD.batch}, step size {STANDARD.step:g}.",
    caption=f"Samples to the first zero held-out error, with balanced batches and β = {STANDARD.beta:g}. Dashed: the "
    "paper's growth and its slope over these P, drawn through the first median.",
    alt=f"Samples against P on logarithmic axes: layer 1 rises with slope {toy.fits[1]['slope']:.2f}; layer 2 lies above "
    f"it and rises with slope {toy.fits[2]['slope']:.2f}.",
)
ap_theory.judge_samples(toy)
if not toy.of_mine:
    whole = f"P up to {COUNTS[1][-1]} and {COUNTS[2][-1]}, 16 trials each"
    toy.have("ap.theorem-1", whole, JUDGED, "symmetric limit")

# %% [markdown]
# Does it repeat? We compare this run with the kept one, on the same seeds and settings.

# %% name="again" tags=["hide-input"]
display(ap_theory.kept_run(toy))
compared = [toy.runs[JUDGED, h] for h in toy.own if (JUDGED, h) in toy.runs]
page.present(
    pd.DataFrame(ap_theory.agreement(toy)).fillna("–").set_index("layer"),
    evidence="derived",
    records=[*toy.own.values(), *compared],
    cell="again",
    how="Trained again when this page was made.",
    caption=f"This run{' and the kept one' if compared else ''}. Machines round differently, so long trials can differ.",
)

# %% [markdown]
# ### Stricter readings: population risk, freely drawn batches, lasting zero error
#
# Section 5 measures generalisation by the population risk of the hinge loss. It is zero where $y f \ge 1/P$ on every
# sample, the end point of both proofs (A57, A92). At layer 2 such a point exists only if $e^{\beta^2}$ is above 4, so here
# $\beta = 1.5$. The theorem does not ask for balanced batches, and it does not speak of the first zero error only.

# %% name="hinge" tags=["hide-input"]
ends, hinge = ap_theory_ends.end_record(), {h: ap_theory_ends.hinge_run(h) for h in (1, 2)}
page.show(
    "ap.theorem-1",
    ap_theory_ends.hinge_figure(hinge, ends),
    evidence="derived",
    records=[ends, *hinge.values()],
    how="SGD trials with freely drawn batches, and gradient descent on the exact population loss without noise.",
    caption=f"Samples until the hinge risk is zero, β = {ap_theory_ends.BETA:g}. Dashed: the paper's growth.",
    alt="Layer 1 grows somewhat faster than P. Layer 2 in the symmetric limit is far steeper than P squared log P.",
)
ap_theory_ends.judge_hinge(toy, hinge, ends)
if toy.have("ap.theorem-1", "Free batches and lasting errors", *READINGS):
    ap_theory_ends.judge_variants(toy)
    display(ap_theory_ends.hinge_reading(toy, hinge, ends))

# %% [markdown]
# ### One number of tokens at a time
#
# How does a prompt reach zero error? Move the slider through $P$. The curves are the components of the token-averaged
# prompt along the four patterns, the held-out error, and the *own share*: the share of the prompt's squared norm in which
# its tokens differ.

# %% name="slices" tags=["hide-input"]
page.show(
    "ap.theorem-1",
    ap_theory.slices(toy),
    evidence="derived",
    records=both,
    how="The trial with the median number of steps, until no held-out sample is misclassified.",
    caption="A prompt during training. Own share: the part of its squared norm that tokens do not share.",
    alt="Both layers first push against patterns 3 and 4. Layer 1 is then nearly done; at layer 2 the error stays "
    "at one half until the tokens' prompts differ.",
)

# %% [markdown]
# ### Exponents, measured and predicted
#
# Besides $P$, the bounds contain the step size $\eta$, $\gamma = v_3^\top v_4$ (layer 1 only), and the noise as
# $1 - P\sigma$ (layer 1) or $1 - \sigma$ (layer 2, nearly 1 at any $\sigma \le 1/P$).

# %% name="exponents" tags=["hide-input"]
scans = ["step", "gamma", "noise", *WHY_GAMMA]
toy.have("ap.theorem-1", "Exponents of step size, γ and noise", *scans)
page.show(
    "ap.theorem-1",
    readings.exponents(toy),
    evidence="derived",
    records=[*both, *(r for (name, _), r in toy.runs.items() if name in scans)],
    how="Slopes of log steps against the logarithm of each quantity.",
    caption="Exponents of the number of iterations."
    + f" Step size at P = {STEP_COUNT[1]} and {STEP_COUNT[2]}, γ "
    f"at P = {GAMMA_COUNTS[1][-1]} and {GAMMA_COUNTS[2][-1]}, noise below 1/P at P = {NOISE_COUNT[1]}."
    * bool(toy.powers),
)

# %% [markdown]
# ### Which law fits

# %% name="laws" tags=["hide-input"]
page.show(
    "ap.theorem-1",
    readings.law_figure(toy),
    evidence="derived",
    records=[*both, *toy.flows.values()],
    how="Medians over trials, divided by each law.",
    caption="Training times divided by candidate laws. A law that fits gives a flat line.",
    alt="Layer 1: the scaled time rises from about 15 towards 32. Layer 2: SGD divided by P squared log P is nearly "
    "flat, while the symmetric limit is nearly flat over P cubed.",
)

# %% [markdown]
# (ap-theory-variants)=
# ### Variants side by side

# %% name="readings" tags=["hide-input"]
toy.have("ap.theorem-1", "The variants", JUDGED, FIXED, *READINGS)
page.show(
    "ap.theorem-1",
    pd.DataFrame(readings.reading_rows(toy))
    .sort_values("layer", kind="stable")
    .set_index("reading"),
    evidence="derived",
    records=[
        *(r for (name, _), r in toy.runs.items() if name in (JUDGED, FIXED, *READINGS)),
        *toy.flows.values(),
    ],
    how="Slopes of log steps against log P. Variants have half the trials, some a lower cap on steps.",
    caption="The slope against P in other settings. A trial that reaches the cap counts as infinite in the median.",
)

# %% [markdown]
# ### Noise
#
# The bounds ask for $\sigma \le O(1/P)$ and contain factors that vanish or diverge at $P\sigma = 1$. How much noise does
# training tolerate?

# %% name="noise" tags=["hide-input"]
names = ("noise", JUDGED, "σ = 0.5/P", FIXED)
if toy.have("ap.theorem-1", "Steps against the noise", *names):
    page.show(
        "ap.theorem-1",
        readings.noise_figure(toy),
        evidence="derived",
        records=[toy.runs[name, h] for name in names for h in (1, 2)],
        how="Medians over eight trials. Triangle at the cap: half of the trials or more did not finish.",
        caption="Left: steps against the noise, at one P. Right: steps against P, for noise that shrinks as 1/P and for "
        "a fixed noise.",
        alt="Noise up to Pσ = 1 hardly slows down layer 1, which fails beyond 2. Layer 2 slows down from Pσ = 0.25 "
        "and fails from 0.75. With a fixed σ both fail as P grows.",
    )

# %% name="theorem-1-reading" tags=["hide-input"]
if toy.absent.isdisjoint([*READINGS, JUDGED, "noise"]):
    one, two = toy.fits[1], toy.fits[2]
    margin = ap_limits.slope(toy.limit_values(1, goal="margin"))["slope"]
    start, end = (constant(toy.limit_values(1)[tokens][0], tokens) for tokens in (8, 256))
    shared, careful = "one prompt shared by all tokens", "a quarter of the step"
    batch, free, lasting = readings.WIDE, readings.FREE, readings.lasting(toy)
    slower, missed = readings.noise_at_layer_2(toy)
    text = f"""
**What to take from it.** The second layer needs order-wise more samples than the first to reach its first zero
held-out error. The measured exponents are {with_interval(one)} and {with_interval(two)}; over these P the theorem
predicts {toy.predicted[1]:.2f} and {toy.predicted[2]:.2f}. Where do measured and predicted exponents differ, and why?

- *Layer 1, constants.* The local slopes ({local(one)}) are above 1 and come down at large P. The symmetric limit bends
  in the same way ({local(toy.limits[1])}): (1 + γ) η T / P rises from {start:.1f} at P = 8 to {end:.1f} at P = 256,
  towards 32. Half of the 32 is the straight walk of the background components to the hinge's edge, with two of the four
  pairs active. The other half is the slide along that edge: right and wrong pairs pull against each other over a
  distance of 2/P, at a speed of order η/P². The proof has only the first half; the second comes from the hinge's margin
  of 1/P. At P = 8 a step is coarse, and trials differ from each other.
- *Layer 1, the proof's goal.* The time to y f ≥ 1/P everywhere (A92) grows with P to the power {margin:.2f} in the
  symmetric limit, towards 2. A93 to A95 ask for e^(Θ(1) kμ) ≥ 1 instead, which holds from the first step on. They lose
  the factor 1/4 of the output layer.
- *Layer 2, the route.* With one prompt for all tokens, as in the expectations of A40, the exponent is
  {readings.pair_text(toy, shared, 2)} with one prompt per token (same P); in the symmetric limit the local slope goes to
  {toy.limits[2]["local"][-1]:.2f}. The paper trains one prompt per token, and these prompts become different: some grow
  towards e₁ and others towards e₂, at a speed of order η/P² (Lemma 2, on the page of the lemmas). So the exponent
  agrees, but not for the reason that the proof gives.
- *Layer 2, the logarithm.* Divided by P² log P the times are flatter than divided by P² or P³. But this logarithm has
  another origin than the proof's. The larger P is, the smaller is the difference between the tokens' prompts from which
  they begin to separate, and the longer that takes.
- *Step size.* With a quarter of it, trials at P = 16 need {readings.ratio(toy, careful, 1, 16):.1f} times the steps at
  layer 1 and {readings.ratio(toy, careful, 2, 16):.1f} times at layer 2. The slopes hardly change:
  {readings.pair_text(toy, careful, 1)} and {readings.pair_text(toy, careful, 2)}.
- *Batch size.* With four times the batch, trials at P = 16 need {readings.ratio(toy, batch, 1, 16):.2f} and
  {readings.ratio(toy, batch, 2, 16):.2f} times the steps, so the number of samples N = B T grows with B. Hence the noise
  of small batches is not why the prompts separate; it only sets the difference from which they begin.
- *First or lasting.* The second-layer prompt loses its zero error again in {lasting} trials.
- *Freely drawn batches.* The difference between the e₁ and e₂ components then drifts at random. Layer 2 reaches zero
  error when this difference happens to pass zero: it is {readings.leaning(toy, free):.2f} there (P = 16), and
  {readings.leaning(toy, JUDGED):.2f} with balanced batches. The tokens' prompts are still alike (own share
  {readings.own_share(toy, free):.2f}; balanced: {readings.own_share(toy, JUDGED):.2f}). Such a zero error is luck, not
  learning. B ≥ Ω(1) at a fixed step size does not give the balance that the proof assumes.
- *Noise.* At P = {NOISE_COUNT[1]} noise up to Pσ = 1 does not slow down the first layer; at P = 8 it does. At the second
  layer, P = {NOISE_COUNT[2]}, going from Pσ = 0.1 to 0.5 multiplies the steps by {slower:.1f}, and at 0.75 {missed}
  trials do not finish: the held-out noise is then as large as the margin that the prompt creates. Beyond the condition
  both layers fail: the first from Pσ = 2, and with a fixed σ both as P grows.
"""
    display(Markdown(text))

# %% [markdown]
# **What the theorem leaves open.**
#
# - *Lower bounds.* "As long as $N \ge$" is an upper bound for each layer, and the proofs give no other. That the second
#   layer *needs* order-wise more samples is not proved; we only measure it.
# - *Constants.* The theorem does not say which layer is ahead at a given $P$, or how large $\eta$ may be, although
#   $\eta^{-1}$ is in both times.
# - *Exactly zero.* Gaussian noise is unbounded, so no prompt has an error of exactly zero. We measure no error in 256
#   held-out samples, which allows a true error of about one in a hundred.
# - *Lasting.* The theorem bounds when the error is first zero, not whether it stays zero.
# - *Other models.* The proofs need fixed neurons that are the patterns, $\beta = \Theta(1)$ and two layers. They say
#   nothing about a third layer, or about CNNs, for which the paper prefers deep layers.

# %% [markdown]
# ## Try it
#
# Change `layer`, `tokens` ($P$), `noise` ($P \sigma$), `step` or `batch`. For any other change, edit the cells of plain
# torch above. {ref}`What this call does <try-it>`.

# %% name="try-it"
from visbook.chapters.try_theory import try_toy

try_toy(toy, layer=2, tokens=8, noise=0.25)

# %% tags=["remove-output", "remove-input"]
page.close()
