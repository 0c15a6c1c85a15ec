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
# # AP: what it costs
#
# An activation prompt {cite}`ap` has few parameters, and its backward pass ends at the prompted block. Here we count
# parameters, operations and memory on the paper's architectures, which is exact (`derived`), and time the methods at the
# paper's model sizes (`measured`). [](ap.ipynb) describes the methods and their accuracy, {ref}`Figure 2 <ap.figure-2>`
# shows the cost of AP at each block of a ResNet, and [](ap_peft.ipynb) counts the parameters of further methods.

# %% tags=["parameters"]
profile = "quick"
device = "cpu"
measure = False  # time the methods at the papers' model sizes on this machine (about half an hour on two cores)

# %% tags=["hide-input", "remove-output"]
import visprompt as vp
from visbook.chapters import ap_cost

p, page = ap_cost.opened("ap_cost", globals())

# %% [markdown]
# (ap.figure-3)=
# ## Figure 3: Shapes of tunable parameters
#
# NORM-TUNE trains one scale and one shift per channel, shared by all positions. AP trains one value per channel *and*
# position. So AP on one layer has as many values as NORM-TUNE has shifts there, times the number of positions.
# {ref}`Proposition 1 <ap.proposition-1>` says when the two do the same.

# %% name="ap.figure-3" tags=["hide-input"]
page.show(
    "ap.figure-3",
    ap_cost.shapes_figure(),
    evidence="derived",
    how="Drawn by code; features of one colour share one trained value.",
    caption="Which features share a trained value: in NORM-TUNE's shift (left) and in AP (right).",
    alt="Two grids of channels by positions. NORM-TUNE has one colour per row, AP a different colour in every cell.",
)
large = vp.load_backbone("vit_large_patch16_224", device="meta")
tokens, _ = large.shapes()[2]
entries = vp.count_parameters(vp.build_method("ap", large, 10, block=2))["method"]
off = abs(entries / (large.blocks[2].norm1.bias.numel() * tokens) - 1)
page.checked(
    "AP's values at a ViT-Large's third block are NORM-TUNE's shifts times the positions: off by",
    off,
)

# %% [markdown]
# (ap.table-2)=
# ## Table 2: Efficiency profile of the methods
#
# The table has four columns: trained parameters, training memory, time per epoch and inference throughput, for CIFAR-10
# with batches of 128 on an RTX A6000. Parameters follow from the architecture. So do the operations (GFLOPs, two per
# multiply-add) and a lower bound on the memory of a training step: weights, gradients, Adam's moments, and what autograd
# keeps for the backward pass. Time is measured.
#
# Two conventions explain most of the printed parameter counts. First, VP's 0.11 M and 0.12 M fit a **frame of 48 pixels**
# ($3 (224^2 - 128^2)$ values) plus a head for 10 classes; 44 to 50 pixels fit as well, and the paper does not say. The
# "150k" of the text would be every pixel. Second, full fine-tuning is counted with ImageNet's 1,000-way head, the other
# rows with a 10-way head.

# %% name="ap.table-2" tags=["hide-input"]
counted = ap_cost.count_all()
page.show(
    "ap.table-2",
    ap_cost.counted_table(counted),
    evidence="derived",
    records=list(counted.values()),
    how="Counted on shapes at 224 pixels, batch 128, float32, Adam, with all tokens of the last block as in the paper; "
    "memory without workspace and fragmentation.",
    caption="Parameters, memory of a training step and operations per image, beside the printed values.",
)

# %% name="table-2-parameters" tags=["hide-input"]
notes = ap_cost.readings(counted)
for (word, short), record in counted.items():
    claim, note = f"ap.table-2.{word}-{short}-parameters", notes.get(f"{word}-{short}", "")
    if open_setting := ap_cost.fitted(word, short):
        page.not_judged(claim, f"the paper does not state this setting: {open_setting}")
    else:
        page.judge(
            claim, ap_cost.total(record) / 1e6, evidence="derived", records=[record], note=note
        )
share = {
    key: 100 * ap_cost.total(record) / ap_cost.total(counted[key[0], "full"])
    for key, record in counted.items()
}
recount = max(abs(share[word, "ap"] - share[word, "vp"]) for word in ap_cost.LARGE)
page.judge(
    "ap.table-2.parameter-share-difference",
    ap_cost.printed_share_gap(),
    evidence="derived",
    records=list(counted.values()),
    note=f"From the printed cells, in % of full fine-tuning. Recounted with a frame of 48 pixels, it is {recount:.2f}.",
)

# %% [markdown]
# **Measured time and memory.** The weights are random, which does not matter here. As in the paper, AP does not cache the
# activations below its block; as everywhere in this book, the last block of the ViT computes only the class token. In
# each timing process the methods take turns, so that changes in the machine's speed affect all alike. Peak memory is
# measured in a separate process per method. On a CPU the batches are small, so weights make up more of the memory than at
# the paper's batch of 128.

# %% name="table-2-measured" tags=["hide-input"]
measured = {
    name: ap_cost.timings(name, p.measure and name == p.device)
    for name in dict.fromkeys([p.device, "cuda"])
}
for name, (timed, peaks) in measured.items():
    used = [record for word in timed for record in (timed[word], *peaks[word].values())]
    if used:
        page.show(
            "ap.table-2",
            ap_cost.measured_table(timed, peaks, name),
            evidence="measured",
            records=used,
            how=f"Median of 4 rounds, float32, random weights, {ap_cost.machine(used[0])}.",
            caption="Time and peak memory at the paper's model sizes.",
        )

# %% name="table-2-measured-claims" tags=["hide-input"]
timed_on = "cuda" if measured["cuda"][0] else p.device  # the paper's batches, where a card ran them
timed, peaks = measured[timed_on]
for word, turns in timed.items():
    told = dict(evidence="measured", note=f"At batch {ap_cost.batch_size(word, timed_on)}.")
    pair = [peaks[word]["ap"], peaks[word]["vp"]]
    saved = pair[0].values["peak_mb"] / pair[1].values["peak_mb"] - 1
    page.judge(f"ap.table-2.{word}-ap-memory-below-vp", saved, records=pair, **told)
    faster = ap_cost.ratio(turns, "train_seconds", "ap", "vp")
    page.judge(f"ap.table-2.{word}-ap-time-below-vp", *faster, records=[turns], **told)
    sooner = ap_cost.ratio(turns, "train_seconds", "ap", "norm-tune")
    page.judge(f"ap.table-2.{word}-ap-time-below-norm", *sooner, records=[turns], **told)
    more = ap_cost.ratio(turns, "infer_seconds", "vp", "ap")
    page.judge(f"ap.table-2.{word}-ap-throughput-above-vp", *more, records=[turns], **told)
    if word == "vit":
        # Throughput is the inverse of time, so linear over AP in seconds is AP over linear in images per second.
        near = ap_cost.ratio(turns, "infer_seconds", "linear-probe", "ap")
        page.judge("ap.table-2.vit-ap-throughput-near-linear", *near, records=[turns], **told)
page.not_run(
    "ap.table-2",
    why="Memory, time and throughput at batch 128 need a GPU with 48 GB.",
)

# %% tags=["remove-output", "remove-input"]
page.close()
