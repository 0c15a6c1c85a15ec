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
# # Shallow ViT: attention turns sparse
#
# Proposition 2 of *A Theoretical Understanding of Shallow Vision Transformers* {cite}`shallowvit`, and the two figures
# that show it. [](shallow_vit.ipynb) has the model, its data and what had to be decided about both.

# %% tags=["parameters"]
profile = "quick"
device = "cpu"
seeds = None  # list of trial seeds; None: those of the profile
neurons = None  # m; None: that of the profile

# %% tags=["hide-input", "remove-output"]
from visprompt.chapters import shallow_attention
from visprompt.chapters.shallow_runs import COUNTS, TrialParameters, opened
from visprompt.studies.statistics import interval

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
# increases during training for every query token $l$, at a rate of $O(1/t)$ (Eq. 15).
#
# **What was run.** The setting of Figure 4, the sum taken apart by what the query token is.

# %% name="shallowvit.proposition-2" tags=["hide-input"]
runs.show(
    "shallowvit.proposition-2",
    attention.by_query(),
    "map 5",
    how=f"Mean and range of {len(p.seeds)} trials. The dotted line is the median step of the first zero test loss.",
    caption="Attention on label-relevant tokens over training.",
    alt="Attention on relevant tokens rises for all queries and stops rising once the loss is zero.",
)
runs.judge(
    "shallowvit.proposition-2.limit",
    interval(attention.lowest()),
    "map 5",
    note="After 400 steps. The hinge loss is exactly zero long before, and then no weight moves any more.",
)
runs.judge(
    "shallowvit.proposition-2.rate",
    interval(attention.rates()),
    "map 5",
    note="The decade of iterations up to a test loss below 0.001; after it nothing moves and the slope is 0.",
)
runs.judge("shallowvit.proposition-2.rises", interval(attention.rising()), "map 5")

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
    how=f"Means of {len(p.seeds)} trials, 200 stored samples, 400 steps.",
    caption="Attention on label-relevant tokens in four readings of Section 4.1.",
    alt="In the judged reading the attention on relevant tokens rises most; with one a it stops early; "
    "with the printed start it stays where it was.",
)
runs.judge("shallowvit.figure-4.mass-rises", interval(attention.rise("map 5")), "map 5")
runs.judge(
    "shallowvit.figure-4.mass-near-one",
    interval(attention.end("map 5")),
    "map 5",
    note="; ".join(f"{name.removeprefix('map ')}: {attention.end(name).mean():.2f}" for name in names[1:]),
)

# %% [markdown]
# **What to take from it.** Only a random $a_{(l)}$ at every position, as Eq. 1 prints it, lets training go on long
# enough for the attention to come near the figure. With one $a$ the hinge loss is zero before the attention has
# moved far. With the printed start the scores are in the thousands: the softmax already has one winner, always of
# the query's own pattern, its gradient is zero and the attention never moves. In none of the readings does it come
# closer to 1: once every margin is above 1, the hinge loss gives no gradient.

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
    how=f"Mean and range of {len(p.seeds)} trials; setting of Figure 4 with more patterns.",
    caption="Attention on label-relevant and on other tokens.",
    alt="For all three numbers of patterns the attention on relevant tokens rises and then stays below one.",
)
runs.judge("shallowvit.figure-7.mass-rises", min(interval(attention.rise(name)) for name in many), *many)
runs.judge("shallowvit.figure-7.mass-near-one", min(interval(attention.end(name)) for name in many), *many)
runs.judge(
    "shallowvit.figure-7.patterns-below-dimension",
    max(COUNTS),
    note="M = 20 patterns in 20 dimensions: the data model asks for M < m_a, m_b.",
)

# %%
page.close()
