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
# # What the methods cost
#
# Every prompt method here has a plain form, the paper's formula taken at its word, and most have a faster one that
# gives the same numbers. Three facts make it faster. A prompt whose output is dropped is a key and a value and
# nothing else, the same for every image of a batch. In the last block only the class token is read. And whatever
# lies below the first trained block is constant, so it can be computed once and kept.
#
# **What this page can settle.** Parameters, operations and a lower bound of the memory follow from the architecture
# and hold on any machine (`derived`). Times belong to the machine that is named beside them (`measured`); random
# weights serve as well as any. Times of different machines are never compared, only ratios that one machine, or one
# paper, gives by itself.

# %% tags=["parameters"]
profile = "quick"
device = "cpu"

# %% tags=["hide-input", "remove-output"]
import html
import statistics

import matplotlib.pyplot as plt
import pandas as pd
from IPython.display import HTML, display

import visprompt as vp
from visprompt import manifests, papers, paths
from visprompt.measure.cost import training_memory
from visprompt.measure.counts import printed_counts
from visprompt.measure.pairs import Side
from visprompt.measure.turns import speeds_in_turns
from visprompt.pages import plots
from visprompt.pages.page import Page
from visprompt.pages.parameters import Parameters, read_parameters
from visprompt.progress import progress
from visprompt.studies import bench
from visprompt.studies.statistics import interval

p = read_parameters(Parameters, globals())
page = Page("cost", p)
plots.style()
NAMES = {**plots.NAMES, bench.PLAIN: "VPT-Deep, concatenated"}
BLUE, ORANGE, GREY = plots.PALETTE["norm-tune"], plots.PALETTE["ap"], plots.PALETTE["linear-probe"]

timed = bench.kept_records()
machines = list(dict.fromkeys(record.settings["machine"] for record in timed))


def not_timed(what, command="make bench"):
    """Say that a measurement is not there, and what would make it."""
    display(
        HTML(
            f'<div class="vp-notrun"><span class="vp-badge vp-not-run">not run</span> {html.escape(what)} has not been '
            f"timed. This would do it:<pre>{html.escape(command)}</pre></div>"
        )
    )


def of(machine, name=None, model=None):
    """The bench records of one machine, of one name and model where these are given."""
    return [
        r
        for r in timed
        if r.settings["machine"] == machine
        and name in (None, r.settings["name"])
        and model in (None, r.settings.get("backbone"))
    ]


def best(name):
    """A record at the papers' ViT-Base/16, from a GPU where there is one; None where nothing was timed."""
    found = [r for r in timed if r.settings["name"] == name and r.settings.get("backbone") == bench.BASE]
    return max(found, key=lambda r: r.settings["device"] == "cuda", default=None)


def where(record):
    """Machine and batch of a record, for a caption."""
    chosen = record.settings
    return f"On {chosen['machine']}, batch {chosen['batch_size']}, {chosen['repeats']} rounds."


# %% [markdown]
# ## The bench
#
# `make bench` times both sides of a pair in one process, in turns: one step of the first, one of the second, and so
# on, after a round that is not counted. The ratio is the median over rounds of the first's time over the second's,
# and the range is over rounds too. A step is forward, loss, backward and optimizer. *Aim* is what this project set
# itself before it measured. *By operations* is the ratio that counted multiply-adds, forward and backward, would give.
# "a / b" are the two sides. `make bench` leaves records; `make notebook NAME=cost` then shows this machine's too.
#
# How to read the rows of cached activations. The aim $(L - l) / L$ supposes a plain step that goes through all $L$
# blocks both ways. Autograd already stops its way back at block $l$, so the plain step costs $L + (L - l)$ block
# passes and the cached one $2 (L - l)$; their ratio, $2(L - l) / (2L - l)$, is what can be reached. The last blocks
# come below it, because the last one computes the class token alone. DA-VPT maps classes to prompts again once an
# epoch; that is not part of a step.

# %% name="bench" tags=["hide-input"]
RATIOS = ["pair", "batch", "ratio", "range", "aim", "by operations"]
for machine in machines:
    shown = [r for r in of(machine) if r.settings["what"] != "methods"]
    rounds = sorted({r.settings["repeats"] for r in shown})
    for model, part in bench.rows(shown).groupby("model", sort=False):
        precisions = [name for name in part["precision"].unique() if name]
        columns = RATIOS if len(precisions) < 2 else [*RATIOS[:1], "precision", *RATIOS[1:]]
        rest = ["pair", *(name for name in part.columns if name not in (*columns, "model", "precision"))]
        records = [r for r in shown if bench.model_of(r) == model]
        page.present(
            part[[name for name in columns if (part[name] != "").any()]],
            evidence="measured",
            records=records,
            caption=f"Bench of {model} on {machine}.",
            how=f"Median and range of {' or '.join(map(str, rounds))} rounds, {' and '.join(precisions)}.",
        )
        part = part[rest].loc[:, (part[rest] != "").any()]
        if len(part.columns) > 1:
            display(
                HTML(
                    f'<div class="vp-printed"><details><summary>Seconds, parameters, operations and memory of {model}'
                    f'</summary><div class="vp-table">{part.to_html(border=0, index=False)}</div><p>Parameters, '
                    "operations and memory are counted, memory in float32.</p></details></div>"
                )
            )
if not any(r.settings["device"] == "cpu" for r in timed):
    not_timed("The bench on a CPU", "OMP_NUM_THREADS=2 make bench")
if not any(r.settings["device"] == "cuda" for r in timed):
    not_timed("The bench on a GPU", 'make bench ARGS="--device cuda"')

# %% [markdown]
# ## How cost grows with the number of prompts
#
# The plain form appends the prompts to the tokens, so that each goes through the whole block. As keys and values
# they cost their projection, which a batch shares, and their part of attention.

# %% name="growth" tags=["hide-input"]
COUNTS = [10, 20, 50, 100, 150, 200]
BATCH = 64


def macs(side):
    return bench.forward_macs(bench.BASE, side, BATCH)


bare, trimmed = macs(Side("linear-probe", trims=False)), macs(Side("linear-probe"))
plain, fast = [], []
for count in progress(COUNTS, "counting prompts"):
    plain.append(macs(Side("vpt-deep", {"prompt_tokens": count, "form": "concatenate"}, trims=False)))
    fast.append(macs(Side("vpt-deep", {"prompt_tokens": count})))

fig, (left, right) = plt.subplots(1, 2, figsize=(7, 3.4))
for records, start, color, label in (
    (plain, bare, ORANGE, "concatenated"),
    (fast, trimmed, BLUE, "keys and values"),
):
    left.plot([0, *COUNTS], [r.values["macs"] / 1e9 for r in (start, *records)], "o-", color=color, label=label, ms=4)
left.axhline(bare.values["macs"] / 1e9, color=GREY, ls="--", lw=1.2, label="bare network")
left.set(xlabel="prompts a block", ylabel="forward GMACs an image", ylim=(0, None), title="counted")
left.legend(loc="lower right")

used = []
pairs = [r for r in timed if r.settings["name"] in {f"vpt-deep-{count}" for count in bench.AIMS}]
groups = dict.fromkeys((r.settings["machine"], r.settings["backbone"]) for r in pairs)
colors = [BLUE, plots.PALETTE["vp"], "#009e73", "#cc79a7"]
for number, (machine, model) in enumerate(groups):
    records = [r for name in bench.AIMS for r in of(machine, f"vpt-deep-{name}", model)]
    x = [r.settings["first"]["settings"]["prompt_tokens"] for r in records]
    ratios = [bench.ratios(r) for r in records]
    y = [statistics.median(values) for values in ratios]
    low, high = ([abs(edge(v) - m) for v, m in zip(ratios, y)] for edge in (min, max))
    size = {"small": "ViT-S", "base": "ViT-B", "large": "ViT-L"}.get(model.split("_")[1], model)
    kind = "GPU" if records[0].settings["device"] == "cuda" else "CPU"
    look = {"fmt": "o-", "ms": 4, "lw": 1.2, "capsize": 2, "color": colors[number % 4]}
    right.errorbar(x, y, [low, high], label=f"{size}, {kind}", **look)
    used += records
right.plot(list(bench.AIMS), list(bench.AIMS.values()), "x", color="black", label="aim at ViT-B")
right.axhline(1, color=GREY, ls="--", lw=1.2)
right.set(xlabel="prompts a block", ylabel="step time over the plain form", ylim=(0, 1.1), xlim=(0, None))
right.set_title("measured: keys and values over concatenated" if used else "not measured yet", fontsize=10)
right.legend(loc="lower left")
on = f", on {'; '.join(dict.fromkeys(machine for machine, _ in groups))}" if used else ""
page.present(
    fig,
    evidence="measured" if used else "derived",
    records=[bare, trimmed, *plain, *fast, *used],
    caption="VPT-Deep in its two forms, by the number of prompts.",
    how=f"Left: counted at {bench.BASE}, batch {BATCH}; the fast form's last block computes the class token alone. "
    f"Right: ratio of step times in turns, median and range over rounds{on}.",
    alt="Left: operations of the concatenated form rise steeply with the prompts, those of keys and values hardly; at "
    "64 images a batch they stay near the bare network. Right: the ratio of step times at 10 to 100 prompts, by "
    "model.",
)
if not used:
    not_timed("The step time by number of prompts", "OMP_NUM_THREADS=2 make bench")

# %% [markdown]
# ## Memory and parameters, method by method
#
# What a training step must hold at once: all weights, a gradient and Adam's two moments for whatever is trained, and
# what autograd keeps for the way back. A framework's workspace comes on top. Activations make the difference: a
# prompt at the image needs the way back through every block, the linear probe none. Each method has its default
# settings, which are listed on the page of methods; what is constant is cached.

# %% name="memory" tags=["hide-input"]
memory = {slug: bench.counted_memory(slug) for slug in progress(bench.BY_METHOD, "counting memory")}
order = sorted(memory, key=lambda slug: memory[slug].values["memory"]["total"], reverse=True)
fig, (left, right) = plt.subplots(1, 2, figsize=(7, 6.4), sharey=True, width_ratios=[3, 2])
edge = [0.0] * len(order)
for parts, color, label in (
    (["weights"], GREY, "weights"),
    (["gradients", "optimizer"], ORANGE, "gradients, Adam"),
    (["activations"], BLUE, "activations"),
):
    width = [sum(memory[slug].values["memory"][part] for part in parts) / 2**30 for slug in order]
    left.barh([NAMES[slug] for slug in order], width, left=edge, color=color, label=label)
    edge = [a + b for a, b in zip(edge, width)]
left.set(xlabel="GiB, counted", xlim=(0, 1.12 * max(edge)))
for y, total in enumerate(edge):
    left.text(total, y, f" {total:.2f}", va="center", fontsize=8)
left.legend(loc="upper right", fontsize=8)
trained = [memory[slug].values["parameters"] / 1e6 for slug in order]
right.barh([NAMES[slug] for slug in order], [max(value, 1e-3) for value in trained], color=ORANGE)
for y, value in enumerate(trained):
    right.text(max(value, 1e-3), y, f" {value:.3f}" if value else " the head alone", va="center", fontsize=8)
right.set(xscale="log", xlim=(1e-3, 3e3), xlabel="trained, millions (no head)")
for ax in (left, right):
    ax.grid(axis="y", visible=False)
page.present(
    fig,
    evidence="derived",
    records=list(memory.values()),
    caption=f"Memory of a training step and trained parameters at {bench.BASE}, batch {bench.MEMORY_BATCH}, float32.",
    how="Counted on shapes; default settings of each method, 100 classes.",
    alt=f"Bars by method, from {NAMES[order[0]]} with most memory to {NAMES[order[-1]]} with least; beside them the "
    "trained parameters on a logarithmic axis.",
)

# %% [markdown]
# (ivpt.table-8)=
# ## iVPT, Table 8: Run-time cost
#
# iVPT {cite}`ivpt` holds that its three parts add next to nothing to VPT {cite}`jia2022visual`. The counts follow from
# the architecture, with the numbers of prompts of its Table 16. They show a contradiction inside the table: so many
# prompts as the printed parameters pay for need, concatenated, far more operations than the bare network; the printed
# workload is that of a network with next to none. Time is measured in turns, iVPT with $N = k = 10$ against VPT-Deep
# with 10 prompts, both in the fast form.

# %% name="ivpt.table-8" tags=["hide-input"]
counts = printed_counts().set_index("id")
cells = vp.published("ivpt.table-8").set_index("method")


def cell(method, column):
    return float(cells.loc[method, column].replace(",", ""))


def printed_ratio(column):
    return cell("iVPT", column) / cell("VPT", column)


rows = []
for column, what in (("params_m", "parameters, M"), ("workload_gflops", "multiply-adds, G")):
    kind = "parameters" if column == "params_m" else "operations"
    for method in ("VPT", "iVPT"):
        count = counts.loc[f"ivpt.table-8.{method.lower()}-{kind}"]
        rows.append(
            {
                "method": method,
                "what": what,
                "printed": cells.loc[method, column],
                "counted": f"{count.computed:.3f}",
                "reading": count.reading,
            }
        )
page.show(
    "ivpt.table-8",
    pd.DataFrame(rows),
    evidence="derived",
    how="Counted on shapes. VPT's number of prompts is fitted to its printed parameters; the paper does not state it.",
    caption="Parameters and operations of one image, beside the printed ones. DAM-VP is not of this package.",
)
for claim, id in {
    "vpt-operations": "vpt-operations",
    "ivpt-operations": "ivpt-operations",
    "ivpt-parameters": "ivpt-parameters",
    "workload-added": "text-extra-workload",
}.items():
    count = counts.loc[f"ivpt.table-8.{id}"]
    page.judge(f"ivpt.table-8.{claim}", count.computed, evidence="derived", note=f"{count.reading.rstrip('.')}.")
parts = [counts.loc[f"ivpt.table-8.text-{part}-parameters"].printed for part in ("cdc", "da", "ar")]
head = float(vp.published("ivpt.table-1").set_index("method").params_m["Linear probing"])
page.judge("ivpt.table-8.parts-sum", sum(parts) + head, evidence="derived", note="From the printed numbers.")

record = best("ivpt")
if record is not None:
    values = record.values
    how = f"Median of rounds in turns. {where(record)}"
    measured = [
        ("latency", "latency, ms", "latency_ms", bench.ratios(record, "infer_seconds"), "inference"),
        ("training-time", "training, minutes", "training_time_min", bench.ratios(record), "training step"),
    ]
    rows = [
        {
            "what": what,
            "VPT, printed": cells.loc["VPT", column],
            "iVPT, printed": cells.loc["iVPT", column],
            "iVPT over VPT, printed": f"{printed_ratio(column):.3f}",
            "iVPT over VPT, here": f"{statistics.median(ratios):.3f}",
            "range here": f"{min(ratios):.3f} to {max(ratios):.3f}",
            "of": of_what,
        }
        for _, what, column, ratios, of_what in measured
    ]
    share = values["first"]["memory"] / values["second"]["memory"]
    rows.append(
        {
            "what": "memory, MB",
            "VPT, printed": cells.loc["VPT", "memory_mb"],
            "iVPT, printed": cells.loc["iVPT", "memory_mb"],
            "iVPT over VPT, printed": f"{printed_ratio('memory_mb'):.4f}",
            "iVPT over VPT, here": f"{share:.4f}",
            "range here": "counted",
            "of": "training step",
        }
    )
    page.show(
        "ivpt.table-8",
        pd.DataFrame(rows),
        evidence="measured",
        records=[record],
        how=how,
        caption="iVPT over VPT: the printed ratio, of one RTX 2080 Ti, and the ratio here. Only ratios compare.",
    )
    for claim, _, _, ratios, of_what in measured:
        page.judge(
            f"ivpt.table-8.{claim}",
            *interval([ratio - 1 for ratio in ratios]),
            evidence="measured",
            records=[record],
            note=f"{of_what.capitalize()} at {bench.BASE} with random weights. {where(record)}",
        )
    page.judge(
        "ivpt.table-8.memory",
        share - 1,
        evidence="derived",
        records=[record],
        note=f"Counted at batch {record.settings['batch_size']}.",
    )
page.printed("ivpt.table-8", "Table 8 as printed")
page.not_run(
    "ivpt.table-8",
    why="The printed milliseconds, minutes and megabytes belong to an RTX 2080 Ti; DAM-VP is not of this package; "
    "accuracy needs the published weights and VTAB-1K."
    + ("" if record is not None else " The ratio of iVPT to VPT has not been timed here yet."),
    command='make bench ARGS="--device cuda"',
)

# %% [markdown]
# (spt.table-1)=
# ## SPT, Table 1: Time to build the prompts
#
# SPT {cite}`spt` starts its prompts from the task's own tokens and asks what that costs: k-means over all tokens takes
# the authors 27.3 days, pooling or sampling seconds. Two things are done otherwise here. Random starts draw the places
# first, so that only images with a drawn token go through the network, and only the drawn tokens are kept. And k-means
# streams the tokens, every iteration anew, in the memory of one batch; it is Lloyd's algorithm and nothing else, so
# an iteration takes time in proportion to the images. In the printed row the time grows far faster than the data.

# %% name="spt.table-1" tags=["hide-input"]
cells = vp.published("spt.table-1").set_index("strategy").drop(columns="doubt")
seconds = cells.map(lambda text: float(text[:-1]) * (86400 if text.endswith("d") else 1))
rows = []
for strategy in seconds.index:
    over = seconds.loc[strategy] / seconds.loc["Mean pooling"]
    rows.append(
        {
            "strategy": strategy,
            **{f"over mean pooling, {share}": f"{over[share]:,.2f}" for share in ("10%", "100%")},
            "100 % of the images over 10 %": f"{seconds.loc[strategy, '100%'] / seconds.loc[strategy, '10%']:.1f}",
        }
    )
page.show(
    "spt.table-1",
    pd.DataFrame(rows),
    evidence="derived",
    how="Divided from the printed cells.",
    caption="What the printed times say of each other.",
)
record = best("spt-starts")
if record is not None:
    values, chosen = record.values["seconds"], record.settings
    median = {name: statistics.median(times) for name, times in values.items()}
    pool, images = chosen["pool"], chosen["images"]
    grown, whole = record.values["growth_mb"] / 1024, record.values["pool_mb"] / 1024

    def of_all(name):
        """Seconds for the whole pool at the rate measured; pooling and k-means see every image once a pass."""
        return f"{median[name] / images * pool:,.0f}{'' if images == pool else ' (extrapolated)'}"

    column = f"{pool:,} images, s"
    rows = [
        {
            "start": "random sample",
            "images": f"drawn from {pool:,}",
            "seconds": f"{median['random from all']:.2f}",
            column: f"{median['random from all']:.2f}",
            "memory": f"grows by {grown:.2f} GiB; all tokens are {whole:.1f} GiB",
        }
    ]
    labels = {"mean": "mean pooling", "max": "max pooling", "one iteration": "k-means, one iteration"}
    for name, label in labels.items():
        seen = {"start": label, "images": f"{images:,}", "seconds": f"{median[name]:.2f}", column: of_all(name)}
        rows.append({**seen, "memory": "one batch and the result"})
    page.show(
        "spt.table-1",
        pd.DataFrame(rows),
        evidence="measured",
        records=[record],
        how=f"Median of {chosen['repeats']} rounds in turns on {chosen['machine']}; {record.values['prompts']} prompts "
        f"at {record.values['blocks']} blocks of {chosen['backbone']}, random weights.",
        caption="Seconds to start the prompts of SPT-Deep.",
    )
    rounds = list(zip(values["one iteration"], values["mean"], values["max"], values["random"], strict=True))
    shown = f"{images:,} images on {chosen['machine']}"
    page.judge(
        "spt.table-1.k-means-over-mean",
        *interval([(50 * once + mean) / mean for once, mean, _, _ in rounds]),
        evidence="measured",
        records=[record],
        note=f"One iteration was timed, times 50, after its start, which is mean pooling; {shown}. It may stop sooner.",
    )
    page.judge(
        "spt.table-1.max-over-mean",
        *interval([most / mean - 1 for _, mean, most, _ in rounds]),
        evidence="measured",
        records=[record],
        note=f"{shown}; nearly all of the time is the forward pass, which both share.",
    )
    page.judge(
        "spt.table-1.random-over-mean",
        *interval([drawn / mean - 1 for _, mean, _, drawn in rounds]),
        evidence="measured",
        records=[record],
        note=f"{shown}; only images with a drawn token are run, which sets sampling apart more with more images.",
    )
page.printed("spt.table-1", "Table 1 as printed")
page.not_run(
    "spt.table-1",
    why="The printed times are those of CUB-200-2011's own images on hardware that the paper does not name."
    + ("" if record is not None else " The starts have not been timed here yet."),
    command="OMP_NUM_THREADS=2 make bench" if record is None else 'make bench ARGS="--device cuda"',
)

# %% [markdown]
# ## AP's Table 2 and DA-VPT's Table 4, as ratios
#
# {ref}`AP's Table 2 <ap.table-2>` is judged on its own page. Here its times and memory are divided by those of full
# fine-tuning, beside the same ratio here: memory by counting at the paper's batch of 128, time in turns at the batch
# that the machine holds. DA-VPT's text gives two latencies, without and with all its components; the second column
# of its table is this package's DA-VPT and DA-VPT+ over VPT-Deep, with as many prompts, in the fast form.

# %% name="published-ratios" tags=["hide-input"]
LARGE = {"ResNet-101": ("resnet101", 8), "ViT-Large/16": ("vit_large_patch16_224", 2)}
SLUGS = {
    "FULL-FINETUNE": ("full-finetune", {}),
    "LINEAR-PROBE": ("linear-probe", {}),
    "NORM-TUNE": ("norm-tune", {}),
    "VP": ("vp", {"padding": 48}),
    "AP": ("ap", {}),
}
cells = vp.published("ap.table-2")
rows, used = [], []
for architecture, (name, batch) in progress(LARGE.items(), "counting AP's Table 2"):
    backbone = vp.load_backbone(name, device="meta")
    models = {method: vp.build_method(slug, backbone, 10, **settings) for method, (slug, settings) in SLUGS.items()}
    bytes_of = {method: training_memory(model, 128)["total"] for method, model in models.items()}
    turns = speeds_in_turns(name, dict(SLUGS.values()), batch_size=batch, repeats=4, run=False)
    used += [turns] if turns is not None else []
    part = cells[cells.architecture == architecture].set_index("method")
    for method, (slug, _) in SLUGS.items():
        if method == "FULL-FINETUNE":
            continue
        time_here = "not timed"
        if turns is not None:
            both = zip(turns.values[slug]["train_seconds"], turns.values["full-finetune"]["train_seconds"], strict=True)
            time_here = f"{statistics.median(a / b for a, b in both):.2f}"
        numbers = part[["time_s_per_epoch", "memory_g"]].astype(float)
        ratio = numbers.loc[method] / numbers.loc["FULL-FINETUNE"]
        rows.append(
            {
                "architecture": architecture,
                "method": method,
                "time of full, printed": f"{ratio['time_s_per_epoch']:.2f}",
                "time of full, here": time_here,
                "memory of full, printed": f"{ratio['memory_g']:.2f}",
                "memory of full, counted": f"{bytes_of[method] / bytes_of['FULL-FINETUNE']:.2f}",
            }
        )
hardware = used[0].hardware if used else {}
page.present(
    pd.DataFrame(rows),
    evidence="measured" if used else "derived",
    records=used,
    caption="AP's Table 2: training time and memory as shares of full fine-tuning.",
    how=f"Times in turns on {hardware['cpu']}, {hardware['threads']} threads, at small batches; memory counted at 128."
    if used
    else "Memory counted at batch 128.",
)
if not used:
    not_timed("AP's Table 2", 'make notebook NAME=ap_cost ARGS="-p measure True"')

prose = manifests.read_table(paths.MANIFESTS / "papers" / "davpt" / "prose.csv").set_index("id").value
before, after = (float(prose[f"latency-{name}"].split()[0]) for name in ("before", "after"))
rows, used = [{"source": "DA-VPT, Section 4.3.1", "with": "all components", "over VPT": f"{after / before:.3f}"}], []
record, methods = best("da-vpt"), best("methods")
if record is not None:
    used.append(record)
    rows.append(
        {
            "source": f"here, {record.settings['machine']}",
            "with": "DA-VPT, a training step",
            "over VPT": f"{statistics.median(bench.ratios(record)):.3f}",
        }
    )
if methods is not None:
    used.append(methods)
    both = zip(methods.values["da-vpt-plus"]["seconds"], methods.values["vpt-deep"]["seconds"], strict=True)
    rows.append(
        {
            "source": f"here, {methods.settings['machine']}",
            "with": "DA-VPT+, a training step",
            "over VPT": f"{statistics.median(a / b for a, b in both):.3f}",
        }
    )
page.present(
    pd.DataFrame(rows),
    evidence="measured" if used else "derived",
    records=used,
    caption="DA-VPT: time with its components over time without. The paper does not say whether its latency is that of "
    "training; at inference the metric losses cost nothing.",
    how=where(used[0]) if used else "Divided from the printed numbers.",
)
if not used:
    not_timed("DA-VPT over VPT-Deep", "OMP_NUM_THREADS=2 make bench")

# %% [markdown]
# ## Time for one VTAB-sized task
#
# 800 training images, 100 epochs, ViT-Base/16: 80,000 images through a training step. The time is the measured step
# times the number of steps, and for methods with a cache the one pass that fills it. Each method has its default
# settings. What comes once or once an epoch is left out: SPT's start, DA-VPT's clusters, evaluation. E2VPT trains
# twice, before and after it prunes. Nobody among the papers prints this number.


# %% name="vtab" tags=["hide-input"]
def readable(seconds):
    """Seconds as seconds, minutes or hours."""
    unit, size = next(((u, s) for u, s in (("h", 3600), ("min", 60)) if seconds >= 2 * s), ("s", 1))
    return f"{seconds / size:.1f} {unit}"


for machine in machines:
    for record in of(machine, "methods"):
        batch = record.settings["batch_size"]
        seconds = {slug: bench.task_seconds(slug, record) for slug in record.values}
        order = sorted(seconds, key=seconds.get, reverse=True)
        unit, size = ("hours", 3600) if max(seconds.values()) > 7200 else ("minutes", 60)
        fig, ax = plt.subplots(figsize=(7, 5.6))
        ax.barh(
            [NAMES[slug] for slug in order],
            [seconds[slug] / size for slug in order],
            color=[GREY if slug == bench.PLAIN else BLUE for slug in order],
        )
        for y, slug in enumerate(order):
            ax.text(seconds[slug] / size, y, f" {readable(seconds[slug])}", va="center", fontsize=8)
        ax.set(xlabel=f"{unit} for one task", xlim=(0, 1.12 * max(seconds.values()) / size))
        ax.grid(axis="y", visible=False)
        slow, quick = order[0], order[-1]
        page.present(
            fig,
            evidence="measured",
            records=[record],
            caption=f"Time for one task of {bench.TASK_IMAGES} images and {bench.TASK_EPOCHS} epochs at {bench.BASE}, on {machine}.",
            how=f"Computed from measured steps (median of {record.settings['repeats']} rounds, batch {batch}); "
            "activations below the first trained block are cached, except in the concatenated form.",
            alt=f"Bars by method, from {NAMES[slow]} with {readable(seconds[slow])} down to {NAMES[quick]} with "
            f"{readable(seconds[quick])}.",
        )
if not any(r.settings["name"] == "methods" for r in timed):
    not_timed("The step of every method", "OMP_NUM_THREADS=2 make bench")

# %% [markdown]
# ## Printed counts that the architecture does not give
#
# Every count of parameters and operations that the papers print was built and counted. A count agrees when it rounds
# to the printed one. Some rows cannot be judged: the setting is not stated and was fitted, or the method is not of
# this package. Below are the rows that disagree, those with the same numbers together; the whole list follows folded.

# %% name="counts" tags=["hide-input"]
verdicts = counts.agrees.map(lambda agrees: {True: "agrees", False: "disagrees"}.get(agrees, "cannot be judged"))
paper = counts.artifact.str.split(".").str[0].map({slug: entry["short"] for slug, entry in papers.papers().items()})
table = counts.assign(verdict=verdicts, paper=paper)
summary = pd.crosstab(table.paper, table.verdict).rename_axis(None, axis=1).reset_index()
page.present(summary, evidence="derived", caption="Printed counts by paper.", how="Counted on shapes.")


def shown_number(value):
    return "–" if pd.isna(value) else f"{value:.6g}"  # as many digits as any printed count has


wrong = table[table.verdict == "disagrees"]
keys = ["paper", "method", "unit", "printed", "computed", "reading"]
rows = wrong.groupby(keys, sort=False)["where"].agg(lambda places: ", ".join(dict.fromkeys(places))).reset_index()
rows = rows[["paper", "where", "method", "unit", "printed", "computed", "reading"]]
rows[["printed", "computed"]] = rows[["printed", "computed"]].map(shown_number)
page.present(
    rows,
    evidence="derived",
    caption="Printed counts that the architecture does not give.",
    how="Counted on shapes; what was built is in the last column.",
)
whole = table.assign(printed=table.printed.map(shown_number), computed=table.computed.map(shown_number))
columns = ["paper", "where", "method", "unit", "printed", "computed", "verdict", "reading"]
display(
    HTML(
        '<div class="vp-printed"><details><summary>All printed counts</summary><div class="vp-table">'
        f"{whole[columns].to_html(border=0, index=False)}</div></details></div>"
    )
)

# %% tags=["remove-output", "remove-input"]
page.close()
