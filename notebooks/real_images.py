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
# The other pages fit small networks to {term}`embedded tasks`. Here the same methods run on photographs ([](../data.md)
# lists the data sets) with a published ViT-Tiny. For each comparison that a paper makes, the results on photographs and
# on embedded tasks are shown side by side.
#
# The photographs are 112 pixels wide, and a run trains for ten epochs on 400 or 800 of them. The numbers are therefore
# not comparable with published ones. A gap that appears on both photographs and embedded tasks still neither proves nor
# refutes a paper.

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

chapter = Chapter.opened("real_images", globals(), ["benchmark", "ap-full"], no_paper=True)
page = chapter.page

# %% [markdown]
# ## Photographs beside embedded tasks
#
# Each row is a comparison that a paper makes. The marks show the gap that we measured. Thick line: 95 % interval over
# seeds and test images, on these tasks. If all of this line has the paper's sign, the gap is *seen here*; if all of it has
# the opposite sign, the gap is *not seen here*; if it includes 0, the gap is *open*. Thin line: over tasks as
# well, where there are at least five. An arrow marks a line that goes on beyond the axis.

# %% name="both" tags=["hide-input"]
found = two_legs.legs(chapter)
if found:
    two_legs.present(chapter, found, two_legs.figure(found), "both")
    two_legs.present(chapter, found, two_legs.table(found), "both")

# %% [markdown]
# ## Every method
#
# VPT-Deep is the papers' starting point, so every method is compared with it, on the tasks that both have. Lines are
# as above; hollow marks are single tasks.

# %% name="methods" tags=["hide-input"]
real_findings.show_methods(chapter, "methods")

# %% [markdown]
# ## AP at every block
#
# AP's Figures 2, 4 and A1 ask which block should get the prompt. We ask it on textures, which are close to ImageNet,
# and on traffic signs, which are far from it. Every block has its own search for the learning rate.

# %% name="blocks" tags=["hide-input"]
real_findings.show_blocks(chapter, "blocks")

# %% [markdown]
# ## bf16 instead of float32
#
# On a GPU these runs would use bf16. We ran some seeds in both precisions to see how much that changes accuracy, and
# compare these alone; the float32 means further down are over all seeds.

# %% name="precisions" tags=["hide-input"]
real_findings.show_precisions(chapter)

# %% [markdown]
# ## All runs
#
# For every method we searched the learning rate on validation images with seed 0, beginning with 0.2, 1 and 5 times the
# rate of recipe `real` ({ref}`our search <our-search>`). Nothing is chosen on test images.
#
# Further rates changed the choice in 10 of 90 searches. Against the best of the first three, mean test accuracy rose by
# 5.3 points for VP and by 1.6 for VPT-Shallow, and moved by less than 0.2 for every other method. One search reached its
# limit of three further rates with the smallest still best: VP's on textures. There VP is about as accurate as the linear
# probe (74.9 and 75.1 %).

# %% name="real" tags=["hide-input"]
real.real_images(chapter)
chapter.show_left_out()

# %% tags=["remove-output", "remove-input"]
page.close()
