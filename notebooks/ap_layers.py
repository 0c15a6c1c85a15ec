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
# # AP: where to prompt, and in which form
#
# An activation prompt {cite}`ap` may enter any block of the network. The paper's central claim is that ResNets want
# it deep and ViTs want it shallow; it asks why, and whether several layers or another form than a sum do better.
#
# The methods and what can be settled in the quick profile are on [](ap.ipynb), with how the learning rates were chosen
# and what a run is. The paper's places are the third block of a ViT and the third-to-last of a ResNet (Section 6.1);
# blocks are counted from 0.

# %% tags=["parameters"]
profile = "quick"
device = "cpu"
backbone = None  # in place of the profile's ViT or ResNet; no other is then used
weights = "pretrained"  # or a weights file; of several backbones a list, see the page on rerunning
tasks = None  # none but these
methods = None  # slugs; no variants but theirs
studies = None  # of data_manifests/studies.yaml, run here; []: none; None: all of this page, but in the quick profile
# only where a backbone, tasks, methods or search is given
seeds = None  # run and shown here
kept_seeds = None  # shown where a record has them
search = None  # search rates here; no study of this page has any
data_dir = None  # folder of the tasks that are not embedded
epochs = None
precision = None  # the recipe's; bf16 for the paper profile on a GPU
compile = False  # True on a GPU

# %% tags=["hide-input", "remove-output"]
from dataclasses import replace

import numpy as np

import visprompt as vp
from visbook.chapters import ap, ap_blocks, ap_layers, ap_peft
from visbook.chapters.chapter import Chapter
from visbook.studies.case import Run
from visbook.timing import ap_tables

OWN = ["ap-layers", "ap-samples", "ap-forms", "ap-peft"]
chapter = Chapter.opened("ap_layers", globals(), OWN, ap.METHODS, ["ap-layers"])
page, p = chapter.page, chapter.p
task = chapter.of_study("ap-layers")[0]

# %% name="runs" tags=["hide-input"]
layers = chapter.planned("ap.figure-4")
chapter.show_left_out()

# %% [markdown]
# (ap.figure-2)=
# ## Figure 2: AP by layer on ResNet-101
#
# The paper puts AP on each layer of a ResNet-101 in turn, on OxfordPets by its caption and on CIFAR-10 by its text,
# and finds the best accuracy at layer 31, about 5 points above VP, with 100k parameters against VP's 150k.
#
# Parameters and operations by block follow from the architecture alone. An AP step goes forward through the
# whole network but backward only to its block, so a deep prompt trains almost as cheaply as a linear probe.

# %% name="ap.figure-2" tags=["hide-input"]
exact, rows = ap_blocks.block_costs("resnet101")
page.show(
    "ap.figure-2",
    ap_layers.cost_figure(rows),
    evidence="derived",
    records=[exact],
    how="Counted on the ResNet-101 architecture at 224 pixels, 37 classes.",
    caption="What AP costs by block. Left: entries of the prompt. Right: operations of a training step.",
    alt="Two step curves over the 33 blocks of ResNet-101: prompt entries fall in steps from 800 to 100 thousand, training operations fall steadily towards half of VP's.",
)
# Layer l acts on what layer l gives, with 0 the image: layer 31 is what block 30 gives, the input of block 31.
page.judge(
    "ap.figure-2.ap-parameters", rows.parameters[31] / 1e3, evidence="derived", records=[exact]
)
image, frame = 3 * 224**2 / 1e3, 3 * (224**2 - 128**2) / 1e3
page.judge(
    "ap.figure-2.vp-parameters",
    *(image, frame, image),
    evidence="derived",
    records=[exact],
    note=f"A whole image has {image:.1f}; the 0.12 million of Table 2, with its head, are a frame of {frame:.1f}. Each "
    "number is right by a reading that excludes the other, so this is one finding.",
)

# %% [markdown]
# The accuracy by block, on the ResNet of this run. The best block is chosen on the validation split; the star marks it
# on the test accuracy. Choosing the block as well as the rate gives AP a larger search than the other methods have.

# %% name="figure-2-accuracy" tags=["hide-input"]
rows = chapter.planned("ap.figure-2")
chapter.show(
    "ap.figure-2",
    ap_blocks.block_grid,
    rows,
    f"AP by block: mean and range over {ap.seeds_of(rows)}; star: best on validation.",
    "Accuracy of AP by block of a ResNet with dashed lines for linear probe, NORM-TUNE, VP and full fine-tuning.",
)
ap_layers.judge_best(chapter, rows, "ap-resnet", [task])

# %% [markdown]
# (ap.figure-4)=
# ## Figure 4: Layer preference by architecture
#
# The paper's central picture: on OxfordPets, AP on ResNet-50 and ResNet-101 is best in deep layers, on ViT-Base and
# ViT-Large in shallow ones. (It prints "ViT-Base/12"; the text elsewhere uses ViT-B/16.)
#
# Each block is shown at the learning rate that suits it best on validation. That matters: at one common rate the
# first block of the ViT and the first blocks of the ResNet look worse than they are. `position` asks for what the
# source task taught the networks to ignore, so a prompt in the last block probably comes too late on either network;
# a verdict on "deep" and "shallow" from one such task is a direction for this task, not for OxfordPets.
# [](real_images.ipynb) asks the same of a published ViT-Tiny, on photographs of two kinds.

# %% name="ap.figure-4" tags=["hide-input"]
chapter.show(
    "ap.figure-4",
    ap_blocks.block_grid,
    layers,
    f"AP by block, mean and range over {ap.seeds_of(layers)}; star: best on validation.",
    "Accuracy of AP by block for the ViT and the ResNet, with the other methods as dashed lines and a star on the best block.",
)
for word, part in {"vit-prefers-shallow": "ap-vit", "resnet-prefers-deep": "ap-resnet"}.items():
    ap_blocks.judge_preference(chapter, f"ap.figure-4.{word}", part, [task])
page.not_run(
    "ap.figure-4",
    why="ResNet-50, ResNet-101, ViT-Base and ViT-Large on OxfordPets need the published weights and the data.",
)

# %% [markdown]
# (ap.figure-5)=
# ## Figure 5: Feature dissection: CKA and attention distance
#
# Why should the two families differ? The paper compares features by linear CKA {cite}`cortes2012`: deep ResNet-101
# features resemble the *middle* of a ViT-Large. And it measures how far attention reaches {cite}`raghu2021`:
# the mean distance between a patch and what it attends to falls over the first half of the network and then rises
# a little. Prompts would like layers that see globally.

# %% name="ap.figure-5" tags=["hide-input"]
pair = [chapter.scope.backbones.get(f"ap-{word}") for word in ("vit", "resnet")]
both = all(pair) and not any(chapter.lab.resolve(Run(name, task, "ap")).lacking for name in pair)
if both:
    vit, resnet = pair
    on_task = replace(p, tasks=[task])
    found, count = ap_layers.Pair(chapter.lab, on_task, [vit], [resnet]).dissection()
    cka, distance = np.array(found.values["cka"]), np.array(found.values["distance"])
    page.show(
        "ap.figure-5",
        ap_layers.dissection_figure(*pair, cka, distance),
        evidence="trend",
        records=[found],
        how=f"Frozen {pair[0]} and {pair[1]} on {count} test images of {task}; one pair of backbones, no seeds.",
        caption="(A) Similarity of the two networks' features by block. (B) How far each attention head looks (grey dots).",
        alt="A heat map of CKA between ViT blocks and ResNet blocks, and a curve of mean attention distance over the ViT's blocks.",
    )

# %% name="figure-5-claims" tags=["hide-input"]
if both:
    turn, closest = round(0.75 * len(distance)), cka[:, -2:].mean(1).argmax() / (len(cka) - 1)
    read = {
        "cka-deep-resnet-middle-vit": ([closest], "The last stage: the mean over its two blocks."),
        "distance-falls": (ap_layers.slope(distance[:turn]), "Interval over the heads."),
        "distance-rises-at-end": (ap_layers.slope(distance[turn:]), "Interval over the heads."),
    }
    for claim, (values, note) in read.items():
        page.judge(f"ap.figure-5.{claim}", *values, evidence="trend", records=[found], note=note)
page.not_run(
    "ap.figure-5",
    why="ViT-Large/16 and ResNet-101 on OxfordPets need the published weights and the data.",
)

# %% [markdown]
# (ap.figure-6)=
# ## Figure 6: Sample complexity by prompted layer
#
# The paper reads {ref}`Theorem 1 <ap.theorem-1>`, which bounds the samples of a two-layer ViT from above, as saying
# that a deep-layer AP on a ViT needs more training samples than a shallow one. It plots accuracy against the
# training-set size for several layers of ViT-Large/16.

# %% name="ap.figure-6" tags=["hide-input"]
rows = chapter.planned("ap.figure-6")
chapter.show(
    "ap.figure-6",
    ap_layers.size_figure,
    rows,
    f"Accuracy against training images, mean and range over {ap.seeds_of(rows)}; block in brackets.",
    "Two rising curves of test accuracy over the number of training images, for a shallow and a deep block.",
)
few = ap_layers.fewest(rows)
chapter.judge(
    "ap.figure-6.shallow-needs-fewer",
    few,
    "shallow block",
    "deep block",
    note=f"With {', '.join(map(str, sorted(set(few.train_size))))} images.",
    on=chapter.of_study("ap-samples"),
)
page.not_run(
    "ap.figure-6",
    why="ViT-Large/16 on OxfordPets needs the published weights and the data.",
)

# %% [markdown]
# (ap.table-a3)=
# ## Table A3: Other prompt types inside AP
#
# Instead of adding, multiply ($z \odot \delta$) or concatenate ($[\delta, z]$, extra tokens from block $l$ on).
# The paper finds adding best. Each form is shown at its own learning rate, chosen as on [](ap.ipynb).

# %% name="ap.table-a3" tags=["hide-input"]
claims = {"add-over-product": ("AP", "AP-PRODUCT"), "add-over-concatenate": ("AP", "AP-CONCATE")}
ap_layers.show_forms(chapter, "ap.table-a3", claims)
large = vp.load_backbone("vit_large_patch16_224", device="meta")
added, product = (
    vp.count_parameters(vp.build_method("ap", large, 10, kind=kind)) for kind in ("add", "product")
)
page.judge(
    "ap.table-a3.product-same-parameters", product["total"] / added["total"] - 1, evidence="derived"
)
page.printed("ap.table-a3", "Table A3 as printed")
page.not_run(
    "ap.table-a3",
    why="ViT-Large/16 on 19 data sets needs the published weights and the data.",
)

# %% [markdown]
# (ap.table-a4)=
# ## Table A4: AP on several layers
#
# Prompts on the first three or five blocks at once: the paper sees hardly more accuracy for much more memory. One
# rate serves all prompts of a run, chosen as on [](ap.ipynb).

# %% name="ap.table-a4" tags=["hide-input"]
claims = {"three-blocks-gain-small": ("AP-3", "AP"), "five-blocks-gain-small": ("AP-5", "AP")}
ap_layers.show_forms(chapter, "ap.table-a4", claims)
ap_peft.show_parameters(page, "ap.table-a4")
note = "ViT-Large/16 with a 10-way head, as in Table 2."
for word, count in (("three", 3), ("five", 5)):
    ap_peft.judge_count(page, "ap.table-a4", f"ap-{count}", f"{word}-blocks-parameters", note)
held, timed = (
    measured(p.device, run=False) for measured in (ap_peft.peaks, ap_tables.variants)
)  # by [](ap_peft.ipynb)
for word, name in {"three": "AP-3", "five": "AP-5"}.items():
    ap_peft.judge_memory(page, f"ap.table-a4.{word}-blocks-memory", held, name, "AP")
    ap_peft.judge_time(page, f"ap.table-a4.{word}-blocks-time", timed, name, "AP")
page.printed("ap.table-a4", "Table A4 as printed")
page.not_run(
    "ap.table-a4",
    why="ViT-Large/16 on 19 data sets needs the published weights and the data.",
)

# %% [markdown]
# ## Try it
#
# Which block suits `count`, and which `position`? Change `block`, from 0 to 7; `block=(0, 1, 2)` takes three.
# {ref}`What this call does <try-it>`.

# %% name="try-it"
from visbook.chapters.try_it import try_it

try_it("ap", task="count", block=5)

# %% tags=["remove-output", "remove-input"]
page.close()
