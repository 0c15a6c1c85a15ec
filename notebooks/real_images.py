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
# # On real images
#
# The other pages fit small networks to small drawn pictures. This one takes a published ViT-Tiny and photographs
# ([](../data.md) has the data sets) through the same methods, and sets both legs side by side: what a paper prints
# above what, here and there. The photographs are 112 pixels wide and a run sees 400 or 800 of them ten times, so a
# number here compares with no published one, and a direction that holds on both legs is still no verdict on a paper.

# %% tags=["parameters"]
profile = "quick"
device = "cpu"
backbone = None
weights = "pretrained"
tasks = None
methods = None
studies = None
seeds = None
kept_seeds = None
search = None
data_dir = None
epochs = None
precision = None  # the recipe's; bf16 for the paper profile on a GPU
compile = False  # True on a GPU

# %% tags=["hide-input", "remove-output"]
from visbook.chapters import real, real_findings
from visbook.chapters import small_and_real as two_legs
from visbook.chapters.chapter import Chapter

chapter = Chapter.opened("real_images", globals(), ["benchmark", "ap-layers"], no_paper=True)
page = chapter.page

# %% [markdown]
# ## Two legs
#
# A thick line is the interval on the tasks that were run, for other seeds and other test images; whether the legs agree
# goes by it. A thin line, where three tasks or more allow one, is for other tasks too.

# %% name="two-legs" tags=["hide-input"]
found = two_legs.legs(chapter)
if found:
    two_legs.present(chapter, found, two_legs.figure(found), "two-legs")
    two_legs.present(chapter, found, two_legs.table(found), "two-legs")

# %% [markdown]
# ## Every method
#
# VPT-Deep is what the papers set out from, and it has runs on every task. A method is compared with it on the tasks
# that both have. The thick line is for other seeds and test images of these tasks; the thin one, for three tasks or
# more, is for other tasks too.

# %% name="methods" tags=["hide-input"]
real_findings.show_methods(chapter, "methods")

# %% [markdown]
# ## AP at every block
#
# The question of AP's Figures 2, 4 and A1: where should the one prompt be? Asked on textures, which ImageNet has taught
# already, and on traffic signs, which are far from it. Every block takes the best of three rates on validation.

# %% name="blocks" tags=["hide-input"]
real_findings.show_blocks(chapter, "blocks")

# %% [markdown]
# ## Sixteen bits
#
# On a GPU the runs would be done in bf16. The same seeds in both precisions say what that does to an accuracy.

# %% name="precisions" tags=["hide-input"]
real_findings.show_precisions(chapter)

# %% [markdown]
# ## All runs
#
# Every method has three rates, the same multiples of its own rate in the quick profile, and takes the one with the
# best validation accuracy for seed 0. The validation images are those of the lists; the test images choose nothing.

# %% name="real" tags=["hide-input"]
real.real_images(chapter)
chapter.show_left_out()

# %% tags=["remove-output", "remove-input"]
page.close()
