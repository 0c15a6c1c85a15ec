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
# We test Proposition 2 of *A Theoretical Understanding of Shallow Vision Transformers* {cite}`shallowvit`, the two figures
# that show it, and the cases to which Appendix G extends the analysis. [](shallow_vit.ipynb) describes the model, the
# data and our choices.

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
# **What the paper says.** The summed attention on label-relevant tokens,
#
# $$\sum_{i \in S_*^n} \mathrm{softmax}\big(X^{n\top} W_K^{(t)\top} W_Q^{(t)} x_l^n\big)_i \to 1 - \eta^C ,$$
#
# increases during training for every query token $l$, at a rate of $O(1/t)$ (Eq. 15). $S_*^n$ are the label-relevant
# tokens of sample $n$.
#
# **Two gaps in the proof.** Step (59) drops a factor $\eta$ of (58). With it, the key's norm stays bounded by a constant
# times $1/\alpha_*$, and no power of $\eta$ arises. And tokens that are neither relevant nor confusing attend to both of
# these kinds alike (186), so for them the limit is not 1.
#
# **What we ran.** The setting of Figure 4. We show the sum separately for each kind of query token.

# %% name="shallowvit.proposition-2" tags=["hide-input"]
runs.show(
    "shallowvit.proposition-2",
    attention.by_query(),
    "map 5",
    how=f"Mean and range of {runs.trials} trials. The dotted line is the median step of the first zero test loss.",
    caption="Attention on label-relevant tokens (left) and on the others (right) during training.",
    alt="Attention on relevant tokens rises for all queries and stops rising once the loss is zero; on average "
    f"{attention.end('map 5').mean():.2f} is reached.",
)
runs.judge(
    "shallowvit.proposition-2.limit",
    interval(attention.step_powers()),
    "steps",
    "small steps",
    note="Attention left on other tokens, by η: "
    f"{', '.join(f'{e:g}: {left:.3f}' for e, left in attention.left().items())}. (At η = 1 any power of η is 1.) Training "
    "stops earlier, once the hinge loss is zero. At η = 0.5 the kind of query with the least attention on relevant tokens "
    f"reaches {attention.lowest().mean():.2f}.",
)
page.not_judged(
    "shallowvit.proposition-2.rate",
    "the limit that the proposition names is not reached. The distance to the curve's own last value says nothing, since any "
    f"curve that ends approaches it fast: here with the power {np.mean(attention.rates()):.1f} over the second half of the "
    f"steps, and even a straight line with {np.mean(attention.rates(line=True)):.1f}",
)
runs.judge("shallowvit.proposition-2.rises", interval(attention.rising()), "map 5")

# %% name="conditions" tags=["hide-input"]
runs.present(
    conditions(runs["map 5"], samples=200),
    "map 5",
    cell="conditions",
    how="From the settings and the initial weights; constants that the paper does not print are taken as 1.",
    caption="The conditions of Theorem 1 in these runs. Proposition 2 is part of its proof.",
)

# %% [markdown]
# **Dropping tokens by their attention.** The paper sees Proposition 2 as a reason to drop tokens that get little
# attention. We do so: each test sample keeps as many tokens as it has label-relevant ones.

# %% name="kept" tags=["hide-input"]
runs.present(
    shallow_attention.kept_table(runs),
    "kept",
    cell="kept",
    how=f"Means of {runs.trials} trials in the setting of Figure 4; half of the tokens are label-relevant.",
    caption="Test samples without the half of the tokens that gets the least attention.",
)
runs.judge(
    "shallowvit.proposition-2.magnitude-pruning",
    interval(runs.traces("kept", "kept_relevant")[:, -1] - shallow_attention.base.relevant),
    "kept",
    note="Attention finds them even at initialisation, since label-relevant tokens are the largest group of similar tokens. "
    "If random tokens are kept, the loss is {:.3f} [{:.3f}, {:.3f}] higher.".format(
        *interval(attention.random_over_kept())
    ),
)

# %% [markdown]
# (shallowvit.figure-4)=
# ## Figure 4: Attention weight over training
#
# **What the paper shows.** With 50 tokens, $N = 200$, $\sigma = 0.1$, $\delta = 0.2$, $\alpha_* = 0.5$ and
# $\alpha_\# = 0.05$, the attention on label-relevant tokens rises close to 1.
#
# **What we ran.** The same, in four readings of what Section 4.1 leaves open.

# %% name="shallowvit.figure-4" tags=["hide-input"]
names = [name for name, _, _ in shallow_attention.READ]
runs.show(
    "shallowvit.figure-4",
    attention.readings(),
    *names,
    how=f"Means of {runs.trials} trials, 200 stored samples, 400 steps.",
    caption="Attention on label-relevant tokens in four readings of Section 4.1.",
    alt="Attention on relevant tokens ends at "
    f"{attention.end('map 5').mean():.2f} in the judged reading, and at {attention.end('map shared').mean():.2f} with one a "
    "for all positions. With the printed initialisation it does not move.",
)
runs.judge("shallowvit.figure-4.mass-rises", interval(attention.rise("map 5")), "map 5")
UNSAID = "the paper prints neither step size, batch size nor iterations of the figure. In our runs it ends at"
ends = ", ".join(f"{attention.end(name).mean():.2f}" for name in names)
page.not_judged("shallowvit.figure-4.mass-near-one", f"{UNSAID} {ends}.")

# %% [markdown]
# **What to take from it.** Only with a random $a_{(l)}$ per position, as in Eq. 1, does training last long enough for the
# attention to come near the figure. With one $a$, the hinge loss is zero before the attention has moved far. With the
# printed initialisation, a token's score with its own pattern is $400^2$. The softmax then has a single winner, always of
# the query's own pattern; its gradient is zero, and the attention never moves. In none of the readings does the attention
# come closer to 1: once every margin is above 1, the hinge loss has no gradient.

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
    alt="For M = 10, 15 and 20 the attention on relevant tokens rises to "
    f"{', '.join(f'{attention.end(name).mean():.2f}' for name in many)}.",
)
runs.judge(
    "shallowvit.figure-7.mass-rises", min(interval(attention.rise(name)) for name in many), *many
)
ends = ", ".join(f"{attention.end(name).mean():.2f}" for name in many)
page.not_judged("shallowvit.figure-7.mass-near-one", f"{UNSAID} {ends}.")
runs.judge(
    "shallowvit.figure-7.patterns-below-dimension",
    max(COUNTS),
    note="There are M = 20 patterns in 20 dimensions, but the data model asks for M < m_a, m_b.",
)

# %% [markdown]
# ## Appendix G: four classes, sets of patterns, heads, a skip connection
#
# **What the paper says.** The analysis extends to several classes (G.1), sets of patterns (G.2), several heads (G.3) and a
# skip connection after the attention (G.4). The paper shows no experiment.
#
# **What we ran.** The setting of Figure 4 with $M = 7$ in 14 dimensions and one change at a time: four classes with four
# discriminative patterns; sets of three unit vectors in place of patterns; four heads; a skip connection. Each set has a
# plane of its own. Its vectors are at most $\Delta = 0.7$ apart, and two sets are $\kappa = \sqrt 2$ apart, so that
# $2\tau + \Delta < \kappa$.

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
    note=f"The lowest of the four: {min(done)} of {runs.trials} trials succeed (Clopper–Pearson interval).",
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
# Change `heads`, `skip=True` or `members`; `attention="frozen"` keeps the attention fixed. {ref}`What this call does
# <try-it>`.

# %% name="try-it"
from visbook.chapters.try_theory import try_vit

try_vit(runs, "extensions", heads=2)

# %% tags=["remove-output", "remove-input"]
page.close()
