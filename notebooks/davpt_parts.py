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
# *Prompt Distribution Matters: Tuning Visual Prompt through Semantic Metric Guidance* {cite}`davpt` taken apart: its
# two losses and its biases, the guided blocks, the weights and numbers of prompts, and where class token and prompts
# look. The method, its main tables and how the runs were made are on [](davpt.ipynb).
#
# Costs at the paper's size are counted and measured. Accuracies come from small networks (`trend`); [the glossary](../glossary.md) says what that allows.

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
# The paper adds its two losses and the Efficient Bias one by one, on CUB-200-2011 and on VTAB's Natural group, and
# prints latency, memory and parameters beside them. "Efficient Bias" includes the learned class token. Every row
# has a search of its own for its learning rate.

# %% name="davpt.table-4" tags=["hide-input"]
off = max(
    abs(gain["losses"] + gain["bias"] - gain["all"]) for gain in parts.printed_gains().values()
)
page.judge("davpt.table-4.sums", round(off, 10), evidence="derived")
frame = chapter.rows("davpt-parts", variants=list(parts.STEPS))
caption = "Components of DA-VPT: test accuracy in %, gain over VPT-Deep in points (mean, and the seeds with least and "
caption += "most), and the gains that the text prints."
chapter.show("davpt.table-4", parts.components_table, frame, caption)
everything = davpt.methods_on(chapter, "supervised")
for kind, on in {"natural": chapter.of_group("natural"), "fine": "fine"}.items():
    chapter.judge(f"davpt.table-4.losses-{kind}", everything, "DA-VPT", "VPT-Deep", on=on)
    chapter.judge(
        f"davpt.table-4.bias-{kind}",
        everything,
        "DA-VPT+",
        "DA-VPT",
        "Each at its own rate.",
        on=on,
    )
    chapter.judge(f"davpt.table-4.all-{kind}", everything, "DA-VPT+", "VPT-Deep", on=on)

# %% [markdown]
# Section 2.2 says that the losses do better on the prompts' queries than on the prompts themselves, and prints no
# number. The same run with the prompts themselves:

# %% tags=["hide-input"]
sides = ["DA-VPT", "DA-VPT, prompts themselves"]
compared = pd.concat([everything, chapter.rows("davpt-projection", part="supervised")])
compared = compared[compared.variant.isin(sides)]
caption = "What the losses compare, the prompts' queries (DA-VPT) or the prompts themselves: test accuracy in %."
both = davpt.fine(compared) if set(sides) <= set(compared.variant) else compared.iloc[:0]
chapter.show("davpt.table-4", statistics.group_table, both, caption)
note = "Each at its own rate."
chapter.judge("davpt.table-4.projected-query", compared, *sides, note, on="fine")

# %% [markdown]
# Latency, memory and parameters at the size of the paper's model. Times of different machines do not compare, so each
# is divided by that of VPT-Deep on its own machine; [](cost.ipynb) has the bench that these are taken from. At
# inference DA-VPT is VPT-Deep with other prompts, and biases can be merged into the weights.


# %% tags=["hide-input"]
ratios, memory = parts.step_ratios(), parts.step_memory()
used = [record for _, record in ratios.values()]
machines = "; ".join(
    dict.fromkeys(f"{r.settings['machine']}, batch {r.settings['batch_size']}" for r in used)
)
how = f"Time: median and range of rounds in turns on {machines}, random weights. " if used else ""
page.show(
    "davpt.table-4",
    parts.cost_table(ratios, memory),
    evidence="measured" if used else "derived",
    records=[*used, *memory.values()],
    caption="Cost of a training step on ViT-Base/16, over VPT-Deep with as many prompts.",
    how=f"{how}Memory counted at batch {bench.MEMORY_BATCH}, float32; the printed latency is that of one RTX 4090.",
)

# %% tags=["hide-input"]
if "da-vpt-plus" in ratios:
    values, record = ratios["da-vpt-plus"]
    rises = statistics.interval([ratio - 1 for ratio in values])
    note = f"{record.settings['repeats']} rounds on {record.settings['machine']}."
    page.judge("davpt.table-4.latency", *rises, evidence="measured", records=[record], note=note)
more, note = (
    parts.memory_ratio(memory, "da-vpt-plus") - 1,
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
# The paper shows, for images of CUB, where the class token and some prompts look, in a shallow block (3 of 12) and in
# the last, for VPT-Deep and for DA-VPT. What it sees: deep maps are sparser; the prompt of the image's own class
# (`*p`) finds what the class token then selects; VPT-Deep's deep prompts find little.
#
# Prompts are keys and values here and have no queries of their own, so their maps are computed as if they had. A
# block without guidance has no `*p`. For DA-VPT the assigned prompt is the one whose cluster holds the image's class.


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
        how=f"One test image of {looks.task}, seed {first[0].settings['seed']}; softmax weights meaned over heads; each map "
        "has its own scale.",
        caption=f"Attention to patches in block {shallow} and in the last, {deep}, counted from 0. *p is the prompt "
        "assigned to the image's class.",
        alt="A grid of small maps: for VPT-Deep and DA-VPT, shallow and deep block, the picture, the class token's "
        "attention and that of three prompts.",
    )

# %% tags=["hide-input"]
if looks.attention:
    by_seed = looks.numbers(shallow, deep)
    table = (
        by_seed.groupby("method", sort=False)
        .mean()
        .map(lambda value: "–" if value != value else f"{value:.2f}")
    )
    every = [record for records in looks.attention.values() for record in records.values()]
    page.show(
        "davpt.figure-3",
        table.assign(seeds=by_seed.groupby("method").size()).reset_index(),
        evidence="trend",
        records=every,
        how=f"Entropy and share over {chapter.pooled(every[0])} test images, agreement over "
        f"{len(every[0].settings['images'])}; means over seeds.",
        caption="Attention in numbers: entropy of the class token's attention to patches (bits), the share of its "
        "attention that goes to prompts, and the correlation of prompts' maps with its own, in the last block.",
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
# With the quick profile's 36 patches a map has little room to be sparse, and few images show a kind of picture, not a
# law. The first loss compares a prompt's query with patches behind attention and not with their keys, so a prompt may
# match its classes' patches in the loss without its attention moving to them.

# %% [markdown]
# **Do guided prompts stand for their classes?** The idea that {ref}`Figure 1 <davpt.figure-1>` draws, measured in the
# last block: what the class token gives to the prompt of the image's class and to another, and how similar prompts
# are to patches of their own and of other classes, both as the first loss compares them. VPT-Deep is DA-VPT with both
# weights 0: its prompts get the same clusters of classes and do not know of them.

# %% name="guidance" tags=["hide-input"]
guided = looks.guidance()
if len(guided):
    page.present(
        guidance_table(guided),
        evidence="trend",
        records=[*guided.record],
        cell="guidance",
        how=f"{chapter.pooled(guided.record.iloc[0])} test images of {looks.task}, last block; means over seeds.",
        caption="Prompts of the last block and the classes they stand for.",
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
# Three panels. Left, by its caption: accuracy when one block is guided (blue) and when all from one to the last are
# (red); the last alone is best in most cases. Middle: the time k-means takes in each epoch; it matters little after
# the first ones. Right: what each category of biases adds. (The text of Section 4.3.2 swaps the middle and the right
# panel, and Section 2.5 looks for the biases in the left one.)


# %% name="davpt.figure-4" tags=["hide-input"]
layers = chapter.rows("davpt-layers")
depth = grids.depth_of("supervised", chapter.scope)
alt = "Two lines of accuracy over the blocks: that block guided alone, and all blocks from it to the last."
caption = "DA-VPT by guided block: mean and range over seeds."
by_depth = lambda rows: parts.layers_figure(rows, depth)
chapter.show("davpt.figure-4", by_depth, layers, caption, alt)
davpt.judge_over_mean(
    chapter,
    "davpt.figure-4.last-block",
    layers,
    f"block {depth - 1} alone",
    [f"block {at} alone" for at in range(depth - 1)],
    chapter.of_study("davpt-layers"),
    "Each block at the best of three rates.",
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
        caption="k-means, call by call: its time and how many classes it moved; thin lines are seeds.",
        alt="Left: milliseconds of each call of k-means. Right: classes that changed their prompt in it.",
    )
    late = pd.Series([parts.late_over_first(record) for record in times], [*timed])
    looks.judge("davpt.figure-4.k-means-time", times, late)

# %% tags=["hide-input"]
biases = chapter.rows("davpt-biases")
paired = biases if len(davpt.over(biases, "value", "key")) else biases.iloc[:0]
caption = "Bias categories, the class token left as it was: accuracy over that with key biases alone, mean (diamond) and "
caption += "seeds (dots). Each at the best of three learning rates."
alt = "Rows for query, value, key and value, attention output, norm and MLP biases, each with its gain over key biases."
chapter.show("davpt.figure-4", parts.biases_figure, paired, caption, alt)
by_task = lambda rows: statistics.task_table(rows).reset_index(names="biases")
caption = 'The same as test accuracy in %; "none" is DA-VPT.'
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
# {ref}`A bias of keys changes nothing <method-key-bias>`: all scores of a query rise alike and softmax drops it.
# So "key" is the baseline of the right panel, and "key and value" can differ from "value" by rounding and by the rate
# that its search took alone. What the paper finds for keys and values together is the values' doing.
#
# In the left panel a guided block that is not the last still has its prompts thrown away behind it; what differs is
# whose patches the first loss compares with, and how much of the network lies behind. k-means in the quick profile
# works on a few dozen class means of a small width, which takes so little time that the call itself weighs in; CUB has
# 200 classes and ViT-B/16 a width of 768. It starts from the last centroids, so once classes stay where
# they are it stops after one round.

# %% [markdown]
# (davpt.figure-5)=
# ## Figure 5: Loss weights and prompt numbers
#
# On CUB and from three pre-trainings the paper varies the two losses' weights $\beta$ (patches) and $\lambda$ (class
# token), the number of prompts in the guided block
# (the clusters of classes) and in the others. By its caption the best weights lie below 1 and accuracy depends more
# on the guided block's number than on the others'. Here everything else stays at the default: weights 0.1, as many
# guided prompts as others. Weights of 0.1 and 1, which the claims compare, have the best of three learning rates each;
# the other points take the default's.

# %% name="davpt.figure-5" tags=["hide-input"]
weighed = chapter.rows("davpt-weights")
caption = "DA-VPT+ with other weights and numbers of prompts: mean and range over seeds, a line a pre-training."
alt = "Four panels, accuracy over beta, lambda, guided prompts and other prompts, a line for each pre-training."
lines = lambda rows: parts.weights_figure(chapter, rows)
chapter.show("davpt.figure-5", lines, weighed, caption, alt)
about = {"on": "ablation", "parts": [*PARTS]}
chapter.judge("davpt.figure-5.beta-below-one", weighed, "beta = 0.1", "beta = 1", **about)
note = '"beta = 0.1" has lambda = 0.1.'
chapter.judge("davpt.figure-5.lambda-below-one", weighed, "beta = 0.1", "lambda = 1", note, **about)
parts.judge_sensitive(chapter, weighed, **about)
chapter.end("davpt.figure-5", "CUB-200-2011 on three ViT-Base/16 needs its images.")

# %% [markdown]
# No rate was sought for a loss of weight 10, which can drown the classification loss. Under MAE $\beta = 1$ drowns it
# already, with the lowest of its three rates as the best: the mean lead of weights below 1 is mostly that line's. The
# bars, ranges of the seeds, tell how much of a curve is noise. On the masked autoencoder $\lambda$ acts on a class token
# that the head does not read.

# %% [markdown]
# (davpt.figure-6)=
# ## Figure 6: More attention maps
#
# The appendix shows further images of CUB with the map of the prompt assigned to their class. Here are the other test
# images of the same records, last block, and how often, of all prompts, the assigned one has the map most
# like the class token's. That share is multiplied by the number of prompts, so that 1 is chance.

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
        alt="Three rows of a picture and four attention maps: class token, assigned prompt and two other prompts.",
    )
    lifts = pd.Series([lift(one) for one in mine.values()], [*mine])
    note = f"{len(record.values['labels'])} images a seed,"
    looks.judge("davpt.figure-6.own-prompt-on-object", [*mine.values()], lifts, note)
chapter.end("davpt.figure-6", "Maps of CUB-200-2011 need its images and the published weights.")
chapter.show_left_out()

# %% [markdown]
# ### Leaf through the maps
#
# All blocks and the first prompts of the kept test images, of both methods.

# %% name="maps" tags=["hide-input"]
if looks.attention:
    attention_viewer.show(
        chapter,
        {f"{looks.task}, {name}": next(iter(r.values())) for name, r in looks.attention.items()},
    )

# %% [markdown]
# ## Try it
#
# `beta` weighs the loss between patches and prompts, `lambda_` the one between prompts and class token; both are
# 0.1 unless given. {ref}`What this call does <try-it>`.

# %% name="try-it"
from visbook.chapters.try_it import try_it

try_it("da-vpt", beta=1.0)

# %% tags=["remove-output", "remove-input"]
page.close()
