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
# You ran a method, and a paper prints another accuracy. Which of the usual differences could explain it, and by how many
# points? We took one protocol on photographs, changed one thing at a time, and ran both forms with the same seed.
#
# The baseline is that of [](real_images.ipynb): a published ViT-Tiny with its checkpoint's normalisation (0.5), pictures
# squashed to 112 pixels, 800 training images (400 of the textures), ten epochs of Adam in batches of 32, standardised
# features in front of the head, the last epoch, and the best of three learning rates on validation.

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
# Read it from the top: the first rows are what to check first. A row whose interval includes 0, or that is below the row *another
# seed*, cannot explain a gap of several points.

# %% name="moved" tags=["hide-input"]
why_different.show(page)

# %% [markdown]
# ## How to read the table
#
# - A number is the accuracy with the change minus that without it, in points of test accuracy, at the learning rate that was
#   chosen for the baseline. A change that asks for another learning rate looks worse than it is.
# - The interval is for other seeds. Where a factor has run with one seed only, the spread of the baseline's three seeds
#   stands in for its own.
# - *Another seed* is the mean distance between two seeds, regardless of which is higher. The rows on learning rates and on the search
#   come from the searches of [](real_images.ipynb), with seed 0 and on five tasks; the other rows are on two at most, textures
#   and Caltech-101, because their runs are the shortest.
# - What is chosen on the test images can only gain; here it is at most the best of ten epochs, or of three rates.
# - *Told from sources* is not measured: we read it in papers, in released code, or in what its users report.
# - *Not run yet* has its command. Add `--seeds 0 1 2`, `--data-dir` and `--weights`, as on [](real_images.ipynb).
#
# The network is small, and the two tasks are near to ImageNet. On a ViT-B/16, or far from ImageNet, a factor may move a
# number by more or by less; which ones matter at all is what to take away.
#
# [](../recipes.md) and [](../released-code.md) have all settings of each paper, [](../compare.md) the printed numbers.

# %% tags=["remove-output", "remove-input"]
page.close()
