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
# # DA-VPT: which part does what
#
# The ablations of *Prompt Distribution Matters: Tuning Visual Prompt through Semantic Metric Guidance* {cite}`davpt`: its
# two losses and its biases, the guided blocks, loss weights and numbers of prompts, and where class token and prompts
# look. The method, its main tables and how the runs were made are on [](davpt.ipynb).
#
# Costs are counted and measured at the paper's size. Accuracies come from small networks (`trend`; see
# [the glossary](../glossary.md)).

# %% tags=["parameters"]
profile = "quick"
device = "cpu"
backbone = None  # in place of the profile's supervised ViT; no other backbone is then used
weights = "pretrained"  # or a weights file; of several backbones a list, see the page on rerunning
tasks = None  # none but these
methods = None  # slugs; no variants but theirs
studies = None  # of data_manifests/studies.yaml, run here; []: none; None: all of this page, but in the quick profile
# only where a backbone, tasks, methods or search is given
seeds = None  # run and shown here
kept_seeds = None  # shown where a record has them
search = None  # search learning rates here
data_dir = None  # folder of the tasks that are not embedded
epochs = None
precision = None  # the recipe's; bf16 for the paper profile on a GPU
compile = False  # True on a GPU

# %% tags=["hide-input", "remove-output"]
import pandas as pd

from visbook.chapters import attention_viewer, davpt
from visbook.chapters import davpt_parts as parts
from visbook.chapters.chapter import PARTS, Chapter
from visbook.chapters.davpt_attention import Looks, guidance_table, lift
from visbook.studies import bench, grids, insights, statistics
from visprompt.data.tasks import embedded_tasks

STUDIES = ["davpt-parts", "davpt-projection", "davpt-layers", "davpt-biases", "davpt-weights"]
chapter = Chapter.opened("davpt_parts", globals(), ["benchmark", "pretraining", *STUDIES])
page = chapter.page

# %% [markdown]
# (davpt.table-4)=
# ## Table 4: Ablation of the components
#
# The paper adds its two losses and the Efficient Bias one by one, on CUB-200-2011 and on VTAB's Natural group, and also
# prints latency, memory and parameters. "Efficient Bias" includes the learned class token. We search the learning rate
# for every row.

# %% name="davpt.table-4" tags=["hide-input"]
off = max(
    abs(gain["losses"] + gain["bias"] - gain["all"]) for gain in parts.printed_gains().values()
)
page.judge("davpt.table-4.sums", round(off, 10), evidence="derived")
frame = chapter.rows("davpt-parts", variants=list(parts.STEPS))
caption = "Components of DA-VPT: test accuracy in %, gain over VPT-Deep in points (mean, lowest and highest seed), and the "
caption += "gains that the text prints."
chapter.show("davpt.table-4", parts.components_table, frame, caption)
everything = davpt.methods_on(chapter, "supervised")
for kind, on in {"natural": chapter.of_group("natural"), "fine": "fine"}.items():
    chapter.judge(f"davpt.table-4.losses-{kind}", everything, "DA-VPT", "VPT-Deep", on=on)
    chapter.judge(
        f"davpt.table-4.bias-{kind}",
        everything,
        "DA-VPT+",
        "DA-VPT",
        "Each at its own learning rate.",
        on=on,
    )
    chapter.judge(f"davpt.table-4.all-{kind}", everything, "DA-VPT+", "VPT-Deep", on=on)

# %% [markdown]
# Section 2.2 says that the losses work better on the prompts' queries than on the prompts themselves, without a number.
# The same run with the prompts themselves:

# %% tags=["hide-input"]
sides = ["DA-VPT", "DA-VPT, prompts themselves"]
compared = pd.concat([everything, chapter.rows("davpt-projection", part="supervised")])
compared = compared[compared.variant.isin(sides)]
caption = (
    "Losses on the prompts' queries (DA-VPT) or on the prompts themselves: test accuracy in %."
)
both = davpt.fine(compared) if set(sides) <= set(compared.variant) else compared.iloc[:0]
chapter.show("davpt.table-4", statistics.group_table, both, caption)
note = "Each at its own learning rate."
chapter.judge("davpt.table-4.projected-query", compared, *sides, note, on="fine")

# %% [markdown]
# Latency, memory and parameters at the size of the paper's model. Times from different machines cannot be compared, so
# each is divided by the time of VPT-Deep on the same machine; the measurements are on [](cost.ipynb). At inference,
# DA-VPT is VPT-Deep with other prompts. DA-VPT+ also changes biases and the class token, which the network has anyway.


# %% tags=["hide-input"]
ratios, memory = parts.step_ratios(), parts.step_memory()
used = [record for _, record in ratios.values()]
machines = "; ".join(
    dict.fromkeys(f"{r.settings['machine']}, batch {r.settings['batch_size']}" for r in used)
)
how = f"Time: mean and range of alternating rounds on {machines}, random weights. " if used else ""
page.show(
    "davpt.table-4",
    parts.cost_table(ratios, memory),
    evidence="measured" if used else "derived",
    records=[*used, *memory.values()],
    caption="Cost of a training step on ViT-Base/16, relative to VPT-Deep with as many prompts.",
    how=f"{how}Memory counted at batch {bench.MEMORY_BATCH}, float32; the printed latency is from an RTX 4090.",
)

# %% tags=["hide-input"]
if "da-vpt-plus" in ratios:
    values, record = ratios["da-vpt-plus"]
    rises = statistics.interval([100 * (ratio - 1) for ratio in values])
    note = f"{record.settings['repeats']} rounds on {record.settings['machine']}."
    page.judge("davpt.table-4.latency", *rises, evidence="measured", records=[record], note=note)
more, note = (
    100 * (parts.memory_ratio(memory, "da-vpt-plus") - 1),
    f"Counted at batch {bench.MEMORY_BATCH}.",
)
page.judge("davpt.table-4.memory", more, evidence="derived", records=[*memory.values()], note=note)
bias = davpt.printed_counts("davpt.table-4")[0]
page.judge(
    "davpt.table-4.bias-parameters", bias["computed"], evidence="derived", note=bias["reading"]
)
chapter.end("davpt.table-4", "CUB-200-2011 and VTAB's Natural group need their images.")

# %% [markdown]
# (davpt.figure-3)=
# ## Figure 3: Attention maps, shallow and deep block
#
# For images of CUB, the paper shows where the class token and some prompts look, in a shallow block (3 of 12) and in the
# last one, for VPT-Deep and DA-VPT. It observes three things. Deep maps are sparser. The prompt of the image's own class
# (`*p`) finds what the class token then selects. VPT-Deep's deep prompts find little.
#
# In our implementation prompts are keys and values without queries. Their maps are computed as if they had queries.
# For DA-VPT, `*p` is the prompt whose cluster contains the image's class; a block without guidance has none.


# %% name="davpt.figure-3" tags=["hide-input"]
looks = Looks(chapter)
if looks.attention:
    first = [next(iter(by_seed.values())) for by_seed in looks.attention.values()]
    depth = len(first[0].values["entropy"])
    shallow, deep = round(depth / 4), depth - 1
    page.show(
        "davpt.figure-3",
        looks.grid(0, [shallow, deep]),
        evidence="trend",
        records=first,
        how=f"One test image of {looks.task}, seed {first[0].settings['seed']}; mean of the softmax weights over heads; each "
        "map has its own scale.",
        caption=f"Attention to patches in block {shallow} and in the last block, {deep} (counted from 0). *p is the prompt "
        "assigned to the image's class.",
        alt=f"Small maps of attention for VPT-Deep and DA-VPT, in blocks {shallow} and {deep}: the picture, the class token "
        f"and three prompts. {looks.entropy_told(shallow, deep)}",
    )

# %% tags=["hide-input"]
if looks.attention:
    by_seed = looks.numbers(shallow, deep)
    table = (
        by_seed.groupby("method", sort=False)
        .mean()
        .map(lambda value: "–" if value != value else f"{value:.3g}")
    )
    every = [record for records in looks.attention.values() for record in records.values()]
    page.show(
        "davpt.figure-3",
        table.assign(seeds=by_seed.groupby("method").size()).reset_index(),
        evidence="trend",
        records=every,
        how=f"Entropy and share over {chapter.pooled(every[0])} test images, agreement over "
        f"{len(every[0].settings['images'])}; means over seeds.",
        caption="The class token's attention: its entropy over patches in bits, the share that goes to prompts, and the "
        "correlation of the prompts' maps with its own map (agreement), both in the last block.",
    )

# %% tags=["hide-input"]
if "DA-VPT" in looks.attention:
    mine, own = [*looks.attention["DA-VPT"].values()], by_seed.loc["DA-VPT"]
    looks.judge(
        "davpt.figure-3.sparser", mine, (own["entropy, deep"] - own["entropy, shallow"]).dropna()
    )
    looks.judge(
        "davpt.figure-3.bridge",
        mine,
        (own["agreement, assigned"] - own["agreement, others"]).dropna(),
    )
    if "VPT-Deep" in looks.attention:
        above = own["agreement, assigned"] - by_seed.loc["VPT-Deep"]["agreement, others"]
        looks.judge("davpt.figure-3.over-vpt-deep", every, above.dropna())
chapter.end("davpt.figure-3", "Maps of CUB-200-2011 on ViT-Base/16 need its images.")

# %% [markdown]
# With only 36 patches, a map cannot become very sparse, and a few images are examples, not a law. Note also that the
# first loss compares a prompt's query with the patches after attention, not with their keys. A prompt can therefore match
# the patches of its classes in the loss without attending to them.

# %% [markdown]
# **Do guided prompts represent their classes?** This is the idea of {ref}`Figure 1 <davpt.figure-1>`. We measure two
# things in the last block: how much the class token attends to the prompt of the image's class and to other prompts, and
# how similar prompts are to patches of their own and of other classes, in the space of the first loss. For VPT-Deep, both
# loss weights are 0: its prompts are assigned to the same clusters of classes but never learn of them.

# %% name="guidance" tags=["hide-input"]
guided = looks.guidance()
if len(guided):
    page.present(
        guidance_table(guided),
        evidence="trend",
        records=[*guided.record],
        cell="guidance",
        how=f"{chapter.pooled(guided.record.iloc[0])} test images of {looks.task}, last block; means over seeds.",
        caption="Prompts of the last block and the classes assigned to them: attention of the class token, and cosine "
        "similarity to patches.",
    )
if set(guided.get("method", ())) == {"VPT-Deep", "DA-VPT"}:
    means = guided.set_index(["seed", "method"]).unstack()
    nearer = (means.own_patches - means.other_patches).dropna()
    above = nearer["DA-VPT"] - nearer["VPT-Deep"]
    looks.judge("davpt.figure-1.prompts-near-own-patches", [*guided.record], above)
if "DA-VPT" in set(guided.get("method", ())):
    mine = guided[guided.method == "DA-VPT"].set_index("seed")
    prompts = mine.record.iloc[0].settings["method_settings"]["prompt_tokens"]
    more = prompts * (mine.to_own - mine.to_other)
    looks.judge(
        "davpt.figure-1.class-token-to-own-prompt", [*mine.record], more, f"{prompts} prompts;"
    )

# %% [markdown]
# (davpt.figure-4)=
# ## Figure 4: Guided blocks, time of k-means, bias categories
#
# The paper has three panels. Left: accuracy when a single block is guided (blue), and when all blocks from that one to
# the last are guided (red); the last block alone is best in most cases. Middle: time of k-means in each epoch, which
# matters little after the first ones. Right: gain from each category of biases. (Section 4.3.2 swaps the middle and the
# right panel, and Section 2.5 refers to the left one for the biases.)


# %% name="davpt.figure-4" tags=["hide-input"]
layers = chapter.rows("davpt-layers")
depth = grids.depth_of("supervised", chapter.scope)
alt = f"Test accuracy in % by guided block, counted from 0. {parts.layers_told(layers, depth)}"
caption = "DA-VPT by guided block: one block guided, or all from it to the last. Mean and range over seeds."
by_depth = lambda rows: parts.layers_figure(rows, depth)
chapter.show("davpt.figure-4", by_depth, layers, caption, alt)
davpt.judge_over_mean(
    chapter,
    "davpt.figure-4.last-block",
    layers,
    f"block {depth - 1} alone",
    [f"block {at} alone" for at in range(depth - 1)],
    chapter.of_study("davpt-layers"),
    "Each block at a learning rate of its own search.",
)

# %% tags=["hide-input"]
timed = looks.of("davpt.figure-4", insights.clustering_times, "none").get("none", {})
if timed:
    times = [*timed.values()]
    classes = (
        len(embedded_tasks()[looks.task]["classes"]) if looks.task in embedded_tasks() else "its"
    )
    page.show(
        "davpt.figure-4",
        parts.times_figure(times),
        evidence="trend",
        records=times,
        how=f"{looks.task}, {classes} classes, {len(times)} seeds, on {times[0].hardware['cpu']}.",
        caption="k-means before training and after each epoch: its time, and how many classes changed their prompt. Thin "
        "lines are seeds.",
        alt=f"Time and changes by call of k-means. {parts.times_told(times)}",
    )
    late = pd.Series([parts.late_over_first(record) for record in times], [*timed])
    looks.judge("davpt.figure-4.k-means-time", times, late)

# %% tags=["hide-input"]
biases = chapter.rows("davpt-biases")
paired = biases if len(davpt.over(biases, "value", "key")) else biases.iloc[:0]
caption = "Gain of each category of biases over key biases alone, which cannot change anything: mean (diamond) and seeds "
caption += "(dots). The class token is not trained. Each at a learning rate of its own search."
alt = f"Gain over key biases alone, in points, by category of biases: {parts.biases_told(paired)}"
chapter.show("davpt.figure-4", parts.biases_figure, paired, caption, alt)
by_task = lambda rows: statistics.task_table(rows).reset_index(names="biases")
caption = 'The same runs: test accuracy in %. "none" is DA-VPT, whose biases are frozen.'
chapter.show("davpt.figure-4", by_task, biases, caption)
davpt.judge_over_mean(
    chapter,
    "davpt.figure-4.key-and-value",
    biases,
    "key and value",
    ["query", "attention output", "norms", "MLP"],
    chapter.of_study("davpt-biases"),
)
chapter.end("davpt.figure-4", "CUB-200-2011 on ViT-Base/16 needs its images.")

# %% [markdown]
# {ref}`A bias of keys changes nothing <method-key-bias>`: it raises all scores of a query equally, and softmax cancels
# it. "Key" is therefore the baseline of the panel on biases, and "key and value" can differ from "value" only by rounding
# and by the learning rate that its search chose. Whatever the paper gains from keys and values together comes from the
# values.
#
# In the panel on guided blocks, prompts are discarded after every block, guided or not. What changes is which patches
# the first loss compares with, and how much of the network comes after them.
#
# Our k-means runs on a few dozen class means of small width. That takes so little time that the function call itself
# matters; CUB has 200 classes and ViT-B/16 a width of 768. k-means starts from the previous centroids, so it stops after
# one iteration once classes no longer move.

# %% [markdown]
# (davpt.figure-5)=
# ## Figure 5: Loss weights and prompt numbers
#
# On CUB and for three pre-trainings, the paper varies the weights of the two losses, $\beta$ (patches) and $\lambda$
# (class token), the number of prompts in the guided block (the number of clusters) and the number in the other blocks.
# According to its caption, the best weights are below 1, and accuracy is more sensitive to the number of guided prompts
# than to the others.
#
# We vary one at a time. The defaults are weights of 0.1 and equally many prompts in all blocks. The weights 0.1 and 1,
# which the claims compare, have a learning rate of their own search each; the other points use the default's.

# %% name="davpt.figure-5" tags=["hide-input"]
weighed = chapter.rows("davpt-weights")
caption = f"{parts.weights_found(chapter, weighed)} Mean and range over seeds; one row per pre-training, with its own axis."
alt = f"Test accuracy in % of DA-VPT+ by loss weight and number of prompts. {parts.weights_told(chapter, weighed)}"
lines = lambda rows: parts.weights_figure(chapter, rows)
chapter.show("davpt.figure-5", lines, weighed, caption, alt)
about = {"on": "ablation", "parts": [*PARTS]}
chapter.judge("davpt.figure-5.beta-below-one", weighed, "beta = 0.1", "beta = 1", **about)
note = 'The run "beta = 0.1" also has lambda = 0.1.'
chapter.judge("davpt.figure-5.lambda-below-one", weighed, "beta = 0.1", "lambda = 1", note, **about)
parts.judge_sensitive(chapter, weighed, **about)
chapter.end("davpt.figure-5", "CUB-200-2011 on three ViT-Base/16 needs its images.")

# %% [markdown]
# A loss of weight 10 can overwhelm the classification loss, and we did not search a learning rate for it. With the MAE
# backbone, $\beta = 1$ already overwhelms it, even at the lowest learning rate; most of the average advantage of small
# weights comes from this one curve. With MAE, $\lambda$ acts on a class token that the head does not read.

# %% [markdown]
# (davpt.figure-6)=
# ## Figure 6: More attention maps
#
# The appendix shows more images of CUB with the map of the prompt assigned to their class. Below are the other test images
# of our records, in the last block. We also count how often the assigned prompt, among all prompts, has the map most
# similar to the class token's. That share is multiplied by the number of prompts, so chance is 1.

# %% name="davpt.figure-6" tags=["hide-input"]
if mine := looks.of("davpt.figure-6", insights.attention_maps).get("DA-VPT"):
    record = next(iter(mine.values()))
    page.show(
        "davpt.figure-6",
        looks.more_images(record),
        evidence="trend",
        records=[record],
        how=f"Test images of {looks.task}, seed {record.settings['seed']}; each map on its own scale.",
        caption="DA-VPT, last block: picture, class token, the prompt assigned to the class (*p) and two others.",
        alt="Attention maps of the class token, the assigned prompt and two other prompts for more test images. How often the "
        f"assigned prompt's map is the most similar, times the number of prompts: {pd.Series([lift(r) for r in mine.values()]).mean():.2f}.",
    )
    lifts = pd.Series([lift(one) for one in mine.values()], [*mine])
    note = f"{len(record.values['labels'])} images per seed,"
    looks.judge("davpt.figure-6.own-prompt-on-object", [*mine.values()], lifts, note)
chapter.end("davpt.figure-6", "Maps of CUB-200-2011 need its images and the published weights.")
chapter.show_left_out()

# %% [markdown]
# ### Browse the maps
#
# All blocks and the first prompts, for both methods and the kept test images.

# %% name="maps" tags=["hide-input"]
if looks.attention:
    attention_viewer.show(
        chapter,
        {f"{looks.task}, {name}": next(iter(r.values())) for name, r in looks.attention.items()},
    )

# %% [markdown]
# ## Try it
#
# `beta` is the weight of the loss between patches and prompts, `lambda_` of the one between prompts and class token. The
# default of both is 0.1. {ref}`What this call does <try-it>`.

# %% name="try-it"
from visbook.chapters.try_it import try_it

try_it("da-vpt", beta=1.0)

# %% tags=["remove-output", "remove-input"]
page.close()
