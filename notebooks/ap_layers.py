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
# An activation prompt {cite}`ap` can enter at any block of the network. The paper's central claim is that ResNets need it
# deep and ViTs need it shallow. It asks why, and whether prompts at several layers, or prompts that are not added, work
# better.
#
# [](ap.ipynb) describes the methods, the runs and {ref}`how the learning rates were chosen <ap-rates>`. The paper puts AP
# at the third block of a ViT and at the third-to-last block of a ResNet (Section 6.1). We count blocks from 0.

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
# The paper puts AP on each layer of a ResNet-101 in turn. (The caption names OxfordPets, the text CIFAR-10.) It finds the
# best accuracy at layer 31: about 5 points above VP, with 100k parameters where VP has 150k.
#
# Parameters and operations follow from the architecture alone. A training step of AP goes forward through the whole
# network but backward only to the prompted block, so a deep prompt trains almost as cheaply as a linear probe.

# %% name="ap.figure-2" tags=["hide-input"]
exact, rows = ap_blocks.block_costs("resnet101")
page.show(
    "ap.figure-2",
    ap_layers.cost_figure(rows),
    evidence="derived",
    records=[exact],
    how="Counted on the ResNet-101 architecture at 224 pixels, 37 classes.",
    caption="Cost of AP by block. Left: entries of the prompt. Right: operations of a training step.",
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
    note=f"A whole image has {image:.1f} thousand entries. The 0.12 million of Table 2, head included, fit a frame of "
    f"{frame:.1f} thousand. The two printed numbers exclude each other, so this is one finding.",
)

# %% [markdown]
# Accuracy on our ResNet, with AP at the block with the best validation accuracy; {ref}`Figure 4 <ap.figure-4>` shows every
# block. Choosing the block as well as the learning rate gives AP a larger search than the other methods have.

# %% name="figure-2-accuracy" tags=["hide-input"]
rows = chapter.planned("ap.figure-2")
chapter.show(
    "ap.figure-2",
    ap_layers.best_table,
    rows,
    f"AP on {task} at its best block, beside other methods: mean ± standard deviation over {ap.seeds_of(rows)}.",
)
ap_layers.judge_best(chapter, rows, "ap-resnet", [task])

# %% [markdown]
# (ap.figure-4)=
# ## Figure 4: Layer preference by architecture
#
# This is the paper's central figure. On OxfordPets, AP is best in deep layers of ResNet-50 and ResNet-101 and in shallow
# layers of ViT-Base and ViT-Large. (It prints "ViT-Base/12"; elsewhere the text has ViT-B/16.)
#
# Each block has its own learning rate, the best on validation. With a common learning rate, the first blocks look worse
# than they are. Our task, `position`, needs what the networks learned to ignore in pre-training, so a prompt in the last
# block probably comes too late on either network. The claim about ResNets is judged by this one task. The claim about ViTs
# is judged by a published ViT-Tiny on photographs of two kinds ([](real_images.ipynb) has a figure of its blocks).

# %% name="ap.figure-4" tags=["hide-input"]
chapter.show(
    "ap.figure-4",
    ap_blocks.block_grid,
    layers,
    f"AP by block, mean and range over {ap.seeds_of(layers)}; star: best on validation.",
    ap_blocks.alt(layers),
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
# Why should the two families differ? The paper compares features by linear CKA {cite}`cortes2012` and finds that deep
# ResNet-101 features resemble the *middle* of a ViT-Large. It also measures how far attention reaches {cite}`raghu2021`:
# the mean distance between a patch and what it attends to falls over the first half of the network, then rises slightly.
# The paper concludes that prompts work best in layers that see globally.

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
        caption="(A) Similarity of the two networks' features, block by block. (B) Attention distance; grey dots are heads, the line is their mean.",
        alt=f"CKA of the ViT's {len(cka)} blocks with those of the ResNet, {cka.min():.2f} to {cka.max():.2f}. Mean attention "
        f"distance over the ViT's blocks: {distance.mean(1)[0]:.1f} patches in the first, {distance.mean(1)[-1]:.1f} in the last.",
    )

# %% name="figure-5-claims" tags=["hide-input"]
if both:
    turn, closest = round(0.75 * len(distance)), cka[:, -2:].mean(1).argmax() / (len(cka) - 1)
    read = {
        "cka-deep-resnet-middle-vit": (
            [closest],
            "The last stage is the mean over its two blocks.",
        ),
        "distance-falls": (ap_layers.slope(distance[:turn]), "Interval over heads."),
        "distance-rises-at-end": (ap_layers.slope(distance[turn:]), "Interval over heads."),
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
# {ref}`Theorem 1 <ap.theorem-1>` is an upper bound on the samples that a two-layer ViT needs. The paper infers from it
# that AP in a deep layer of a ViT needs more training samples than in a shallow one, and plots accuracy against the number
# of training images for several layers of ViT-Large/16. We do the same at one shallow and one deep block of our ViT.

# %% name="ap.figure-6" tags=["hide-input"]
rows = chapter.planned("ap.figure-6")
chapter.show(
    "ap.figure-6",
    ap_layers.size_figure,
    rows,
    f"Accuracy of AP against training images, mean and range over {ap.seeds_of(rows)}; block in brackets.",
    ap_layers.size_alt(rows),
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
# Instead of adding, AP can multiply ($z \odot \delta$) or concatenate ($[\delta, z]$, extra tokens from block $l$ on).
# The paper finds adding best. Each form has its own {ref}`learning rate <ap-rates>`.

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
# With prompts on the first three or five blocks at once, the paper sees hardly more accuracy for much more memory. All
# prompts of a run share one {ref}`learning rate <ap-rates>`.

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
# Which block suits `count`, and which `position`? `block` goes from 0 to 7; `block=(0, 1, 2)` prompts three blocks.
# {ref}`What this call does <try-it>`.

# %% name="try-it"
from visbook.chapters.try_it import try_it

try_it("ap", task="count", block=5)

# %% tags=["remove-output", "remove-input"]
page.close()
