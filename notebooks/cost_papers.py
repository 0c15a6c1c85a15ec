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
# # What the methods cost, beside the papers
#
# The papers print parameters, operations, memory and times. Parameters, operations and memory follow from the
# architecture (`derived`). Times belong to a machine (`measured`), so we only compare ratios measured on one machine or
# printed in one paper. How we timed, and the costs of all methods, are on [](cost.ipynb).

# %% tags=["parameters"]
profile = "quick"
device = "cpu"
backbone = None  # in place of the profile's supervised ViT; no other backbone is then used
weights = "pretrained"  # or a weights file; of several backbones a list, see the page on rerunning
tasks = None  # none but these
methods = None  # slugs; no variants but theirs
studies = []  # none is run here; what is shown was run for the page on iVPT
seeds = None  # run and shown here
kept_seeds = None  # shown where a record has them
search = None  # search learning rates here
data_dir = None  # folder of the tasks that are not embedded
epochs = None
precision = None  # the recipe's; bf16 for the paper profile on a GPU
compile = False  # True on a GPU

# %% tags=["hide-input", "remove-output"]
import pandas as pd

import visprompt as vp
from visbook.auditing.counts import printed_counts
from visbook.chapters import cost_papers
from visbook.chapters.chapter import Chapter
from visbook.chapters.cost import CostPage, where
from visbook.chapters.parameters import ChapterParameters
from visbook.pages.parameters import read_parameters

p = read_parameters(ChapterParameters, globals())
page = CostPage("cost_papers", p)
chapter = Chapter(page, p, ["benchmark"], [], paper="ivpt")
counts = printed_counts().set_index("id")

# %% [markdown]
# (ivpt.table-8)=
# ## iVPT, Table 8: Run-time cost
#
# iVPT {cite}`ivpt` claims that its three parts add almost nothing to the cost of VPT {cite}`jia2022visual`. We count with
# the numbers of prompts in its Table 16. The counts show a contradiction inside the table. The printed parameters
# correspond to so many prompts that, concatenated, they need far more operations than the bare network; the printed
# operations are those of a network with almost no prompts. Times are measured in alternation, iVPT with $N = k = 10$ and
# VPT-Deep with 10 prompts, both in the fast form.

# %% name="ivpt.table-8" tags=["hide-input"]
page.show(
    "ivpt.table-8",
    pd.DataFrame(cost_papers.counted_rows(counts)),
    evidence="derived",
    how="Counted on shapes. VPT's number of prompts is fitted to its printed parameters; the paper does not state it.",
    caption="Parameters, and operations per image, printed and counted. DAM-VP is not part of this package.",
)
for claim in ("vpt-operations", "ivpt-operations", "ivpt-parameters"):
    page.judge_count(f"ivpt.table-8.{claim}", counts.loc[f"ivpt.table-8.{claim}"])

# %% tags=["hide-input"]
parts = [counts.loc[f"ivpt.table-8.text-{part}-parameters"].printed for part in ("cdc", "da", "ar")]
head = float(vp.published("ivpt.table-1").set_index("method").params_m["Linear probing"])
added = cost_papers.aggregation_gmacs()
note = "DA multiplies N × N weights by N prompts; the paper does not say for which N: " + ", ".join(
    f"{name} {value:.2g}" for name, value in added.items()
)
least, most = min(added.values()), max(added.values())
page.judge("ivpt.table-8.workload-added", least, least, most, evidence="derived", note=f"{note}.")
page.judge(
    "ivpt.table-8.cheaper-than-dam-vp",
    len(cost_papers.not_below_dam_vp()),
    evidence="derived",
    note="Printed cells.",
)
page.judge(
    "ivpt.table-8.parts-sum",
    sum(parts) + head,
    evidence="derived",
    note="From the printed numbers.",
)

# %% tags=["hide-input"]
record = page.best("ivpt")
if record is not None:
    page.show(
        "ivpt.table-8",
        pd.DataFrame(cost_papers.timed_rows(record)),
        evidence="measured",
        records=[record],
        how=f"Median of alternating rounds. {where(record)}",
        caption="iVPT / VPT: the printed ratio, on an RTX 2080 Ti, and ours. Only ratios can be compared.",
    )
    cost_papers.judge_table_8(page, record)

# %% [markdown]
# The table's last column is accuracy. Ours comes from the runs of {ref}`Table 1 <ivpt.table-1>`.

# %% tags=["hide-input"]
caption = (
    "Test accuracy in %, mean ± standard deviation over seeds, and the printed mean over VTAB-1k."
)
rows = chapter.planned("ivpt.table-8")
chapter.show("ivpt.table-8", cost_papers.accuracy_table, rows, caption)
page.printed("ivpt.table-8", "Table 8 as printed")
page.not_run(
    "ivpt.table-8",
    why="The printed milliseconds, minutes and megabytes belong to an RTX 2080 Ti; DAM-VP is not part of this package; "
    "the printed accuracy needs the published weights and VTAB-1k."
    + ("" if record is not None else " The ratio of iVPT to VPT has not been timed here yet."),
)

# %% [markdown]
# (spt.table-1)=
# ## SPT, Table 1: Time to build the prompts
#
# SPT {cite}`spt` initialises its prompts with the task's own tokens and reports what that costs: k-means over all tokens
# takes the authors 27.3 days, pooling or sampling takes seconds. We do two things differently. For random sampling we
# choose the positions first, so that only images with a sampled token go through the network, and only those tokens are
# kept. Our k-means recomputes the tokens in every iteration, in the memory of one batch. It is plain Lloyd's algorithm, so
# the time per iteration is proportional to the number of images. In the paper's row the time grows far faster than the
# data.

# %% name="spt.table-1" tags=["hide-input"]
page.show(
    "spt.table-1",
    pd.DataFrame(cost_papers.start_shares()),
    evidence="derived",
    how="From the printed cells.",
    caption="Ratios of the printed times.",
)
record = page.best("spt-starts")
if record is not None:
    page.show(
        "spt.table-1",
        pd.DataFrame(cost_papers.start_rows(record)),
        evidence="measured",
        records=[record],
        how=f"Median of {record.settings['repeats']} alternating rounds on {record.settings['machine']}; "
        f"{record.values['prompts']} prompts in each of {record.values['blocks']} blocks, {record.settings['backbone']}, "
        "random weights.",
        caption="Seconds to initialise the prompts of SPT-Deep.",
    )
    cost_papers.judge_starts(page, record)

# %% tags=["hide-input"]
page.printed("spt.table-1", "Table 1 as printed")
page.not_run(
    "spt.table-1",
    why="The printed times are for the images of CUB-200-2011, on hardware that the paper does not name."
    + ("" if record is not None else " We have not timed the initialisation yet."),
)

# %% [markdown]
# ## AP's Table 2 and DA-VPT's Table 4, as ratios
#
# {ref}`AP's Table 2 <ap.table-2>` is judged on its own page. Here we divide its times and memory by those of full
# fine-tuning and compare with our ratios: memory counted at the paper's batch of 128, time measured in alternation at the
# batch size that fits our machine. DA-VPT's text gives two latencies, without and with all components. We compare them with
# DA-VPT and DA-VPT+ divided by VPT-Deep, with equally many prompts, in the fast form.

# %% name="published-ratios" tags=["hide-input"]
rows, used = cost_papers.ap_shares()
hardware = used[0].hardware if used else {}
page.present(
    pd.DataFrame(rows),
    evidence="measured" if used else "derived",
    records=used,
    caption="AP's Table 2: training time and memory as shares of full fine-tuning.",
    how=f"Times in alternation on {hardware['cpu']}, {hardware['threads']} threads, small batches; memory counted at 128."
    if used
    else "Memory counted at batch 128.",
)
if not used:
    page.not_timed("AP's Table 2", 'make notebook NAME=ap_cost ARGS="-p measure True"')

# %% tags=["hide-input"]
rows, used = cost_papers.davpt_shares(page)
page.present(
    pd.DataFrame(rows),
    evidence="measured" if used else "derived",
    records=used,
    caption="DA-VPT: time with its components divided by time without. The paper does not say whether its latency is for "
    "training; at inference the metric losses cost nothing.",
    how=where(used[0]) if used else "From the printed numbers.",
)
if not used:
    page.not_timed("DA-VPT over VPT-Deep", "OMP_NUM_THREADS=2 make bench")

# %% [markdown]
# ## Printed counts that the architecture does not give
#
# For every count of parameters or operations that the papers print, we built the network and counted. A count agrees if it
# rounds to the printed one. Some cannot be judged, because the setting is not stated and had to be fitted, or because the
# method is not part of this package. Below are the counts that disagree; rows with the same numbers are merged. The full
# list is folded below.

# %% name="counts" tags=["hide-input"]
told = cost_papers.told_counts(counts)
summary = pd.crosstab(told.paper, told.verdict).rename_axis(None, axis=1).reset_index()
page.present(
    summary, evidence="derived", caption="Printed counts by paper.", how="Counted on shapes."
)
page.present(
    cost_papers.wrong_counts(told),
    evidence="derived",
    caption="Printed counts that do not follow from the architecture, with their likely reading.",
    how="Counted on shapes; the last column says what was built.",
)
page.folded("All printed counts", cost_papers.every_count(told))
chapter.show_left_out()

# %% tags=["remove-output", "remove-input"]
page.close()
