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
# # Shallow ViT: attention turns sparse, and the extensions
#
# Proposition 2 of *A Theoretical Understanding of Shallow Vision Transformers* {cite}`shallowvit`, the two figures
# that show it, and the cases to which Appendix G extends the analysis. [](shallow_vit.ipynb) has the model, its data
# and what had to be decided about both.

# %% tags=["parameters"]
profile = "quick"
device = "cpu"
seeds = None  # list of trial seeds; None: those of the profile
neurons = None  # m; None: that of the profile
larger = False  # in the paper profile: as many trials and neurons as the paper has, hours

# %% tags=["hide-input", "remove-output"]
import numpy as np

from visbook.chapters import shallow_attention
from visbook.chapters.shallow_conditions import conditions
from visbook.chapters.shallow_runs import COUNTS, TrialParameters, opened, share_of
from visbook.studies.statistics import interval

p, page, runs = opened("shallow_vit_attention", TrialParameters, globals())

# %% name="runs" tags=["hide-input", "remove-output"]
runs.compute(shallow_attention.jobs())
attention = shallow_attention.Attention(runs)

# %% [markdown]
# (shallowvit.proposition-2)=
# ## Proposition 2: Attention becomes sparse
#
# **What the paper says.** The attention on label-relevant tokens, summed,
#
# $$\sum_{i \in S_*^n} \mathrm{softmax}\big(X^{n\top} W_K^{(t)\top} W_Q^{(t)} x_l^n\big)_i \to 1 - \eta^C ,$$
#
# where $S_*^n$ are the label-relevant tokens of sample $n$, increases during training for every query token $l$, at a
# rate of $O(1/t)$ (Eq. 15).
#
# **What the proof leaves open.** Two lines do not follow from those before them. Step (59) drops a factor $\eta$ of (58);
# with it the key's norm stays bounded by a constant of $1/\alpha_*$, and no power of $\eta$ arises. And the attention of
# tokens that are neither relevant nor confusing goes to both of these kinds alike (186), so that its limit is not 1.
#
# **What was run.** The setting of Figure 4, the sum taken apart by what the query token is.

# %% name="shallowvit.proposition-2" tags=["hide-input"]
runs.show(
    "shallowvit.proposition-2",
    attention.by_query(),
    "map 5",
    how=f"Mean and range of {runs.trials} trials. The dotted line is the median step of the first zero test loss.",
    caption="Attention on label-relevant tokens over training.",
    alt="Attention on relevant tokens rises for all queries and stops rising once the loss is zero.",
)
runs.judge(
    "shallowvit.proposition-2.limit",
    interval(attention.step_powers()),
    "steps",
    "small steps",
    note="What is left on other tokens at eta = "
    f"{', '.join(f'{e:g}: {left:.3f}' for e, left in attention.left().items())}; at 1 any power of it is 1. The hinge loss is "
    f"zero before, and then no weight moves. The smallest mean over any kind of query at 0.5: {attention.lowest().mean():.2f}.",
)
page.not_judged(
    "shallowvit.proposition-2.rate",
    "the distance is to the curve's own last value, and to that any curve that ends falls fast: here with the power "
    f"{np.mean(attention.rates()):.1f} over the second half of the steps up to success, for a straight line with "
    f"{np.mean(attention.rates(line=True)):.1f}. "
    "The value that the proposition names, which would tell, is not reached",
)
runs.judge("shallowvit.proposition-2.rises", interval(attention.rising()), "map 5")

# %% name="conditions" tags=["hide-input"]
runs.present(
    conditions(runs["map 5"], samples=200),
    "map 5",
    cell="conditions",
    how="Read off the settings and the first weights; constants that the paper hides are taken as 1.",
    caption="The conditions of Theorem 1, in whose proof Proposition 2 stands, in these runs.",
)

# %% [markdown]
# **Dropping tokens by their attention.** The paper takes Proposition 2 as a reason for methods that drop the tokens on
# which little attention falls. Here each test sample keeps as many tokens as are label-relevant.

# %% name="kept" tags=["hide-input"]
runs.present(
    shallow_attention.kept_table(runs),
    "kept",
    cell="kept",
    how=f"Means of {runs.trials} trials in the setting of Figure 4; half of the tokens are label-relevant.",
    caption="Half of the tokens dropped from test samples by the attention that they get.",
)
runs.judge(
    "shallowvit.proposition-2.magnitude-pruning",
    interval(runs.traces("kept", "kept_relevant")[:, -1] - shallow_attention.base.relevant),
    "kept",
    note="At the start attention finds them as well, since label-relevant tokens are the largest group of like ones. The "
    "loss with random ones is {:.3f} [{:.3f}, {:.3f}] above that with those.".format(
        *interval(attention.random_over_kept())
    ),
)

# %% [markdown]
# (shallowvit.figure-4)=
# ## Figure 4: Attention weight over training
#
# **What the paper shows.** With 50 tokens, $N = 200$, $\sigma = 0.1$, $\delta = 0.2$, $\alpha_* = 0.5$ and
# $\alpha_\# = 0.05$, the attention on label-relevant tokens increases to be close to 1.
#
# **What was run.** That, in four readings.

# %% name="shallowvit.figure-4" tags=["hide-input"]
names = [name for name, _, _ in shallow_attention.READ]
runs.show(
    "shallowvit.figure-4",
    attention.readings(),
    *names,
    how=f"Means of {runs.trials} trials, 200 stored samples, 400 steps.",
    caption="Attention on label-relevant tokens in four readings of Section 4.1.",
    alt="In the judged reading the attention on relevant tokens rises most; with one a it stops early; "
    "with the printed start it stays where it was.",
)
runs.judge("shallowvit.figure-4.mass-rises", interval(attention.rise("map 5")), "map 5")
UNSAID = "neither step size, batch nor iterations of the figure are printed. In the readings here it ends at"
ends = ", ".join(f"{attention.end(name).mean():.2f}" for name in names)
page.not_judged("shallowvit.figure-4.mass-near-one", f"{UNSAID} {ends}.")

# %% [markdown]
# **What to take from it.** Only a random $a_{(l)}$ at every position, as Eq. 1 prints it, lets training go on long
# enough for the attention to come near the figure. With one $a$ the hinge loss is zero before the attention has moved
# far. With the printed start a token's score with its own pattern is $400^2$: the softmax already has one winner,
# always of the query's own pattern, its gradient is zero and the attention never moves. In none of the readings does
# it come closer to 1: once every margin is above 1, the hinge loss gives no gradient.

# %% [markdown]
# (shallowvit.figure-7)=
# ## Figure 7: Attention concentration for more patterns
#
# **What the paper shows.** The same for $M = 10, 15, 20$, with $d = m_a = m_b = 20$.

# %% name="shallowvit.figure-7" tags=["hide-input"]
many = [f"map {m}" for m in COUNTS[1:]]
runs.show(
    "shallowvit.figure-7",
    attention.more_patterns(),
    *many,
    how=f"Mean and range of {runs.trials} trials; setting of Figure 4 with more patterns.",
    caption="Attention on label-relevant and on other tokens.",
    alt="For all three numbers of patterns the attention on relevant tokens rises and then stays below one.",
)
runs.judge(
    "shallowvit.figure-7.mass-rises", min(interval(attention.rise(name)) for name in many), *many
)
ends = ", ".join(f"{attention.end(name).mean():.2f}" for name in many)
page.not_judged("shallowvit.figure-7.mass-near-one", f"{UNSAID} {ends}.")
runs.judge(
    "shallowvit.figure-7.patterns-below-dimension",
    max(COUNTS),
    note="M = 20 patterns in 20 dimensions: the data model asks for M < m_a, m_b.",
)

# %% [markdown]
# ## Appendix G: four classes, sets of patterns, heads, a skip connection
#
# **What the paper says.** The analysis carries over to several classes (G.1), sets of patterns (G.2), several
# heads (G.3) and a skip connection after the attention (G.4). It shows no experiment.
#
# **What was run.** The setting of Figure 4 with $M = 7$ in 14 dimensions: four classes with four discriminative
# patterns; sets of three unit vectors, each set in a plane of its own, at most $\Delta = 0.7$ apart within a set and
# $\kappa = \sqrt 2$ between two, so that $2\tau + \Delta < \kappa$; four heads; a skip connection.

# %% name="extensions" tags=["hide-input"]
runs.present(
    shallow_attention.extensions_table(runs),
    "extensions",
    cell="extensions",
    how="Setting of Figure 4 with seven patterns, one pass.",
    caption="The extensions of Appendix G.",
)
done, rises = shallow_attention.extended(runs)
names = list(shallow_attention.EXTENSIONS)[1:]
runs.judge(
    "shallowvit.proposition-2.extensions-learn",
    share_of(min(done), runs.trials),
    "extensions",
    note=f"The smallest of the four: {min(done)} of {runs.trials} trials, with the interval of Clopper and Pearson.",
)
runs.judge(
    "shallowvit.proposition-2.extensions-attention",
    min(interval(values) for values in rises),
    "extensions",
    note="; ".join(f"{name}: {values.mean():.2f}" for name, values in zip(names, rises)),
)

# %% [markdown]
# ## Try it
#
# Change `heads`, `skip=True` or `members`; `attention="frozen"` trains without it. {ref}`What this call does
# <try-it>`.

# %% name="try-it"
from visbook.chapters.try_theory import try_vit

try_vit(runs, "extensions", heads=2)

# %% tags=["remove-output", "remove-input"]
page.close()
