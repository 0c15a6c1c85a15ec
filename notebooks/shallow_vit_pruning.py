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
# # Shallow ViT: fewer tokens, lower loss
#
# Does removing tokens help, as *A Theoretical Understanding of Shallow Vision Transformers* {cite}`shallowvit` says? We
# test it on the paper's own data (Figures 5 and 8) and on images (Figure 6). [](shallow_vit.ipynb) describes the model,
# the data and our choices.

# %% tags=["parameters"]
profile = "quick"
device = "cpu"
seeds = None  # list of trial seeds of the toy model; None: those of the profile
neurons = None  # m; None: that of the profile
larger = False  # run Figure 6 with five seeds, half an hour; else it is shown where a record has it
data_dir = None  # folder with the task folders cifar10 and plants, for Figure 6 as printed

# %% tags=["hide-input", "remove-output"]
from visbook.chapters import shallow_images, shallow_pruning
from visbook.chapters.shallow_runs import COUNTS, ImageParameters, opened
from visbook.pages.friendly import named
from visbook.studies import plan

p, page, runs = opened("shallow_vit_pruning", ImageParameters, globals())

# %% name="runs" tags=["hide-input", "remove-output"]
runs.compute(shallow_pruning.jobs())

# %% [markdown]
# (shallowvit.figure-5)=
# ## Figure 5: Token pruning and test loss
#
# **What the paper shows.** Removing label-irrelevant or noisy tokens lowers the test loss. The text does not give the
# settings.
#
# **What we ran.** $\alpha_* = 0.3$, $\alpha_\# = 0.1$ and 50 tokens. Training stops after 250 steps, too early for success
# without pruning. (After 100 steps, removing noisy tokens helped no more than removing any.) Left: we remove
# label-irrelevant tokens at random. Right: half of all tokens carry noise with a standard deviation of 0.5 per entry; we
# remove those or, as a control, any tokens.

# %% name="shallowvit.figure-5" tags=["hide-input"]
runs.show(
    "shallowvit.figure-5",
    shallow_pruning.five_patterns(runs),
    "prune 5",
    how=f"Mean and 95 % interval of {runs.trials} trials after 250 steps.",
    caption="Test loss against the share of tokens removed before training and testing.",
    alt="Without label-irrelevant tokens the test loss falls to zero. It also falls if noisy tokens are removed, and less "
    "if as many of any tokens are.",
)
shallow_pruning.judge_pruning(runs, "shallowvit.figure-5", [5])

# %% [markdown]
# **What to take from it.** Removing label-irrelevant tokens raises $\alpha_*$ and works as predicted. Removing noisy
# tokens helps too, but partly for another reason. Removing as many of *any* tokens also lowers the loss, because every
# position has its own $a_{(l)}$ and fewer positions are learned sooner.

# %% [markdown]
# (shallowvit.figure-8)=
# ## Figure 8: Token pruning for more patterns
#
# **What the paper shows.** The same for $M = 10, 15, 20$, with $d = m_a = m_b = 20$.

# %% name="shallowvit.figure-8" tags=["hide-input"]
runs.show(
    "shallowvit.figure-8",
    shallow_pruning.more_patterns(runs),
    *(f"prune {m}" for m in COUNTS[1:]),
    how=f"Mean and 95 % interval of {runs.trials} trials after 250 steps.",
    caption="Test loss against the share of tokens removed, for more patterns.",
    alt="For M = 10, 15 and 20 the test loss falls as label-irrelevant or noisy tokens are removed.",
)
shallow_pruning.judge_pruning(runs, "shallowvit.figure-8", COUNTS[1:])

# %% [markdown]
# (shallowvit.figure-6)=
# ## Figure 6: Token pruning on images
#
# **What the paper shows.** A ViT of five blocks classifies CIFAR-10 images pasted into ImageNet photographs of plants.
#
# - (a) Accuracy against $\alpha_*$, which grows from 0.66 to 1 as background tokens are removed, and against $N$.
# - (b) Samples needed for 77.5 %.
# - (c) Birds against airplanes with a spurious background: in training, 90 % of the birds and 10 % of the airplanes have a
#   plant behind them; in testing, half of each. There are a better and a worse initial model.
#
# **What we ran, at small scale.** Real digits of 8 × 8 pixels, enlarged to 16 × 16, pasted into pieces of photographs of
# 24 × 24 pixels. Of the 36 tokens, 16 belong to the digit. We train all weights of five blocks of this book's smallest
# ViT, with the same number of steps for every $N$. In (c) the model tells even from odd digits, and 90 % of the even
# training digits have a photograph behind them. The better initial model was trained on drawings of shapes; the worse one
# is random. Test digits and test photographs are new. We chose the learning rate (of three) and the number of steps on
# validation images.

# %% name="pasted" tags=["hide-input"]
runs.present(
    shallow_images.examples(),
    how="The data of the runs below, seed 0.",
    cell="pasted",
    caption="Digits pasted into photographs; below, with half and with all of the background tokens removed.",
    alt="Six small photographs, each with a digit on a black square. In the second row half of the photograph is gone, in "
    "the third all of it.",
)

# %% name="shallowvit.figure-6" tags=["hide-input"]
record, what = shallow_images.at_hand(p)
if record is None:
    why = "Its runs take about half an hour, and no record of them is kept."
    page.not_run(
        "shallowvit.figure-6", why=why, command=plan.command("shallowvit.figure-6", "quick")
    )
else:
    images = shallow_images.Images(record)
    runs.show(
        "shallowvit.figure-6",
        images.figure(),
        record,
        evidence="trend",
        how=f"Means and 95 % intervals of {images.seeds} seeds, {images.first.steps} steps per run.",
        caption=f"{what}, with more and more of the background tokens removed.",
        alt=f"Without background tokens accuracy is {sum(g.mean() for g in images.gains()) / len(images.counts):.1f} points "
        f"higher on average, and {images.need[-1].mean():.0f} instead of {images.need[0].mean():.0f} images are needed. With "
        "a spurious background accuracy rises too.",
    )
    images.judge(runs)

# %% name="printed" tags=["hide-input"]
if what == shallow_images.SMALL:
    page.not_run(
        "shallowvit.figure-6",
        why="The figure itself needs 50,000 CIFAR-10 images and ImageNet photographs of plants, in FOLDER as the task "
        "folders cifar10 and plants. The paper's initial models are not available. The first five blocks of "
        f"{named(shallow_images.PRINTED_IMAGES['backbone'])}, with ImageNet weights and with random ones, would replace them.",
    )

# %% [markdown]
# **What to take from it.** As long as some background is left, the model has to find out which tokens belong to the digit.
# A spurious background also misleads it; how much depends on the initial model.

# %% [markdown]
# ## Try it
#
# `drop` is the share of tokens removed; `drop_what="any"` removes tokens of any kind. {ref}`What this call does <try-it>`.

# %% name="try-it"
from visbook.chapters.try_theory import try_vit

try_vit(runs, "prune 5", drop=0.4)

# %% tags=["remove-output", "remove-input"]
page.close()
