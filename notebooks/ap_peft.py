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
# # AP: beside other methods that train little
#
# The paper compares AP {cite}`ap` with methods that train a small part of a network or a small addition to it: bias
# tuning, LoRA, VPT, adapters and SSF. We do so on four small tasks with our own ViT; each method has the learning rate
# that suited it best on `position` (`trend`). We count parameters on the paper's architecture and check what follows from
# the printed cells alone (`derived`), and we time some of the methods (`measured`). [](ap.ipynb) has the accuracies of
# AP, VP and NORM-TUNE, [](methods.ipynb) a drawing of each method.

# %% tags=["parameters"]
profile = "quick"
device = "cpu"
measure = False  # time the methods at the papers' model sizes on this machine (about half an hour on two cores)
backbone = None  # in place of the profile's ViT; no other backbone is then used
weights = "pretrained"  # or a weights file; of several backbones a list, see the page on rerunning
tasks = None  # none but these
methods = None  # slugs; no variants but theirs
studies = None  # of data_manifests/studies.yaml, run here; []: none; None: all of this page, but in the quick profile
# only where a backbone, tasks, methods or search is given
seeds = None  # run and shown here
kept_seeds = None  # shown where a record has them
search = None  # these studies search no rates
data_dir = None  # folder of the tasks that are not embedded
epochs = None
precision = None  # the recipe's; bf16 for the paper profile on a GPU
compile = False  # True on a GPU

# %% tags=["hide-input", "remove-output"]
from visbook.chapters import ap_cost, ap_peft
from visbook.timing import ap_tables

chapter = ap_peft.PeftChapter.opened("ap_peft", globals(), ["ap-peft", "ap-ranks", "ap-vpt"])
p, page = chapter.p, chapter.page
CELLS = "From the printed cells."
TIE = "AP is first in the other three columns; whether this near-tie costs it the first place is a matter of reading"
BOTH = f"{CELLS} The text does not say what it averages over, so the interval spans both readings."
WHY = "The accuracies need ViT-Large/16's published weights and the 19 data sets."

# %% name="runs" tags=["hide-input"]
tuned = chapter.rows("ap-peft")
chapter.show_left_out()

# %% [markdown]
# (ap.table-4)=
# ## Table 4: AP against PEFT methods
#
# The table compares AP with parameter-efficient fine-tuning (PEFT) methods on ViT-Large/16: bias tuning, LoRA, VPT,
# Gate-VPT, E2VPT, adapters and SSF. The paper does not state the widths of adapters and the numbers of gated prompts. We
# take the integer whose count is nearest to the printed one; the table says where.

# %% name="ap.table-4" tags=["hide-input"]
ap_peft.show_parameters(page, "ap.table-4")
for name in ("ap", "bias", "lora", "vpt", "ssf", "adapterformer"):
    ap_peft.judge_count(page, "ap.table-4", name, f"{name}-parameters")
table, means = ap_peft.groups("ap.table-4")
page.judge("ap.table-4.ap-accuracy-rank", ap_peft.rank(means, "AP"), evidence="derived", note=CELLS)
ahead, told = ap_peft.ahead_of_ap(table), f"{CELLS} SSF's throughput is 0.08 % higher: {TIE}."
page.judge("ap.table-4.ap-first-in-efficiency", ahead, 0, ahead, evidence="derived", note=told)
gaps = ap_peft.group_gaps(means)
worst = max(gaps, key=gaps.get)
page.judge(
    "ap.table-4.group-means",
    sum(round(gap, 4) >= 0.01 for gap in gaps.values()),
    evidence="derived",
    note=f"{CELLS} Largest: {worst[0]} on {worst[1]}, {gaps[worst]:.2f} points.",
)
speed = table["throughput_image_per_s"].astype(float)
page.judge(
    "ap.table-4.adapterformer-throughput",
    speed["AP"] / speed["AdapterFormer"],
    evidence="derived",
    note=CELLS,
)

# %% name="table-4-measured" tags=["hide-input"]
turns = ap_tables.turns_of_table_4("cuda", False) or ap_tables.turns_of_table_4(p.device, p.measure)
if turns is not None:
    batch = turns.settings["batch_size"]
    page.show(
        "ap.table-4",
        ap_peft.times_table(turns),
        evidence="measured",
        records=[turns],
        how=f"Median of 3 rounds at batch {batch}, float32, random weights, ViT-Large/16, "
        f"{ap_cost.machine(turns)}. Adapters have this book's default widths.",
        caption="Time of a training step and throughput, relative to AP's. In the paper, AdaptFormer (there AdapterFormer) "
        "has a third of AP's throughput, and VPT and the adapters are slower too.",
    )
    faster, told = (
        ap_cost.ratio(turns, "train_seconds", "ap", "lora"),
        f"At batch {batch}.",
    )
    page.judge(
        "ap.table-4.ap-time-below-lora", *faster, evidence="measured", records=[turns], note=told
    )
page.printed("ap.table-4", "Table 4 as printed")
ap_peft.show_tuned(chapter, "ap.table-4")
chapter.judge("ap.table-4.ap-over-vpt", tuned, "AP", "VPT-10", on="full", note=ap_peft.WEIGHTED)
chapter.end("ap.table-4", WHY)

# %% [markdown]
# (ap.table-a2)=
# ## Table A2: AP in the original VPT setting
#
# The table puts AP on ViT-B/16 beside the numbers that the VPT paper prints. Total parameters are given as a multiple of
# the backbone.

# %% name="ap.table-a2" tags=["hide-input"]
shallow, deep, ap_row = ap_peft.beside_vpt()
outside = int(((ap_row < shallow) | (ap_row > deep)).sum())
page.judge("ap.table-a2.between-shallow-and-deep", outside, evidence="derived", note=CELLS)
how = "One backbone and the parameters of all 24 tasks, divided by the backbone."
ap_peft.show_parameters(page, "ap.table-a2", "× ViT-B/16", how)
for name, row in {"ap": "ap", "linear": "linear-probe"}.items():
    ap_peft.judge_count(page, "ap.table-a2", row, f"{name}-total-parameters")
page.judge(
    "ap.table-a2.gain-over-shallow", (ap_row - shallow).mean(), evidence="derived", note=CELLS
)
least, most = sorted(ap_peft.drops_to_deep(deep - ap_row))
page.judge("ap.table-a2.drop-to-deep", most, least, most, evidence="derived", note=BOTH)
page.printed("ap.table-a2", "Table A2 as printed")
rows = chapter.rows("ap-vpt")
ap_peft.show_tuned(chapter, "ap.table-a2", rows)
for claim, pair in {
    "ap-over-vpt-shallow": ("AP", "VPT-Shallow"),
    "vpt-deep-over-ap": ("VPT-Deep", "AP"),
}.items():
    chapter.judge(f"ap.table-a2.{claim}", rows, *pair, on=chapter.of_study("ap-vpt"))
chapter.end("ap.table-a2", "Needs ViT-B/16 of ImageNet-21k and the 24 tasks of FGVC and VTAB-1k.")

# %% [markdown]
# (ap.table-a5)=
# ## Table A5: Re-initialised classification head
#
# The comparison of Table 4 with a newly initialised head. In our runs every head is new, because the tasks have other
# classes than the pre-training.

# %% name="ap.table-a5" tags=["hide-input"]
ap_peft.show_parameters(page, "ap.table-a5")
(_, fresh), (_, before) = ap_peft.groups("ap.table-a5"), ap_peft.groups("ap.table-4")
both = [
    method for method in fresh.index if method in before.index and method != "VPT"
]  # 10 tokens there, 50 here
change = (fresh.loc[both] - before.loc[both]).drop(columns="mean").abs()
page.judge("ap.table-a5.same-as-before", change.max().max(), evidence="derived", note=CELLS)
lost = ap_peft.rank(fresh.loc[both], "AP") - ap_peft.rank(before.loc[both], "AP")
page.judge("ap.table-a5.ap-rank-kept", lost, evidence="derived", note=CELLS)
page.printed("ap.table-a5", "Table A5 as printed")
ap_peft.show_tuned(chapter, "ap.table-a5")
chapter.end("ap.table-a5", WHY)

# %% [markdown]
# (ap.table-a6)=
# ## Table A6: AP against VPT with 10 and 50 tokens
#
# The paper compares AP with VPT of 10 and of 50 tokens, and calls the latter two comparable in accuracy. It trains with
# batches of 128. On a processor the batch is small and weights make up most of the memory, so we can only check which
# method needs more.

# %% name="ap.table-a6" tags=["hide-input"]
ap_peft.show_parameters(page, "ap.table-a6")
for name in ("vpt-10", "vpt-50"):
    ap_peft.judge_count(page, "ap.table-a6", name, f"{name}-parameters")
held = ap_peft.peaks(p.device, p.measure)
for claim, pair in {
    "vpt-10-memory-below-vpt-50": ("VPT-10", "VPT-50"),
    "ap-memory-below-vpt-10": ("AP", "VPT-10"),
}.items():
    ap_peft.judge_memory(page, f"ap.table-a6.{claim}", held, *pair)
page.printed("ap.table-a6", "Table A6 as printed")
ap_peft.show_tuned(chapter, "ap.table-a6")
chapter.judge(
    "ap.table-a6.vpt-10-near-vpt-50", tuned, "VPT-10", "VPT-50", on="full", note=ap_peft.WEIGHTED
)
chapter.end("ap.table-a6", WHY)

# %% [markdown]
# (ap.table-a7)=
# ## Table A7: SSF added to the comparison
#
# Table 4 with SSF added, which the paper calls second or third in accuracy.

# %% name="ap.table-a7" tags=["hide-input"]
ssf = ap_peft.rank(ap_peft.groups("ap.table-a7")[1], "SSF")
page.judge("ap.table-a7.ssf-rank", ssf, evidence="derived", note=CELLS)
ap_peft.show_parameters(page, "ap.table-a7")
page.printed("ap.table-a7", "Table A7 as printed")
ap_peft.show_tuned(chapter, "ap.table-a7")
fine, rest = ap_peft.benchmarks(chapter)
chapter.judge("ap.table-a7.ssf-over-ap-fgvc", tuned, "SSF", "AP", on=fine)
chapter.judge("ap.table-a7.ap-over-ssf-vtab", tuned, "AP", "SSF", on=rest)
chapter.end("ap.table-a7", WHY)

# %% [markdown]
# (ap.table-a8)=
# ## Table A8: LoRA with different ranks (cells absent from the text)
#
# The text says that LoRA's accuracy grows with its rank and flattens beyond 10. The version we audited lacks the cells. In
# our runs all ranks have the learning rate of rank 10. With it rank 50 is below rank 10, most of all on `count`. A smaller
# rate may remove this; we did not try one.

# %% name="ap.table-a8" tags=["hide-input"]
rows = chapter.rows("ap-ranks")
ap_peft.show_tuned(chapter, "ap.table-a8")
for claim, pair in {
    "rank-10-over-rank-1": ("rank 10", "rank 1"),
    "rank-50-gain-small": ("rank 50", "rank 10"),
}.items():
    chapter.judge(f"ap.table-a8.{claim}", rows, *pair, on="full")
timed = ap_tables.variants("cuda", False) or ap_tables.variants(p.device, p.measure)
ap_peft.judge_time(
    page, "ap.table-a8.rank-50-time-over-rank-10", timed, "LORA, rank 50", "LORA, rank 10"
)
chapter.end("ap.table-a8", WHY)

# %% [markdown]
# ## Try it
#
# Change `rank`, or the method: `"bias"`, `"ssf"` and `"adapter"` also train little. {ref}`What this call does
# <try-it>`.

# %% name="try-it"
from visbook.chapters.try_it import try_it

try_it("lora", rank=1)

# %% tags=["remove-output", "remove-input"]
page.close()
