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
# # AP: on other networks and data
#
# Do the gain of an activation prompt {cite}`ap` and its preferred block hold beyond two networks? The paper repeats its
# comparison on CLIP and Swin, tries every block on more data sets, and compares AP with VPT's prompts block by block.
#
# In the quick profile, small networks of this project replace the paper's (`trend`). On the ViT and the ResNet, every
# method has the {ref}`learning rate <ap-rates>` that suited it best on `position`; AP has one per block. The others are a
# Swin of four stages and a ViT that was trained on captions, as CLIP is. There, every method, block and task has a
# learning rate of {ref}`our search <our-search>`. We count blocks from 0; on the Swin, through all stages.

# %% tags=["parameters"]
profile = "quick"
device = "cpu"
backbone = None  # in place of the profile's ViT; no other backbone is then used
weights = "pretrained"  # or a weights file; of several backbones a list, see the page on rerunning
tasks = None  # none but these
methods = None  # slugs; no variants but theirs
studies = None  # of data_manifests/studies.yaml, run here; []: none; None: all of this page, but in the quick profile
# only where a backbone, tasks, methods or search is given
seeds = None  # run and shown here
kept_seeds = None  # shown where a record has them
search = None  # search rates here; the paper profile has none for these studies
data_dir = None  # folder of the tasks that are not embedded
epochs = None
precision = None  # the recipe's; bf16 for the paper profile on a GPU
compile = False  # True on a GPU

# %% tags=["hide-input", "remove-output"]
from visbook.chapters import ap, ap_blocks, ap_others, ap_peft
from visbook.chapters.chapter import Chapter
from visprompt import papers

chapter = Chapter.opened("ap_others", globals(), ["ap-others", "ap-layers", "ap-layers-others"])
page = chapter.page
WEIGHTS = "The accuracies need the published weights and the data."
SAME = "what Figure 4 says of ViTs"
STAR = "mean and range over seeds; star: best on validation, unless the validation images were trained on."

# %% name="runs" tags=["hide-input"]
chapter.rows("ap-layers")
chapter.show_left_out()

# %% [markdown]
# (ap.table-5)=
# ## Table 5: AP against VP on CLIP and Swin
#
# In the paper's table, AP is above VP on all seven data sets with CLIP's ViT-B/32, and on all but EuroSAT with Swin-B.

# %% name="ap.table-5" tags=["hide-input"]
rows = chapter.rows("ap-others")
for _, mine in rows.groupby("backbone", sort=False):
    ap_peft.show_tuned(chapter, "ap.table-5", mine)
for word, part in {"clip": "ap-clip", "swin": "swin"}.items():
    mine = rows[rows.backbone == chapter.scope.backbones.get(part)]
    chapter.judge(
        f"ap.table-5.{word}-ap-over-vp",
        mine,
        "AP",
        "VP",
        on=chapter.of_study("ap-others"),
        parts=[part],
    )
printed = papers.published("ap.table-5")
cells = printed.drop(columns=["architecture", "method", "doubt"]).astype(float)
gains = cells[printed.method == "AP"].to_numpy() - cells[printed.method == "VP"].to_numpy()
page.judge(
    "ap.table-5.gain-range",
    ap.outside(gains, 1, 6),
    evidence="derived",
    note=f"From the printed cells. The gains range from {gains.min():.2f} to {gains.max():.2f} points.",
)
page.printed("ap.table-5", "Table 5 as printed")
chapter.end("ap.table-5", WEIGHTS)

# %% [markdown]
# (ap.figure-7)=
# ## Figure 7: Layer effect on CLIP and Swin (caption absent from the text)
#
# The text says that CLIP and Swin prefer shallow layers, as ViT-Large does. The cost of each block follows from the
# architecture; which block is best we try on small networks.

# %% name="ap.figure-7" tags=["hide-input"]
ap_others.show_costs(chapter, "ap.figure-7")
rows = chapter.rows("ap-layers-others")
ap_blocks.show_blocks(chapter, "ap.figure-7", rows, f"AP by block on CLIP and Swin: {STAR}")
for word, part in {"clip": "ap-clip", "swin": "swin"}.items():
    ap_blocks.judge_preference(
        chapter, f"ap.figure-7.{word}-prefers-shallow", part, "layers", "ap-layers-others"
    )
chapter.end("ap.figure-7", WEIGHTS)

# %% [markdown]
# (ap.figure-a1)=
# ## Figure A1: Layer preference on more data sets
#
# The paper repeats {ref}`Figure 4 <ap.figure-4>` on more data sets, which the text does not name. The best block also
# depends on the task: if a task needs what the network learned to ignore, the prompt must enter before that is lost.

# %% name="ap.figure-a1" tags=["hide-input"]
rows = chapter.planned("ap.figure-a1")
ap_blocks.show_blocks(chapter, "ap.figure-a1", rows, f"AP by block: {STAR}")
for claim, part in {"vit-prefers-shallow": "ap-vit", "cnn-prefers-deep": "ap-resnet"}.items():
    on = chapter.of_study("ap-layers")
    ap_blocks.judge_preference(chapter, f"ap.figure-a1.{claim}", part, on, judged=SAME)
chapter.end(
    "ap.figure-a1", "The text does not name the paper's data sets; more tasks give more panels."
)

# %% [markdown]
# (ap.figure-a2)=
# ## Figure A2: AP and VPT layer by layer
#
# The paper puts VPT's prompts into one block at a time. It finds them less accurate than AP, with the same preferred
# layers. VPT at one block is AP by concatenation, except that the outputs of its prompts are dropped after the block. The
# comparison favours AP: it has a learning rate per block, while VPT at one block takes the learning rate of VPT-Deep.

# %% name="ap.figure-a2" tags=["hide-input"]
rows = chapter.planned("ap.figure-a2")
ap_blocks.show_blocks(
    chapter, "ap.figure-a2", rows, f"AP and VPT at single blocks: {STAR}", ["ap", "vpt-deep"]
)
ap_others.judge_beside_vpt(chapter, "ap-vit", "layers")
chapter.end("ap.figure-a2", "ViT-Large/16 on OxfordPets needs the published weights and the data.")

# %% [markdown]
# ## Try it
#
# Change `block`, or the network: `"vit_micro_patch4_24.clip"` was trained on captions. {ref}`What this call does
# <try-it>`.

# %% name="try-it"
from visbook.chapters.try_it import try_it

try_it("ap", network="swin_micro_patch3_24", block=2)

# %% tags=["remove-output", "remove-input"]
page.close()
