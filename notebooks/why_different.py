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
# # Why your number differs
#
# You ran a method, and a paper prints a different accuracy. Which of the usual differences could explain it, and how many
# points are they worth? We ran VPT-Deep and AdaptFormer on photographs, changed one thing at a time, and
# ran both versions with the same seed.
#
# **Ask these first.**
#
# - How are pixels normalised?
# - Was the learning rate searched, and is it scaled by the batch size?
# - Which checkpoint is behind the network's name?
# - How was the head trained: its initialisation, learning rate and weight decay, and standardised features or not?
# - How many seeds, which training images, and which epoch does the paper report?
# - Was the printed number copied from another paper?
#
# The table says what each is worth, if we measured it, and what papers and released code do.
#
# The baseline is that of [](real_images.ipynb): a published ViT-Tiny with its checkpoint's normalisation (0.5), images
# resized to 112 × 112 pixels, 800 training images (400 for the textures), ten epochs of Adam with batches of 32,
# standardised features before the head, the last epoch, and a learning rate of {ref}`our search <our-search>`.

# %% tags=["parameters"]
profile = "quick"
device = "cpu"

# %% tags=["hide-input", "remove-output"]
from visbook.chapters import why_different
from visbook.pages.page import Page
from visbook.pages.parameters import Parameters, read_parameters

page = Page("why_different", read_parameters(Parameters, globals()))

# %% [markdown]
# ## What one change moves
#
# The first rows are what to check first. Ignore a change whose interval includes 0, or which moves accuracy less than
# another seed does (the grey band). Most rows are from two tasks, textures and Caltech-101, which are close to ImageNet,
# and the network is small: elsewhere a change may be worth more or less.
#
# Our own protocol is not the best one here: both methods are more accurate with weight decay on the head, and with the head
# at the method's own learning rate. Changes to the head are among the largest.

# %% name="moved" tags=["hide-input"]
why_different.show(page)

# %% [markdown]
# ## How to read the table
#
# - A number is the test accuracy with the change minus that without it, in points, at the learning rate chosen for the
#   baseline. A change that needs another learning rate therefore looks worse than it is.
# - Intervals are over seeds alone. Most comparisons of methods in this book are over test images too, so these are
#   narrower. If a change was run with one seed only, we use the spread of the baseline's seeds.
# - Where the search chose the recipe's own learning rate, the run without a search is the same run, and the difference is
#   exactly 0.
# - *Another seed* is the mean distance between two seeds, in either direction. It is over the five tasks of
#   [](real_images.ipynb), and so are the rows on learning rates and on the search, with seed 0. All other rows are from
#   textures or Caltech-101 or both, because their runs are the shortest.
# - A choice made on the test images cannot lower accuracy, so an interval around 0 would say nothing, and none is given.
#   Here it is the best of ten epochs, or of the search's learning rates.
# - *From sources* is not measured: it is what papers, released code or its users report.
# - A row marked *not run yet* gives the command that measures it. Add `--seeds 0 1 2`, `--data-dir` and `--weights`, as on
#   [](real_images.ipynb).
#
# [](../recipes.md) and [](../released-code.md) have all settings of each paper, [](../compare.md) the printed numbers.

# %% tags=["remove-output", "remove-input"]
page.close()
