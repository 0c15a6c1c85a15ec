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
# # iVPT: which part does what
#
# The ablations of *iVPT: Cross-layer Dynamic Connection* {cite}`ivpt`: its three parts, five ways to connect prompts across
# blocks, where and how much reinforcement is added, noise, and where the class token looks. The method, its main tables
# and how the runs were made are on [](ivpt.ipynb).
#
# What follows from printed cells is `derived`. Accuracies come from small networks (`trend`; see
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

from visbook.chapters import attention_viewer, ivpt
from visbook.chapters import ivpt_parts as parts
from visbook.chapters.chapter import Chapter
from visbook.studies import insights, statistics
from visprompt import papers

chapter = Chapter.opened(
    "ivpt_parts", globals(), ["benchmark", "ivpt-structures", "ivpt-parts", "ivpt-tokens"]
)
page = chapter.page

# %% [markdown]
# (ivpt.table-2)=
# ## Table 2: Ablation of CDC, DA and AR
#
# The paper adds one part after the other to VPT. Each raises the mean: CDC most, DA a little, AR a little more. We repeat
# the four steps on one task per group, with a search for the learning rate at every step.

# %% name="ivpt.table-2" tags=["hide-input"]
frame = ivpt.of_vtab(chapter, *ivpt.STEPS)
caption = f"{ivpt.BY_GROUP} iVPT is CDC + DA + AR."
chapter.show("ivpt.table-2", statistics.group_table, frame, caption)
ivpt.show_gains(chapter, "ivpt.table-2", frame, ivpt.STEPS[1:], "the three steps")
chapter.judge("ivpt.table-2.cdc-over-vpt", frame, "CDC", "VPT-Deep", on="vtab")
chapter.judge("ivpt.table-2.da-over-cdc", frame, "CDC + DA", "CDC", on="vtab")
chapter.judge("ivpt.table-2.ar-over-cdc-da", frame, "iVPT", "CDC + DA", on="vtab")
ivpt.audit(chapter, "ivpt.table-2")
page.printed("ivpt.table-2", "Table 2 as printed")
chapter.end("ivpt.table-2", ivpt.SCALE)

# %% [markdown]
# What can CDC alone change? It has no more parameters than VPT-Deep and can reach the same prompts: for any $\hat P$ there
# are $P$ whose sums of neighbours give it. CDC changes how gradients reach the prompts, so it changes the path of training,
# not what the model can express. Such a difference matters more in short training than in long.

# %% [markdown]
# (ivpt.table-3)=
# ## Table 3: Ablation of prompt structures
#
# Five structures, without DA and AR. In the paper, the two that pass on the prompts' outputs are unreliable: ProVP
# {cite}`xu2023` is worse than VPT, by far on the structured tasks, and EXPRESS {cite}`das2023` gains a little. The two
# structures that add inputs win, and adding only the previous block beats adding all earlier ones. The paper explains
# this by noise from the image that the outputs carry.

# %% name="ivpt.table-3" tags=["hide-input"]
frame = ivpt.of_vtab(chapter, *ivpt.STRUCTURES)
chapter.show("ivpt.table-3", statistics.group_table, frame, ivpt.BY_GROUP)
ivpt.show_gains(chapter, "ivpt.table-3", frame, ivpt.STRUCTURES[1:], "four prompt structures")
chapter.judge("ivpt.table-3.vpt-over-provp", frame, "VPT-Deep", "ProVP", on="vtab")
chapter.judge("ivpt.table-3.express-over-vpt", frame, "EXPRESS", "VPT-Deep", on="vtab")
chapter.judge("ivpt.table-3.vanilla-over-express", frame, "Vanilla CDC", "EXPRESS", on="vtab")
chapter.judge("ivpt.table-3.cdc-over-vanilla", frame, "CDC", "Vanilla CDC", on="vtab")
ivpt.audit(chapter, "ivpt.table-3")
ivpt.derive(chapter, "ivpt.table-3.printed-gains", ivpt.printed_gains_wrong())
printed = papers.published("ivpt.table-3").set_index("structure").drop(columns="doubt")
printed = printed.map(lambda cell: float(cell.split()[0]))  # a gain stands behind it
not_above = int((printed.loc["(E) CDC"] <= printed.loc["(D) Vanilla CDC"]).sum())
ivpt.derive(chapter, "ivpt.table-3.cdc-over-vanilla-printed", not_above)
page.printed("ivpt.table-3", "Table 3 as printed")
chapter.end("ivpt.table-3", ivpt.SCALE)

# %% [markdown]
# ProVP and EXPRESS pass the prompts through attention and MLP. Their gradients therefore have a different size from those
# of prompts that end in their block, and the best learning rates are far apart. A structure that looks poor may only lack
# a learning rate between those that we tried.

# %% [markdown]
# (ivpt.figure-4)=
# ## Figure 4: Noise robustness on two natural sets
#
# The paper adds increasing Gaussian noise to the images of two natural data sets. CDC loses less accuracy than EXPRESS, with
# three seeds each. We add noise to the test images only; its standard deviation is a fraction of the range from black to
# white. We measure the accuracy lost relative to the same model without noise.

# %% name="ivpt.figure-4" tags=["hide-input"]
NOISE = "CIFAR-100, Caltech101 and the sets of Figure 6 with a ViT-B/16 need the published weights and the data."
natural_noise = parts.noise_of(chapter, "ivpt.figure-4")
parts.show_noise(chapter, "ivpt.figure-4", natural_noise)
chapter.end("ivpt.figure-4", NOISE)

# %% [markdown]
# A model that is more accurate without noise has more to lose. Neither the paper nor we correct for that.

# %% [markdown]
# (ivpt.table-4)=
# ## Table 4: Where reinforcement is added
#
# AR on no token, on all tokens, or on the $k$ tokens that the class token attends to most. In the paper the top $k$ is best
# in every group, and reinforcing all tokens hurts on the structured tasks.

# %% name="ivpt.table-4" tags=["hide-input"]
frame = ivpt.of_vtab(chapter, *ivpt.PLACES)
chapter.show("ivpt.table-4", ivpt.places_table, frame, ivpt.BY_GROUP)
chapter.judge("ivpt.table-4.top-k-over-none", frame, "iVPT", "CDC + DA", on="vtab")
chapter.judge("ivpt.table-4.top-k-over-all", frame, "iVPT", "iVPT, AR on all tokens", on="vtab")
ivpt.audit(chapter, "ivpt.table-4")
printed = (
    papers.published("ivpt.table-4")
    .set_index("setting")[["Natural", "Specialized", "Structured"]]
    .astype(float)
)
ivpt.derive(
    chapter,
    "ivpt.table-4.all-over-none-groups",
    int((printed.loc["All"] > printed.loc["None"]).sum()),
)
page.printed("ivpt.table-4", "Table 4 as printed")
chapter.end("ivpt.table-4", ivpt.SCALE)

# %% [markdown]
# The two do different things. On all tokens, AR learns one vector per position, like a second positional embedding, and
# has more parameters. On the top $k$, it learns one vector per rank of attention, wherever the patch is. The first can
# help a task that asks for a position, the second a task whose object moves.

# %% [markdown]
# (ivpt.figure-5)=
# ## Figure 5: Numbers of prompt tokens N and k
#
# The paper varies $N$ with $k = 0$, and $k$ with $N = 10$. It finds that iVPT is robust to both, and that any $k$ is better
# than none. Its curves are only in the figure. Ours are for one task.

# %% name="ivpt.figure-5" tags=["hide-input"]
frame = chapter.rows("ivpt-tokens", part="supervised")
caption = "Test accuracy by number of prompts N without AR (left), and by number of reinforced tokens k with ten prompts "
caption += "(right). Mean and range over seeds."
alt = f"Test accuracy in % of iVPT. {parts.tokens_told(parts.token_numbers(frame))}"
chapter.show("ivpt.figure-5", parts.tokens_figure, parts.token_numbers(frame), caption, alt)
parts.judge_tokens(chapter, parts.token_numbers(frame))
why = "The paper's data sets with a ViT-B/16 need the published weights and the data."
chapter.end("ivpt.figure-5", why)

# %% [markdown]
# For each point we searched a learning rate, with one seed on 200 validation images. Neighbouring points can differ by the
# luck of that choice.

# %% [markdown]
# (ivpt.figure-6)=
# ## Figure 6: Noise robustness on specialized and structured sets
#
# The same on medical, satellite and synthetic images, where the paper finds a larger difference than on natural images. We
# use one specialized and one structured task.

# %% name="ivpt.figure-6" tags=["hide-input"]
foreign_noise = parts.noise_of(chapter, "ivpt.figure-6")
parts.show_noise(chapter, "ivpt.figure-6", foreign_noise)
parts.judge_foreign(chapter, foreign_noise, natural_noise)
chapter.end("ivpt.figure-6", NOISE)

# %% [markdown]
# (ivpt.figure-7)=
# ## Figure 7: Attention maps by layer
#
# The paper shows where the class token looks in each block, for one image from each of three data sets. It concludes that
# iVPT attends more tightly to what matters, and to all objects of a counting scene. One picture proves little, so we also
# measure the **entropy** of the class token's attention to patches, in bits, over many test images. Attention to a single
# patch has entropy 0; uniform attention has the logarithm of the number of patches.

# %% name="ivpt.figure-7" tags=["hide-input"]
looked_at = parts.LOOKED_AT[chapter.p.plan]
both = zip(ivpt.PAIR, ["vpt-deep", "ivpt"], strict=True)
found = [
    parts.insight(chapter, insights.attention_maps, "benchmark", name, slug, looked_at)
    for name, slug in both
]
maps = pd.concat(found)
if len(maps):
    first = parts.first_maps(maps, looked_at)
    caption = "The class token's attention to patches by block. Each map runs from 0 (dark) to its own maximum."
    alt = f"Heat maps of one test image by block, for VPT-Deep and iVPT. Entropy in bits: {parts.entropies_told(maps)}"
    note = "The first test image."
    chapter.show("ivpt.figure-7", parts.maps_figure(chapter, first), first, caption, alt, note)

# %% tags=["hide-input"]
if len(maps):
    pooled = {
        task: f"{chapter.pooled(rows.record.iloc[0])} of {task}"
        for task, rows in maps.groupby("task", sort=False)
    }
    page.show(
        "ivpt.figure-7",
        parts.entropy_figure(maps),
        evidence="trend",
        records=[*maps.record],
        how=f"Test images: {', '.join(pooled.values())}; mean and range, {maps.seed.nunique()} seeds.",
        caption="Entropy of the class token's attention to patches (without prompts), mean over tasks. Lower is more "
        "concentrated.",
        alt=f"Entropy in bits by block. {parts.entropies_told(maps)}",
    )
    parts.judge_entropy(chapter, maps, looked_at)
why = "Pets, Resisc45 and Clevr/count with a ViT-B/16 need the published weights and the data."
chapter.end("ivpt.figure-7", why)
chapter.show_left_out()

# %% [markdown]
# ### Browse the maps
#
# All blocks and the first prompts, for the kept test images.

# %% name="maps" tags=["hide-input"]
if len(maps):
    attention_viewer.show(
        chapter, {f"{row.task}, {row.variant}": row.record for _, row in first.iterrows()}
    )

# %% [markdown]
# ## Try it
#
# `ar="none"` turns off attentive reinforcement, `da=False` dynamic aggregation, `cdc="none"` the connection.
# {ref}`What this call does <try-it>`.

# %% name="try-it"
from visbook.chapters.try_it import try_it

try_it("ivpt", ar="none")

# %% tags=["remove-output", "remove-input"]
page.close()
