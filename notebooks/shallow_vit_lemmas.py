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
# # Shallow ViT: the lemmas
#
# We check Lemmas 1 to 4 of *A Theoretical Understanding of Shallow Vision Transformers* {cite}`shallowvit`.
# [](shallow_vit.ipynb) describes the model, the data and our choices.

# %% tags=["parameters"]
profile = "quick"
device = "cpu"
seeds = None  # list of trial seeds; None: those of the profile
neurons = None  # m; the runs of Lemmas 2 and 4 have 1000
larger = False  # in the paper profile: as many trials and neurons as the paper has, hours

# %% tags=["hide-input", "remove-output"]
import numpy as np

from visbook.chapters import shallow_lemmas
from visbook.chapters.shallow_conditions import conditions
from visbook.chapters.shallow_runs import TrialParameters, opened
from visbook.studies.statistics import interval
from visbook.theory import shallow_vit

p, page, runs = opened("shallow_vit_lemmas", TrialParameters, globals())

# %% name="runs" tags=["hide-input", "remove-output"]
runs.compute(shallow_lemmas.jobs())

# %% [markdown]
# (shallowvit.lemma-1)=
# ## Lemma 1: Hoeffding bound (quoted)
#
# **What the paper says.** For independent centred sub-Gaussian variables with $\psi_2$ norm at most $K$,
#
# $$P\Big(\Big|\sum_i a_i X_i\Big| \ge t\Big) \le e \exp\Big(-\frac{c\,t^2}{K^2 \|a\|^2}\Big)$$
#
# with an absolute constant $c > 0$ that is not given.
#
# **What we ran.** We sampled the tails of sums of 50 variables and looked for the largest $c$ that they allow.

# %% name="shallowvit.lemma-1" tags=["hide-input"]
constants = runs["tails"].values["c"]
runs.show(
    "shallowvit.lemma-1",
    shallow_lemmas.constants_table(runs),
    "tails",
    how="200,000 sampled sums each; t from 0.5 standard deviations up to where only 50 samples lie beyond.",
    caption="The largest constant of Lemma 1 that sampled tails allow. For very large t a Gaussian sum allows 1/π = 0.32.",
)
runs.judge(
    "shallowvit.lemma-1.constant",
    min(min(constants.values()), 1 / np.pi),
    "tails",
    note="The smaller of the sampled constants and the limit of a Gaussian sum, K²/2 with K² = 2/π.",
)

# %% [markdown]
# (shallowvit.lemma-2)=
# ## Lemma 2: Training dynamics in three claims
#
# **What the paper says.** Let $p_1$ and $p_2$ be the initial values of the two discriminative patterns.
#
# 1. Lucky neurons of $W_O$ grow along $p_1$ (or $p_2$) and along no other direction; the others stay.
# 2. Queries and keys of label-relevant tokens grow, from 1 to $\Theta(\log T)$.
# 3. $W_V$ adds lucky neurons to the values of label-relevant tokens.
#
# **What we ran.** The setting of Figure 4 with one $a$ for all positions and 1,000 neurons. We call a neuron lucky as the
# proof of Lemma 3 does: its angle to $p_1$ is the smallest by $2(\sigma+\tau)$. In addition, its output weight must have
# that pattern's sign.

# %% name="shallowvit.lemma-2" tags=["hide-input"]
runs.show(
    "shallowvit.lemma-2",
    shallow_lemmas.growth(runs),
    "lemma",
    how=f"Means of {runs.trials} trials. Right: solid lines are discriminative patterns.",
    caption="Growth of the hidden neurons (left) and of queries, keys and values (right).",
    alt="Along their own discriminative direction, lucky neurons grow by "
    f"{runs.traces('lemma', 'lucky_grown')[:, -1].mean():.3f} and others by "
    f"{runs.traces('lemma', 'others_grown')[:, -1].mean():.3f}. Queries, keys and values of discriminative patterns grow; "
    "those of the rest hardly move.",
)

# %% name="lemma-conditions" tags=["hide-input"]
runs.present(
    conditions(runs["lemma"], samples=480),
    "lemma",
    cell="lemma-conditions",
    how="From the settings and the initial weights; constants that the paper does not print are taken as 1.",
    caption="The conditions of Theorem 1 in these runs. Lemmas 2 and 4 assume them.",
)

# %% name="dynamics" tags=["hide-input"]
lucky, others = (runs.traces("lemma", name)[:, -1] for name in ("lucky_grown", "others_grown"))
runs.judge(
    "shallowvit.lemma-2.lucky-grow",
    interval(lucky - others),
    "lemma",
    note=f"Lucky neurons grow by {lucky.mean():.3f}, others by {others.mean():.3f}.",
)
rest = runs.traces("lemma", "lucky_rest_99") / shallow_vit.Settings().xi
runs.judge(
    "shallowvit.lemma-2.other-directions",
    interval(rest[:, -1]),
    "lemma",
    note=f"At initialisation it is {rest[:, 0].mean():.2f}.",
)
ahead = [
    shallow_lemmas.grown(runs, f"{kind}_1") - shallow_lemmas.grown(runs, f"{kind}_rest")
    for kind in ("query", "key")
]
middle, low, high = interval(np.mean(ahead, 0))
page.not_judged(
    "shallowvit.lemma-2.query-and-key",
    f"they do grow more than the others', by {middle:.2f} [{low:.2f}, {high:.2f}]. But we cannot see the order log T: the "
    "runs have 60 iterations, and Eq. 60 gives this order to the square of the norm",
)
runs.judge(
    "shallowvit.lemma-2.value", interval(runs.traces("lemma", "value_cosine")[:, -1]), "lemma"
)

# %% [markdown]
# (shallowvit.lemma-3)=
# ## Lemma 3: Number of lucky neurons at the start
#
# **What the paper says.** With $m \ge \epsilon_m^{-2} M^2 \log N$ neurons, at least
# $\frac{m}{M}\big(1 - \epsilon_m - (\sigma+\tau) M/\pi\big)$ are lucky at initialisation. Definition 2 calls a neuron
# lucky if its angle to $p_1$ is at most $\sigma + \tau$. The proof instead takes those whose angle to $p_1$ is their
# smallest.
#
# **What we ran.** We count lucky neurons among random Gaussian ones, by both definitions.

# %% name="shallowvit.lemma-3" tags=["hide-input"]
runs.show(
    "shallowvit.lemma-3",
    shallow_lemmas.lucky_table(runs),
    "lucky",
    how="Shares of 100,000 (M = 5) or 50,000 Gaussian neurons; the bound with ε_m = 0.",
    caption="Share of lucky neurons at initialisation: by Definition 2, by the proof, and by the proof without noise.",
)
runs.present(
    shallow_lemmas.lucky_conditions(),
    cell="shallowvit.lemma-3",
    how="From the settings of Section 4.1 and Appendix B; constants that the paper does not print are taken as 1.",
    caption="The conditions of Lemma 3 at 1,000 neurons: σ + τ, and the least ε_m with m ≥ ε_m⁻² M² log N.",
)

# %% name="shares" tags=["hide-input"]
five = runs.cells("lucky")[0]
above = shallow_lemmas.share_interval(five["definition"], five["bound"])
runs.judge(
    "shallowvit.lemma-3.share-by-definition",
    above,
    "lucky",
    note="τ is the bound on the noise of a token.",
)
least = shallow_lemmas.lucky_conditions().loc[5, "bound with this ε_m, % of m"]
page.not_judged(
    "shallowvit.lemma-3.share-by-proof",
    f"with the ε_m of 1,000 neurons the bound is {least} %, and the proof's definition gives {100 * five['proof']:.1f} %. "
    "Constants that the paper does not print decide",
)
runs.judge(
    "shallowvit.lemma-3.uniform-angle",
    shallow_lemmas.share_interval(five["quarter"]),
    "lucky",
    note="In many dimensions a random direction is nearly orthogonal to $p_1$.",
)

# %% [markdown]
# **What to take from it.** The $1/M$ comes from symmetry: one of the $M$ angles is the smallest. The cone of Definition 2
# is another set and nearly empty in ten dimensions. In both sets, half of the neurons have the wrong output sign.

# %% [markdown]
# (shallowvit.lemma-4)=
# ## Lemma 4: Lucky neurons stay lucky
#
# **What the paper says.** Neurons that are lucky for $p_1$ (the set $\mathcal W$) or for $p_2$ (the set $\mathcal U$) stay
# lucky: $\mathcal W(0) \subseteq \mathcal W(t)$ and $\mathcal U(0) \subseteq \mathcal U(t)$.
#
# **What we ran.** The trials of Lemma 2. We count how many neurons that are lucky at initialisation, by the proof's
# definition, are still lucky later.

# %% name="shallowvit.lemma-4" tags=["hide-input"]
runs.show(
    "shallowvit.lemma-4",
    shallow_lemmas.kept(runs),
    "lemma",
    how=f"Means of {runs.trials} trials.",
    caption="Initially lucky neurons that are still lucky, and neurons in the cone of Definition 2.",
    alt=f"Of all lucky neurons {100 * runs.traces('lemma', 'kept')[:, -1].mean():.0f} % stay lucky, of those with their "
    f"pattern's output sign {100 * runs.traces('lemma', 'kept_sign')[:, -1].mean():.0f} %.",
)
kept, kept_sign = (100 * runs.traces("lemma", name).min(1) for name in ("kept", "kept_sign"))
runs.judge(
    "shallowvit.lemma-4.stay-lucky",
    interval(kept_sign),
    "lemma",
    note=f"Whatever their output sign, {kept.mean():.1f} % stay. The cone of Definition 2, which asks for no sign, holds "
    f"{100 * runs.traces('lemma', 'in_cone')[:, 0].mean():.1f} % of the neurons at initialisation.",
)

# %% [markdown]
# ## Try it
#
# Change `step`, `delta`, `sigma` or `neurons`. {ref}`What this call does <try-it>`.

# %% name="try-it"
from visbook.chapters.try_theory import try_vit

try_vit(runs, "lemma", step=1.0)

# %% tags=["remove-output", "remove-input"]
page.close()
