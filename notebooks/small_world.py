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
# # The small world: what the embedded backbones and tasks can show
#
# Everything in the quick profile happens in a small world of 24 x 24 pixels: backbones that this project pretrained
# on drawn pictures ([](../backbones.md)), and eleven tasks, drawn or cut from real pictures ([](../data.md)), sorted
# into VTAB's groups and a fine-grained one. This page says how good the backbones are and what the tasks ask of
# them. A task on which the linear probe is as good as full fine-tuning cannot tell methods apart, and one that can
# be learned from scratch does not need a backbone.

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
from visbook.chapters import small_world
from visbook.chapters.chapter import Chapter

chapter = Chapter.opened(
    "small_world", globals(), ["tasks", "benchmark"], ["linear-probe"], no_paper=True
)
page = chapter.page

# %% [markdown]
# ## How the backbones were trained
#
# Those whose names end in `leaves`, the chapters' "MAE" and "MoCo-v3", saw 60,000 drawn pictures of things before things;
# all others saw the same 60,000 of one thing on a ground ([](../backbones.md) shows both). The masked autoencoders come
# first: supervised training and MoCo-v3 hardly begin on such small transformers from a random start, so all start from
# painted patches, the supervised ones to name 112 shapes, MoCo-v3 to tell pictures apart without a label, CLIP's to tell
# which caption is whose ("a small striped red pentagon, above and left, on a green ground", with words left out). The
# curves, from the logs beside the weights (`make pretrain NAME=…` trains a backbone again and writes its log anew):

# %% name="curves" tags=["hide-input"]
logs = small_world.logs()
page.present(
    small_world.losses_figure(logs),
    evidence="trend",
    cell="curves",
    how="From the logs of the pretraining runs, one run each.",
    caption="Training losses by stage. Supervised: cross-entropy with two extra heads. The first stages of the supervised "
    "micro ViT, of CLIP's and of the Swin painted plain pixels, whose loss is on another scale, and are left out. The loss "
    "of leaves is of other pictures, and compares with no other.",
    alt="Four panels of falling training losses: masked autoencoding, MoCo-v3, captions, and supervised training.",
)

# %% [markdown]
# How much of the source a backbone knows: the share of 4,000 new pictures that its own head names right, and that a
# linear probe on its frozen features names right (trained on 6,000 pictures). The self-supervised features know
# far less of the 112 shapes in a linear way than the supervised ones: an hour on one CPU thread is no substitute for
# ImageNet and days. What the chapters say of "MAE" and "MoCo-v3" is said of such backbones.
#
# The last column but one is what weights that saw no labels are worth as a start: the whole network is fine-tuned with 1,000
# labels of the pictures it learned from, and so is a random start. A network that is to speak for MAE or MoCo-v3 should be
# ten points above that start, and its linear probe at five times chance; both were fixed before any task was looked at.
# The batches of the fine-tuning were not: those of 128, tried first, are too few steps for either start, and left the
# masked autoencoder of `leaves` short of the ten points.
# After as many epochs as the other masked autoencoders of `leaves` the nano was short of the ten points too (its first log is
# in the repository's history), so it was trained again for three times as many. The two whose names end in `mae` alone are a
# start for the supervised ones of their size, and no chapter tunes them.

# %% name="backbones" tags=["hide-input"]
page.present(
    small_world.backbones_table(logs),
    evidence="trend",
    cell="backbones",
    how=f"From the logs beside the weights. {small_world.bars(logs)}",
    caption="The embedded backbones on 4,000 held-out pictures of their source; chance is 0.9 %.",
)

# %% [markdown]
# ## What the tasks ask
#
# Linear probe, full fine-tuning, and the same network trained from a random start. Linear probe and random start have
# the best of three learning rates on validation; so has full fine-tuning on the benchmark's tasks, and the recipe's
# rate on the others. The distance between the first two is what fine-tuning methods can win; the distance to the
# third is what pretraining gives.
#
# How hard the drawn tasks are, how MoCo-v3 was trained, and which tasks serve which experiment was decided after a look
# at first runs, their test accuracies among them. No method was preferred by that look, but the tasks are not blind.

# %% name="tasks" tags=["hide-input"]
frame = chapter.rows(
    "tasks", "benchmark", variants=["Linear probe", "Full fine-tuning", "From scratch"]
)
frame = frame.drop_duplicates(["variant", "task", "seed"])
caption = "Test accuracy in %, mean and standard deviation over the seeds that there are."
chapter.present(small_world.tasks_table, frame, caption, cell="tasks")
caption = "The same, to compare: what pretraining gives, and what fine-tuning can add."
alt = "For each task three marks on a line from 0 to 100 percent: from scratch, linear probe and full fine-tuning, "
alt += "beside chance."
chapter.present(small_world.tasks_figure, frame, caption, alt, cell="tasks")

# %% [markdown]
# ## Between the methods
#
# How far apart the methods of the benchmark are on each task, beside the spread of the seeds. Where the range over
# methods is not much wider than that of the seeds, the task says little about methods.

# %% name="separation" tags=["hide-input"]
bench = chapter.rows("benchmark")
tuned = bench[bench.variant != "Linear probe"]
caption = "Methods of the benchmark without the linear probe: mean test accuracy, in %."
chapter.present(small_world.separation_table, tuned, caption, cell="separation")
chapter.show_left_out()

# %% [markdown]
# ## Try it
#
# Change the task: `"letters"`, `"texture"` and `"digits"` are others. `images=None` takes all 800 images.
# {ref}`What this call does <try-it>`.

# %% name="try-it"
from visbook.chapters.try_it import try_it

try_it("linear-probe", task="count")

# %% tags=["remove-output", "remove-input"]
page.close()
