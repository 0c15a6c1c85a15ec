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
# Lemmas 1 to 4 of *A Theoretical Understanding of Shallow Vision Transformers* {cite}`shallowvit`.
# [](shallow_vit.ipynb) has the model, its data and what had to be decided about both.

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
# **What was run.** Sampled tails of sums of 50 variables, and the largest $c$ that they allow.

# %% name="shallowvit.lemma-1" tags=["hide-input"]
constants = runs["tails"].values["c"]
runs.show(
    "shallowvit.lemma-1",
    shallow_lemmas.constants_table(runs),
    "tails",
    how="200,000 sampled sums each; t from 0.5 standard deviations on, as far as 50 samples lie beyond.",
    caption="The constant of Lemma 1 that sampled tails allow. For very large t a Gaussian sum allows 1/pi = 0.32.",
)
runs.judge(
    "shallowvit.lemma-1.constant",
    min(min(constants.values()), 1 / np.pi),
    "tails",
    note="The smaller of the sampled constants and the limit of a Gaussian sum, K^2 / 2 with K^2 = 2 / pi.",
)

# %% [markdown]
# (shallowvit.lemma-2)=
# ## Lemma 2: Training dynamics in three claims
#
# **What the paper says.** (1) Lucky neurons of $W_O$ grow along $p_1$ (or $p_2$), the value of the first (second)
# discriminative pattern at the start, and along no other direction; the others stay. (2) Queries and keys of
# label-relevant tokens grow, from 1 to $\Theta(\log T)$. (3) $W_V$ adds lucky neurons to the values of label-relevant
# tokens.
#
# **What was run.** The setting of Figure 4 with one $a$ for all positions and 1000 neurons. A neuron is lucky as
# the proof of Lemma 3 reads it: its angle to $p_1$ is the smallest by $2(\sigma+\tau)$; and it is read out with
# that pattern's sign.

# %% name="shallowvit.lemma-2" tags=["hide-input"]
runs.show(
    "shallowvit.lemma-2",
    shallow_lemmas.growth(runs),
    "lemma",
    how=f"Means of {runs.trials} trials; solid lines on the right are the discriminative patterns.",
    caption="Growth of the hidden layer (left), of queries, keys and values (right).",
    alt="Neurons grow along their own discriminative direction, lucky ones more than others; queries, keys "
    "and values of discriminative patterns grow and those of the rest hardly move.",
)

# %% name="lemma-conditions" tags=["hide-input"]
runs.present(
    conditions(runs["lemma"], samples=480),
    "lemma",
    cell="lemma-conditions",
    how="Read off the settings and the first weights; constants that the paper hides are taken as 1.",
    caption="The conditions of Theorem 1, under which Lemmas 2 and 4 stand, in these runs.",
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
    note=f"At the start {rest[:, 0].mean():.2f}.",
)
ahead = [
    shallow_lemmas.grown(runs, f"{kind}_1") - shallow_lemmas.grown(runs, f"{kind}_rest")
    for kind in ("query", "key")
]
middle, low, high = interval(np.mean(ahead, 0))
page.not_judged(
    "shallowvit.lemma-2.query-and-key",
    f"that they grow more than the others' is seen, by {middle:.2f} [{low:.2f}, {high:.2f}], but the order log T is not: "
    "the runs have 60 iterations, and Eq. 60 gives this order to the square of the norm",
)
runs.judge(
    "shallowvit.lemma-2.value", interval(runs.traces("lemma", "value_cosine")[:, -1]), "lemma"
)

# %% [markdown]
# (shallowvit.lemma-3)=
# ## Lemma 3: Number of lucky neurons at the start
#
# **What the paper says.** With $m \ge \epsilon_m^{-2} M^2 \log N$ neurons, at least
# $\frac{m}{M}\big(1 - \epsilon_m - (\sigma+\tau) M/\pi\big)$ are lucky at the start. Definition 2 calls a neuron
# lucky if its angle to $p_1$ is at most $\sigma + \tau$; the proof takes those for which that angle is the smallest.
#
# **What was run.** A million Gaussian neurons against both.

# %% name="shallowvit.lemma-3" tags=["hide-input"]
runs.show(
    "shallowvit.lemma-3",
    shallow_lemmas.lucky_table(runs),
    "lucky",
    how="Shares of 100,000 (M = 5) or 50,000 Gaussian neurons; the bound with eps_m = 0.",
    caption="Share of lucky neurons at the start, by definition, by proof, and without the noise.",
)
runs.present(
    shallow_lemmas.lucky_conditions(),
    cell="shallowvit.lemma-3",
    how="From the settings of Section 4.1 and Appendix B; constants that the paper hides are taken as 1.",
    caption="The conditions of Lemma 3 at 1000 neurons: sigma + tau, and the eps_m that m >= eps_m^-2 M^2 log N leaves.",
)

# %% name="shares" tags=["hide-input"]
five = runs.cells("lucky")[0]
above = shallow_lemmas.share_interval(five["definition"], five["bound"])
runs.judge(
    "shallowvit.lemma-3.share-by-definition",
    above,
    "lucky",
    note="tau is the bound on the noise of a token.",
)
least = shallow_lemmas.lucky_conditions().loc[5, "bound with it, % of m"]
page.not_judged(
    "shallowvit.lemma-3.share-by-proof",
    f"with the eps_m that 1000 neurons leave the bound is {least} %, and the proof's reading has {100 * five['proof']:.1f} %: "
    "constants that the paper hides decide",
)
runs.judge(
    "shallowvit.lemma-3.uniform-angle",
    shallow_lemmas.share_interval(five["quarter"]),
    "lucky",
    note="In many dimensions a random direction is nearly orthogonal to p_1.",
)

# %% [markdown]
# **What to take from it.** The $1/M$ comes from symmetry: one of the $M$ angles is the smallest. Definition 2's
# cone is another set, nearly empty in ten dimensions. And half of either set is read out with the wrong sign.

# %% [markdown]
# (shallowvit.lemma-4)=
# ## Lemma 4: Lucky neurons stay lucky
#
# **What the paper says.** Neurons that are lucky for $p_1$, the set $\mathcal W$, or for $p_2$, the set $\mathcal U$,
# stay so: $\mathcal W(0) \subseteq \mathcal W(t)$ and $\mathcal U(0) \subseteq \mathcal U(t)$.
#
# **What was run.** The trials of Lemma 2: the share of the neurons that are lucky at the start, by the proof's
# reading, and still are.

# %% name="shallowvit.lemma-4" tags=["hide-input"]
runs.show(
    "shallowvit.lemma-4",
    shallow_lemmas.kept(runs),
    "lemma",
    how=f"Means of {runs.trials} trials.",
    caption="Lucky neurons of the start that are still lucky, and neurons in the cone of Definition 2.",
    alt="Half of the lucky neurons, those with the wrong output sign, leave; those with the right sign stay.",
)
kept, kept_sign = (100 * runs.traces("lemma", name).min(1) for name in ("kept", "kept_sign"))
runs.judge(
    "shallowvit.lemma-4.stay-lucky",
    interval(kept_sign),
    "lemma",
    note=f"Whatever the sign in the output layer: {kept.mean():.1f} %. Definition 2's cone of sigma + tau, which names no sign, "
    f"holds {100 * runs.traces('lemma', 'in_cone')[:, 0].mean():.1f} % of the neurons at the start.",
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
