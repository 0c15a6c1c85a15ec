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
# # Shallow ViT: how many samples it takes
#
# Theorem 1 and Proposition 1 of *A Theoretical Understanding of Shallow Vision Transformers* {cite}`shallowvit`, run on
# the paper's own data. [](shallow_vit.ipynb) has the model, its data, what had to be decided about both, and Figure 1.

# %% tags=["parameters"]
profile = "quick"
device = "cpu"
seeds = None  # list of trial seeds; None: those of the profile
neurons = None  # m; None: that of the profile
larger = False  # in the paper profile: as many trials and neurons as the paper has, hours

# %% tags=["hide-input", "remove-output"]
import numpy as np

from visbook.chapters import shallow_samples
from visbook.chapters.shallow_conditions import conditions
from visbook.chapters.shallow_runs import TrialParameters, bounds, opened, paired_log, text
from visbook.pages.plots import with_interval
from visbook.studies.statistics import interval
from visbook.theory import shallow_measures

p, page, runs = opened("shallow_vit_theorem", TrialParameters, globals())

# %% name="runs" tags=["hide-input", "remove-output"]
runs.compute(shallow_samples.jobs())
curves = shallow_samples.Curves(runs)
MET = "Where all conditions hold, with B = 64, four trials each, at alpha* = "
MET += f"{', '.join(map(str, shallow_samples.INSIDE))}."
fits, few = curves.fits, f"{runs.trials} trials a point; lines join the medians, dots are trials."

# %% [markdown]
# (shallowvit.theorem-1)=
# ## Theorem 1: Zero generalisation error of a shallow ViT
#
# **What the paper says.** If $\alpha_*$ is large against $\alpha_\#$ (Eq. 8), $B \ge \Omega\big((\alpha_* -
# e^{-(\delta+\tau)}(\tau+\sigma))^{-2}\big)$ and
#
# $$N \ge \Omega\big((\alpha_* - c'(1-\zeta) - c''(\sigma+\tau))^{-2}\big),\quad T = \Theta\Big(\frac{1}{(1 -
# \epsilon - (\sigma+\tau)M/\pi)\,\eta\,\alpha_*}\Big),$$
#
# then SGD ends with zero generalisation error. Eq. 8 is $\alpha_* \ge \alpha_\# \,/\, \big(\epsilon_S\,
# e^{-(\delta+\tau)} (1 - (\sigma+\tau))\big)$ with $\epsilon_S < 1/2$; the paper gives no values of $\epsilon$, $\zeta$,
# $c'$ and $c''$. Remark 2 reads off these bounds that $N$ scales with $\alpha_*^{-2}$ and $T$ with $\alpha_*^{-1}$.
#
# **What was run.** $\alpha_*$ over two octaves at $\alpha_\# = 0.02$, so that Eq. 8 holds everywhere, with batches of
# 8, which are below what Eq. 9 asks for; and $\alpha_*$ of 0.28 to 0.5 with batches of 64 and 1000 neurons, where all
# conditions hold. The claims are judged by these. Token noise $c_0$, initial error $\sigma$ and step size $\eta$ are
# varied at the setting of Figure 4, within their conditions.

# %% name="shallowvit.theorem-1" tags=["hide-input"]
runs.show(
    "shallowvit.theorem-1",
    curves.against_shares(["judged", "shared"], [(2, "judged"), (1, "judged")]),
    "alpha judged",
    "alpha shared",
    how=few,
    caption="Samples until the test loss is below 0.001, against the inverse label-relevant fraction.",
    alt="Samples needed rise with 1 over alpha* as a nearly straight line in logarithms, close to the power 1.",
)
runs.judge(
    "shallowvit.theorem-1.loss-vanishes",
    interval([trial["loss"] for cell in runs.cells("inside") for trial in cell]),
    "inside",
    note="The trials stop where the loss is first below this.",
)
runs.judge(
    "shallowvit.theorem-1.sample-exponent",
    bounds(fits["inside"]),
    "inside",
    note=f"{MET} Remark 2 reads the power 2 off the bound; it is not seen at a fixed batch, where samples and iterations "
    f"have one power. With the batches of 8 of the figure: {with_interval(fits['judged'])}; with one a for all positions: "
    f"{with_interval(fits['shared'])}.",
)

# %% name="conditions" tags=["hide-input"]
for name, what in (("inside", "the runs that are judged"), ("alpha judged", "the figure")):
    runs.present(
        conditions(runs[name]),
        name,
        cell="conditions",
        how="Read off the settings and the first weights; constants that the paper hides are taken as 1.",
        caption=f"The conditions of Theorem 1 in {what}. Proposition 1 takes them over.",
    )

# %% name="noise" tags=["hide-input"]
noises, errors = shallow_samples.NOISES, shallow_samples.ERRORS
runs.judge(
    "shallowvit.theorem-1.noise",
    paired_log(runs.steps("noise", -1), runs.steps("noise", 0), shallow_samples.CAP),
    "noise",
    note=f"Median samples at c_0 = {', '.join(map(str, noises))}: {text(runs.curve('noise', noises))}, paired by seed.",
)
runs.judge(
    "shallowvit.theorem-1.iterations-with-error",
    paired_log(runs.steps("error", -1), runs.steps("error", 0), shallow_samples.CAP),
    "error",
    note=f"Median samples at sigma = {', '.join(map(str, errors))}: {text(runs.curve('error', errors))}, paired by seed.",
)
by_step = {1 / e: runs.steps("step", i) for i, e in enumerate(shallow_samples.STEPS)}
runs.judge("shallowvit.theorem-1.step-exponent", bounds(shallow_measures.power(by_step)), "step")

# %% [markdown]
# **One training at a time.** Move the slider through $\alpha_*$: with fewer label-relevant tokens the loss stays
# longer where it started, and falls when the attention has begun to rise.

# %% name="training" tags=["hide-input"]
runs.present(
    {
        f"α* = {a:g}": shallow_samples.training(runs, i)
        for i, a in enumerate(shallow_samples.SHARES)
    },
    "alpha judged",
    cell="training",
    how="A line is a trial; dotted: the median of the steps needed.",
    caption="Test loss and attention on label-relevant tokens while the model of Theorem 1 trains.",
    alt="the test loss stays near one and then falls to zero while the attention on relevant tokens rises.",
)

# %% [markdown]
# **What $N$ means decides.** With $N$ *stored* samples, on which a trial trains for up to 1000 steps:

# %% name="stored" tags=["hide-input"]
runs.present(
    shallow_samples.stored_table(runs),
    "stored",
    cell="stored",
    how="Trained on N stored samples in shuffled epochs, up to 1000 steps.",
    caption="Success rate when the N samples are used again and again.",
)

# %% name="widths" tags=["hide-input"]
runs.present(
    shallow_samples.widths_table(runs),
    "widths",
    cell="widths",
    how="Setting of Figure 4, one pass.",
    caption="The number of hidden neurons hardly matters.",
)

# %% [markdown]
# **A batch that follows $\alpha_*$.** Eq. 9 asks for batches that grow like $\alpha_*^{-2}$; above, $B$ is fixed.

# %% name="batch" tags=["hide-input"]
runs.present(
    shallow_samples.batch_table(runs),
    "batch",
    cell="batch",
    how=f"Medians of {runs.trials} trials, B = 8 at alpha* = 0.4.",
    caption="Iterations and samples where the batch grows as Eq. 9 asks.",
)
runs.present(
    conditions(runs["batch"]),
    "batch",
    cell="batch",
    how="Read off the settings and the first weights; constants that the paper hides are taken as 1.",
    caption="The conditions of Theorem 1 in these runs.",
)

# %% [markdown]
# **What the theorem does not say.**
#
# - Fractions are equal in all samples and the noise is small, so samples of one label are near copies of each
#   other. A few dozen stored ones are enough in most trials. The law in $\alpha_*$ is a law of *how long*
#   to train; it becomes one of samples because every step takes $B$ new ones.
# - Its three conditions together ask for more than Eq. 10: one pass has $N = B\,T$, and with $B \sim
#   \alpha_*^{-2}$ and $T \sim \alpha_*^{-1}$ that is $\alpha_*^{-3}$. At a fixed $B$ it is $\alpha_*^{-1}$.
# - It is a sufficient condition, with constants that are not known. Nothing says that fewer samples must fail.

# %% [markdown]
# (shallowvit.figure-2)=
# ## Figure 2: Iterations against inverse label-relevant fraction
#
# **What the paper shows.** The number of iterations to converge against $\alpha_*^{-1}$, a straight line. The
# settings are not in the text.
#
# **What was run.** The trials of Theorem 1.

# %% name="shallowvit.figure-2" tags=["hide-input"]
runs.show(
    "shallowvit.figure-2",
    curves.iterations(["judged", "shared"]),
    "alpha judged",
    "alpha shared",
    how=f"Medians of {runs.trials} trials; dashed: least squares line through them.",
    caption="Iterations until the test loss is below 0.001.",
    alt="Iterations rise with 1 over alpha*, close to a straight line.",
)
runs.judge(
    "shallowvit.figure-2.iteration-exponent",
    bounds(fits["inside"]),
    "inside",
    note=f"{MET} With the batches of 8 of the figure: {with_interval(fits['judged'])}; with one a for all positions: "
    f"{with_interval(fits['shared'])}.",
)
cap = shallow_samples.MET["max_steps"]
slower = paired_log(runs.steps("inside", 0), runs.steps("inside", -1), cap)
runs.judge(
    "shallowvit.figure-2.slower-with-fewer",
    tuple(np.exp(value) - 1 for value in slower),
    "inside",
    note="Geometric mean over trials, paired by seed.",
)

# %% [markdown]
# (shallowvit.proposition-1)=
# ## Proposition 1: The same without training attention
#
# **What the paper says.** With $W_K$ and $W_Q$ fixed at their start, $N \ge \Omega\big((\alpha_*(\alpha_* -
# \sigma - \tau))^{-2}\big)$: the power 4 instead of 2.
#
# **What was run.** The trials of Theorem 1, with the same seeds, with $W_K$ and $W_Q$ fixed.

# %% name="shallowvit.proposition-1" tags=["hide-input"]
runs.show(
    "shallowvit.proposition-1",
    curves.against_shares([*shallow_samples.STYLES], [(2, "judged"), (4, "frozen")]),
    *(f"alpha {name}" for name in shallow_samples.STYLES),
    how=few,
    caption="Samples needed with attention trained and fixed.",
    alt="Without training the attention more samples are needed, the more so the fewer tokens are relevant.",
)
runs.judge(
    "shallowvit.proposition-1.sample-exponent",
    bounds(fits["inside frozen"]),
    "inside frozen",
    note=f"{MET} With the batches of 8 of the figure: {with_interval(fits['frozen'])}; with one a for all positions: "
    f"{with_interval(fits['shared frozen'])}.",
)
runs.judge(
    "shallowvit.proposition-1.exponent-gap",
    shallow_samples.gap(fits["inside frozen"], fits["inside"]),
    "inside",
    "inside frozen",
    note="The bounds differ by the power 2, and Remark 1 reads a factor alpha*^-2 off them, which is not seen at a fixed "
    "batch. The two intervals are joined as if independent. With the batches of 8 of the figure: "
    f"{fits['frozen']['slope'] - fits['judged']['slope']:.2f}; with one a for all positions: "
    f"{fits['shared frozen']['slope'] - fits['shared']['slope']:.2f}.",
)

# %% name="frozen" tags=["hide-input"]
runs.judge(
    "shallowvit.proposition-1.frozen-needs-more",
    paired_log(runs.steps("inside frozen", 0), runs.steps("inside", 0), cap),
    "inside",
    "inside frozen",
    note=f"At alpha* = {shallow_samples.INSIDE[0]}, where all conditions hold, paired by seed.",
)

# %% [markdown]
# **What to take from it.** Training the attention helps, and helps more where fewer tokens are relevant. The
# powers themselves stay well below the bounds' 2 and 4. That contradicts no bound: they are sufficient only, as the
# paper's footnote says. The factor $\alpha_*^{-2}$ that Remark 1 reads off them is not seen at a fixed batch.

# %% [markdown]
# (shallowvit.figure-3)=
# ## Figure 3: ViT against CNN
#
# **What the paper shows.** Only the caption is left, "Comparison of ViT and CNN".
#
# **What was run.** Each token sees itself alone: $F(X) = \frac1L \sum_l a_{(l)}^\top \mathrm{Relu}(W_O W_V x_l)$,
# a convolution of one token's width before the same perceptron. This CNN is this book's.

# %% name="shallowvit.figure-3" tags=["hide-input"]
runs.show(
    "shallowvit.figure-3",
    curves.with_cnn(),
    *(f"alpha {name}" for name in ("judged", "CNN", "shared", "shared CNN")),
    how=f"Medians of {runs.trials} trials; a median over the cap is drawn at the cap.",
    caption="Samples needed by the ViT and by a CNN on the same data.",
    alt="The CNN needs several times the samples of the ViT at every alpha*.",
)
runs.judge(
    "shallowvit.figure-3.vit-needs-fewer",
    interval(curves.log_over_vit()),
    "alpha judged",
    "alpha CNN",
    note=f"alpha* of {', '.join(map(str, shallow_samples.shares_of('CNN')))}; a censored CNN counts as its cap of 1200 "
    "steps, so the difference is at least this.",
)

# %% [markdown]
# ## Try it
#
# Change `noise` ($c_0$), `sigma`, `step`, `batch` or `neurons`. [](shallow_vit.ipynb) has the model in plain
# torch. {ref}`What this call does <try-it>`.

# %% name="try-it"
from visbook.chapters.try_theory import try_vit

try_vit(runs, "noise", noise=0.05)

# %% tags=["remove-output", "remove-input"]
page.close()
