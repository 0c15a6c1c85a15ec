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
# # iVPT: task by task, and what was trained with what
#
# The appendix of *iVPT: Cross-layer Dynamic Connection* {cite}`ivpt`: results by task behind the tables of [](ivpt.ipynb)
# and [](ivpt_parts.ipynb), numbers of prompts, data sets and backbones. We recompute every printed mean from the cells of
# its row.

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

from visbook.chapters import ivpt
from visbook.chapters.chapter import Chapter
from visbook.studies import statistics
from visprompt import papers
from visprompt.data.tasks import embedded_tasks

OWN = ["benchmark", "ivpt-structures", "ivpt-parts", "sizes", "sizes-swin", "pretraining"]
chapter = Chapter.opened("ivpt_appendix", globals(), OWN)
page = chapter.page

# %% [markdown]
# (ivpt.table-10)=
# ## Table 10: Per-task results of the component ablation
#
# The tasks behind {ref}`Table 2 <ivpt.table-2>`.

# %% name="ivpt.table-10" tags=["hide-input"]
ivpt.per_task(chapter, "ivpt.table-10", ivpt.of_vtab(chapter, *ivpt.STEPS))
chapter.end("ivpt.table-10", ivpt.SCALE)

# %% [markdown]
# (ivpt.table-11)=
# ## Table 11: Per-task results of the structure ablation
#
# The tasks behind {ref}`Table 3 <ivpt.table-3>`. The paper's text says that CDC (E) is consistently better than vanilla
# CDC (D). That holds for the groups; the cells below show it task by task.

# %% name="ivpt.table-11" tags=["hide-input"]
ivpt.per_task(chapter, "ivpt.table-11", ivpt.of_vtab(chapter, *ivpt.STRUCTURES))
chapter.end("ivpt.table-11", ivpt.SCALE)

# %% [markdown]
# (ivpt.table-12)=
# ## Table 12: Per-task results of the reinforcement settings
#
# The tasks behind {ref}`Table 4 <ivpt.table-4>`.

# %% name="ivpt.table-12" tags=["hide-input"]
ivpt.per_task(chapter, "ivpt.table-12", ivpt.of_vtab(chapter, *ivpt.PLACES))
chapter.end("ivpt.table-12", ivpt.SCALE)

# %% [markdown]
# (ivpt.table-13)=
# ## Table 13: Per-task results on other backbones
#
# The tasks behind {ref}`Table 5 <ivpt.table-5>`.

# %% name="ivpt.table-13" tags=["hide-input"]
sizes = ivpt.of_sizes(chapter)
frame = pd.concat(sizes.values()) if sizes else pd.DataFrame()
table = ivpt.stacked(sizes, "backbone", statistics.task_table) if sizes else None
ivpt.per_task(chapter, "ivpt.table-13", frame, table)
chapter.end("ivpt.table-13", ivpt.SIZES_WHY)

# %% [markdown]
# (ivpt.table-14)=
# ## Table 14: Per-task results for other pre-trainings
#
# The tasks behind {ref}`Table 6 <ivpt.table-6>`.

# %% name="ivpt.table-14" tags=["hide-input"]
pre = ivpt.of_pretrainings(chapter)
frame = pd.concat(pre.values()) if pre else pd.DataFrame()
table = ivpt.stacked(pre, "pre-training", statistics.task_table) if pre else None
ivpt.per_task(chapter, "ivpt.table-14", frame, table)
chapter.end("ivpt.table-14", ivpt.PRE_WHY)

# %% [markdown]
# (ivpt.table-15)=
# ## Table 15: Prompt numbers used on FGVC
#
# $N$ and $k$ as printed, and the trained parameters that follow on a ViT-B/16 with $L = 12$ blocks of width $D = 768$ and
# $C$ classes:
#
# $$ L N D + (L - 1) N^2 + (L - 1) k D + (D + 1) C . $$
#
# The four terms are CDC's prompts, DA's weights, AR's prompts and the head.

# %% name="ivpt.table-15" tags=["hide-input"]
ivpt.prompt_parameters(chapter, "ivpt.table-15", "fgvc", "Table 9")

# %% [markdown]
# (ivpt.table-16)=
# ## Table 16: Prompt numbers used on VTAB-1k
#
# The same for the 19 tasks of VTAB-1k. Numbers of prompts range from 5 to 200, so a few tasks dominate the mean.

# %% name="ivpt.table-16" tags=["hide-input"]
ivpt.prompt_parameters(chapter, "ivpt.table-16", "vtab", "Table 1")

# %% [markdown]
# (ivpt.table-17)=
# ## Table 17: Data set statistics
#
# The paper's data sets as printed, and the tasks that take their place in the quick profile.

# %% name="ivpt.table-17" tags=["hide-input"]
page.printed("ivpt.table-17", "Table 17 as printed")
order = ["natural", "specialized", "structured", "fine"]
entries = sorted(embedded_tasks().items(), key=lambda item: order.index(item[1]["group"]))
rows = [
    (name, task["group"], len(task["classes"]), *task["splits"], task["nature"])
    for name, task in entries
]
page.show(
    "ivpt.table-17",
    pd.DataFrame(rows, columns=["task", "group", "classes", "train", "val", "test", "nature"]),
    evidence="derived",
    how="From data_manifests/tasks.yaml.",
    caption="The embedded tasks in VTAB's groups, and the fine-grained one.",
)
note = "19 of VTAB-1k, 5 of FGVC and ADE20K."
ivpt.derive(chapter, "ivpt.table-17.benchmarks", len(papers.published("ivpt.table-17")), note)

# %% [markdown]
# (ivpt.table-18)=
# ## Table 18: Backbone specifications
#
# Parameters, and token width after the last block, counted on the architectures. That needs no weights.

# %% name="ivpt.table-18" tags=["hide-input"]
ARCHITECTURES = {
    "ViT-B/16": ivpt.BASE,
    "ViT-L/16": "vit_large_patch16_224",
    "ViT-H/14": "vit_huge_patch14_224",
    "Swin-B": "swin_base_patch4_window7_224",
}
found = ivpt.backbone_rows(ARCHITECTURES)
headed = found["with ImageNet's head, M"]
for name, bare, more in zip(found.backbone, found["without head, M"], headed, strict=True):
    claim, note = (
        f"ivpt.table-18.{name.lower().split('/')[0]}-parameters",
        f"{more:.2f} million with ImageNet's head of 1,000 classes.",
    )
    ivpt.derive(chapter, claim, bare, note)
ivpt.derive(
    chapter, "ivpt.table-18.widths", int((found["printed D"].astype(int) != found.D).sum()), ""
)
page.show(
    "ivpt.table-18",
    found.map(lambda value: f"{value:.2f}" if isinstance(value, float) else value),
    evidence="derived",
    how="Counted on the architectures of timm, without weights.",
    caption="Parameters and token width of the backbones, beside the printed values.",
)
page.printed("ivpt.table-18", "Table 18 as printed")
chapter.show_left_out()

# %% [markdown]
# ## Try it
#
# `salient_tokens` is the paper's $k$; the default is 10. {ref}`What this call does <try-it>`.

# %% name="try-it"
from visbook.chapters.try_it import try_it

try_it("ivpt", salient_tokens=5)

# %% tags=["remove-output", "remove-input"]
page.close()
