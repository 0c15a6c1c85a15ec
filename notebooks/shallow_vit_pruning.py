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
# What *A Theoretical Understanding of Shallow Vision Transformers* {cite}`shallowvit` says of removing tokens, on its
# own data (Figures 5 and 8) and on images (Figure 6). [](shallow_vit.ipynb) has the model, its data and what had to be
# decided about both.

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
from visbook.studies import plan

p, page, runs = opened("shallow_vit_pruning", ImageParameters, globals())

# %% name="runs" tags=["hide-input", "remove-output"]
runs.compute(shallow_pruning.jobs())

# %% [markdown]
# (shallowvit.figure-5)=
# ## Figure 5: Token pruning and test loss
#
# **What the paper shows.** Removing label-irrelevant or noisy tokens lowers the test loss. The settings are not in
# the text.
#
# **What was run.** $\alpha_* = 0.3$, $\alpha_\# = 0.1$, 50 tokens, and training that stops after 250 steps, too
# early for success without pruning (at 100 steps dropping noisy tokens did as much as dropping any). Left,
# label-irrelevant tokens are dropped at random. Right, half of all tokens carry noise of standard deviation 0.5 per
# entry; those are dropped, or, as a control, any tokens.

# %% name="shallowvit.figure-5" tags=["hide-input"]
runs.show(
    "shallowvit.figure-5",
    shallow_pruning.five_patterns(runs),
    "prune 5",
    how=f"Mean and 95 % interval of {runs.trials} trials after 250 steps.",
    caption="Test loss against the share of tokens removed before training and testing.",
    alt="The test loss falls as label-irrelevant or noisy tokens are removed, and less when any tokens are.",
)
shallow_pruning.judge_pruning(runs, "shallowvit.figure-5", [5])

# %% [markdown]
# **What to take from it.** Dropping label-irrelevant tokens raises $\alpha_*$ and works as predicted. Dropping noisy
# tokens helps too, but part of that has nothing to do with noise: dropping as many of *any* tokens also lowers the
# loss, because every position has its own $a_{(l)}$ and fewer positions are learned sooner.

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
    alt="For all three numbers of patterns the test loss falls as irrelevant or noisy tokens are removed.",
)
shallow_pruning.judge_pruning(runs, "shallowvit.figure-8", COUNTS[1:])

# %% [markdown]
# (shallowvit.figure-6)=
# ## Figure 6: Token pruning on images
#
# **What the paper shows.** A ViT of five blocks on CIFAR-10 images pasted into plants of ImageNet: (a) accuracy
# against $\alpha_*$, which grows from 0.66 to 1 as background tokens are removed, and against $N$; (b) samples needed
# for 77.5 %; (c) birds against airplanes, where 90 % of the birds and 10 % of the airplanes have a plant behind them
# in training and half of each in testing, from a better and a worse initial model.
#
# **What was run, at small scale.** Real digits (8 x 8 pixels, drawn at 16 x 16) pasted on pieces of photographs of 24
# x 24 pixels, 36 tokens of which 16 are the digit's; five blocks of this book's smallest ViT, all weights trained, as
# many steps for every $N$. (c) tells even from odd digits, and the photograph speaks for even in 90 % of the training
# images. Better start: weights trained on drawn shapes; worse: random. Test digits and test photographs (other
# columns) are new. The learning rate, of three, and the number of steps were chosen on validation images.

# %% name="pasted" tags=["hide-input"]
runs.present(
    shallow_images.examples(),
    how="The data of the runs below, seed 0.",
    cell="pasted",
    caption="Digits pasted on photographs; below, with half and with all of the background tokens removed.",
    alt="Six small photographs with a digit on a black square each; in the lower rows the photograph disappears.",
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
        how=f"Means and 95 % intervals of {images.seeds} seeds, {images.first.steps} steps a run.",
        caption=f"{what}, with more and more of the background tokens removed.",
        alt="Accuracy rises as background tokens are removed and with more training images; fewer images are needed; "
        "with a spurious background the accuracy rises too.",
    )
    images.judge(runs)

# %% name="printed" tags=["hide-input"]
if what == shallow_images.SMALL:
    page.not_run(
        "shallowvit.figure-6",
        why="The figure itself, on 50,000 images of CIFAR-10 pasted on plants of ImageNet: FOLDER must hold them as "
        "the task folders cifar10 and plants. The paper's initial models are not available; the weights of "
        f"{shallow_images.PRINTED_IMAGES['backbone']} for ImageNet, its first five blocks, and random ones would take "
        "their place.",
    )

# %% [markdown]
# **What to take from it.** As long as some of the background is left, the model has to find out which tokens are the
# digit's; a spurious background misleads it besides, and how far depends on the start.

# %% [markdown]
# ## Try it
#
# `drop` is the share of tokens removed; `drop_what="any"` removes any of them. {ref}`What this call does
# <try-it>`.

# %% name="try-it"
from visbook.chapters.try_theory import try_vit

try_vit(runs, "prune 5", drop=0.4)

# %% tags=["remove-output", "remove-input"]
page.close()
