"""Every count of parameters and of operations that the papers print, against the architectures."""

import math
from functools import cache

import pandas as pd
import pytest

from visbook.auditing.counts import count, number, printed_counts
from visprompt import manifests, papers, paths

LARGE, BASE, RESNET = "vit_large_patch16_224", "vit_base_patch16_224", "resnet101"
AP_TABLES = ["4", "a3", "a4", "a5", "a6", "a7"]  # ViT-Large/16, one column of parameters
VTAB, FGVC = 940 / 19 * 769 / 1e6, 1173 / 5 * 769 / 1e6  # ViT-Base's mean heads, millions

# Printed counts that the architecture does not give, in millions, billions of multiply-adds or
# times: what it gives.
DISAGREE = {
    "ap.table-2.resnet-101-ap": 0.221194,
    "ap.table-2.vit-large-16-norm-tune": 0.110602,
    "ap.table-2.vit-large-16-ap": 0.211978,
    **{f"ap.table-{table}.ap": 0.211978 for table in AP_TABLES},
    "ap.table-4.ssf": 0.555018,
    "ap.table-a7.ssf": 0.555018,
    "ap.table-a3.ap-product": 0.211978,
    "ap.table-a4.ap-3": 0.615434,
    "ap.table-a4.ap-5": 1.01889,
    "ap.table-a2.ap": 1 + 24 * (197 * 768 + 769 * 2113 / 24) / 85_798_656,
    **{
        f"ivpt.table-{row}": (745 * 12 * 768 + 414 * 11 * 768 + 67_625 * 11) / 19e6 + VTAB
        for row in ("1.ivpt", "8.ivpt-parameters", "8.text-parameters")
    },
    "ivpt.table-8.text-da-parameters": 67_625 * 11 / 19e6,
    "ivpt.table-18.vit-l-16-supervised": 304.326632,
}
# Rows whose settings no paper states, by the end of their id: no integer gives the printed count.
NO_INTEGER = (
    "linear-probing",
    "adapter",
    "adapterformer",
    "lora",
    "lora-vtab",
    "adaptformer",
    "fewer-prompts",
    "vpt-operations",
    "ivpt-operations",
    "full-finetune",
    "resnet-101-full-finetune",
    "vit-large-16-full-finetune",
    "bias",
)
NUMBERS = [
    "parameters_m",
    "total_parameters",
    "params_m",
    "fgvc_params_m",
    "vtab_params_m",
    "workload_gflops",
]


@cache
def counts() -> pd.DataFrame:
    return printed_counts().set_index("id")


def rounds_to(computed: float, printed: str) -> bool:
    value, unit = number(printed)
    return abs(computed - value) <= unit / 2


def test_rows_are_complete():
    """Each printed number is there once."""
    table = counts().reset_index()
    assert list(table.columns) == [
        "id",
        "artifact",
        "where",
        "method",
        "unit",
        "printed",
        "computed",
        "agrees",
        "reading",
    ]
    assert table["id"].is_unique and (table[["where", "method", "reading"]] != "").all(axis=None)
    known = [*papers.artifacts().index, "spt.prose"]
    assert table["artifact"].isin(known).all()
    assert set(table["unit"]) == {"M parameters", "GFLOPs", "ratio", "%"}
    inside = table[~table["id"].str.contains(r"\.text-|prose", regex=True)]
    for artifact in inside["artifact"].unique():
        cells = papers.published(artifact)
        cells = cells[[name for name in NUMBERS if name in cells.columns]].stack()
        printed = sorted(float(cell.rstrip("×")) for cell in cells if cell not in ("", "-"))
        assert printed == sorted(inside.loc[inside["artifact"] == artifact, "printed"]), artifact
    for paper, ids in (("ivpt", 6), ("spt", 8), ("davpt", 2)):
        prose = manifests.read_table(paths.MANIFESTS / f"papers/{paper}/prose.csv")
        # accuracies are printed bare, and times are no counts
        units = prose["value"].str.contains(r"\d ?[MG%×]")
        prose = prose[units & ~prose["id"].str.startswith(("latency", "pooled"))]
        assert len(prose) == ids and set(prose["id"]) <= set(table["method"])


def test_printed_is_the_cell():
    """Each printed number stands in the row of its method, or is the value of its prose."""
    for id, row in counts().iterrows():
        if ".text-" in id or ".prose" in id:
            paper = row["artifact"].split(".")[0]
            prose = manifests.read_table(paths.MANIFESTS / f"papers/{paper}/prose.csv").set_index(
                "id"
            )
            assert number(prose.loc[row["method"], "value"])[0] == row["printed"]
            continue
        cells = papers.published(row["artifact"])
        key = "backbone" if row["artifact"] == "ivpt.table-18" else "method"
        mine = cells.loc[
            cells[key] == row["method"], [name for name in NUMBERS if name in cells.columns]
        ].stack()
        assert row["printed"] in [
            float(cell.rstrip("×")) for cell in mine if cell not in ("", "-")
        ], id


def test_every_decidable_count():
    """A printed count agrees, or is listed with what the architecture gives."""
    table = counts()
    assert set(table.index[table["agrees"].eq(False)]) == set(DISAGREE)
    for id, expected in DISAGREE.items():
        assert table.loc[id, "computed"] == pytest.approx(expected, abs=1e-6), id
        assert not table.loc[id, "reading"].endswith(". "), id


def test_undecided_counts():
    """Without a stated setting nothing is judged: the chosen integer fits, or its row is known to
    have none."""
    table = counts()
    undecided = table[table["agrees"].isna()]
    ours = undecided[undecided["computed"].notna()]
    assert len(undecided) == 76 and len(ours) == 64
    assert ours["reading"].str.contains("fitted, because not stated").all()
    for id, row in ours.iterrows():
        name = id.split(".")[-1]
        unit = 0.1 if row["unit"] == "%" else 0.01
        fits = abs(row["computed"] - row["printed"]) <= unit / 2
        adapter_of_12 = name == "adapter" and row["artifact"] in ("spt.table-3", "ivpt.table-1")
        assert fits == (name not in NO_INTEGER or adapter_of_12), id
    foreign = undecided[undecided["computed"].isna()]
    assert set(foreign["method"]) == {"MP", "SNF", "SCT", "FacT", "Bi-Adapter", "SPT", "DAM-VP"}


@pytest.mark.parametrize(
    "slug, backbone, setting, others, head, printed",
    [
        ("adapter", LARGE, "bottleneck", {}, 0.01025, "2.17"),
        ("adapter", LARGE, "bottleneck", {}, 0.01025, "2.07"),
        ("adapter", LARGE, "bottleneck", {"places": ("mlp",)}, 0.01025, "2.17"),
        ("adapter", LARGE, "bottleneck", {"places": ("mlp",)}, 0.01025, "2.07"),
        ("adapter", BASE, "bottleneck", {}, FGVC, "0.41"),
        ("adapter", BASE, "bottleneck", {}, VTAB, "0.27"),
        ("adaptformer", LARGE, "bottleneck", {}, 0.01025, "0.65"),
        ("adaptformer", BASE, "bottleneck", {}, VTAB, "0.22"),
        ("lora", BASE, "rank", {}, VTAB, "0.32"),
        ("lora", BASE, "rank", {}, VTAB, "0.43"),
    ],
)
def test_no_integer_gives_it(slug, backbone, setting, others, head, printed):
    """Counts are linear in the setting; none up to 200 rounds to the printed one."""
    one, two, ten = (
        count(backbone, slug, tuple({setting: n, **others}.items()), False) / 1e6
        for n in (1, 2, 10)
    )
    assert ten == pytest.approx(one + 9 * (two - one))
    assert not any(rounds_to(one + n * (two - one) + head, printed) for n in range(200))


def test_what_the_notes_say_fits():
    """The explanations in `counts.yaml`, recomputed."""
    head = {LARGE: 1025e-6, RESNET: 2049e-6}  # of one class

    def millions(backbone, slug, **settings):
        return count(backbone, slug, tuple(settings.items()), False) / 1e6

    assert rounds_to(millions(LARGE, "full-finetune") + 1000 * head[LARGE], "304.33")
    assert rounds_to(millions(RESNET, "full-finetune") + 1000 * head[RESNET], "44.5")
    assert rounds_to(2048 * 7 * 7 / 1e6 + 10 * head[RESNET], "0.12")
    assert rounds_to(millions(LARGE, "norm-tune") / 2 + 10 * head[LARGE], "0.06")
    for prompts, printed in ((1, "0.16"), (3, "0.46"), (5, "0.76")):
        assert rounds_to(prompts * 196 * 768 / 1e6 + 10 * head[LARGE], printed)
    frames = {p: millions(LARGE, "vp", padding=p) for p in range(30, 60)}
    fit = [
        p
        for p in frames
        if rounds_to(frames[p] + 0.01025, "0.11") and rounds_to(frames[p] + 0.02049, "0.12")
    ]
    assert fit == list(range(44, 51))
    classes = {
        slug: [
            c for c in range(1, 99) if rounds_to(millions(LARGE, slug) + c * head[LARGE], printed)
        ]
        for slug, printed in (("bias", "0.29"), ("lora", "1.00"))
    }
    assert classes == {"bias": list(range(13, 23)), "lora": list(range(12, 22))}
    assert rounds_to(millions(LARGE, "vpt-deep", prompt_tokens=10) + 0.00769, "0.25")
    assert rounds_to(millions(LARGE, "vpt-deep", prompt_tokens=50) + 0.00769, "1.24")
    assert rounds_to(24 * 2 * 1024 * 13 / 1e6 + 0.01025, "0.65")  # AdaptFormer without biases
    of_mean = 11 * (745 / 19) ** 2 / 1e6  # DA with the mean N of Table 16
    assert rounds_to(of_mean, "0.02")
    assert rounds_to((745 * 12 + 414 * 11) * 768 / 19e6 + of_mean + VTAB, "0.60")
    assert rounds_to(millions(BASE, "express", prompt_tokens=20) + VTAB, "0.98")
    assert rounds_to(1 + 24 * 2 * 197 * 768 / 85_798_656 + 769 * 2113 / 85_798_656, "1.10")


def test_operations_of_table_8():
    """17.732 and 17.733 GFLOPs are ten prompts without attention's products, norms and softmax
    counted."""
    plain, one, two, ten = (
        count(BASE, "vpt-deep", (("prompt_tokens", n), ("form", "concatenate")), True)
        if n
        else count(BASE, "linear-probe", (), True)
        for n in (0, 1, 2, 10)
    )
    assert [round(x / 1e9, 3) for x in (plain, one, two, ten)] == [17.563, 17.655, 17.748, 18.487]
    tokens, heads = 197 + 10, 12
    layers = (
        ten
        - 12 * 2 * tokens**2 * 768
        + 25 * tokens * 768 * 4
        + 12 * heads * tokens * (3 * tokens - 1)
    )
    assert rounds_to((layers + 768 * 100) / 1e9, "17.732")
    added = 11 * 10 * 10 * 768
    for classes in (397, 1000):
        assert rounds_to((layers + 768 * classes) / 1e9, "17.732")
        assert rounds_to((layers + 768 * classes + added) / 1e9, "17.733")
    assert counts().loc["ivpt.table-8.text-extra-workload", "computed"] == pytest.approx(
        added / 1e9
    )


def test_classes_of_the_benchmarks():
    """iVPT's Table 17 and SPT's Table S1 count the same classes, and the printed heads follow from
    them."""
    tables = [papers.published(id) for id in ("ivpt.table-17", "spt.table-s1")]
    ours, theirs = (
        {row["dataset"].replace("-", ""): row["classes"] for _, row in t.iterrows()} for t in tables
    )
    assert ours.pop("ADE20k") == "150"
    assert ours == theirs and len(ours) == 24
    kinds = tables[1].groupby("description")["classes"].agg(lambda column: column.astype(int).sum())
    assert [kinds[name] for name in ("Natural (7)", "Specialized (4)", "Structured (8)")] == [
        795,
        62,
        83,
    ]
    assert rounds_to(VTAB, "0.04") and rounds_to(FGVC, "0.18")
    chosen = (
        papers.published("ivpt.table-16")
        .set_index("hyper_parameter")
        .drop(columns="doubt")
        .astype(int)
    )
    assert list(chosen.sum(axis=1)) == [745, 414] and (chosen.loc["N"] ** 2).sum() == 67_625


def test_copied_averages():
    """The means of the copied tables hold, but for one, which is marked."""
    table = papers.published("ivpt.table-1").set_index("method")
    groups = {
        "Natural mean": slice(0, 7),
        "Specialized mean": slice(8, 12),
        "Structured mean": slice(13, 21),
    }
    full = table[table["SVHN"] != "-"]
    for name, where in groups.items():
        assert (
            full.iloc[:, where].astype(float).mean(axis=1) - full[name].astype(float)
        ).abs().max() <= 0.0501
    off = (
        table[list(groups)].astype(float).mean(axis=1) - table["Group mean"].astype(float)
    ).abs() > 0.0501
    assert (
        list(table.index[off]) == ["Full fine-tuning"]
        and table.loc[off, "doubt"].str.contains("68.90").all()
    )
    for id, first in (("ivpt.table-9", "CUB-200"), ("spt.table-3", "CUB-200")):
        table = papers.published(id).set_index("method")
        place = table.columns.get_loc(first)
        table = table[(table.iloc[:, place : place + 5] != "-").all(axis=1)]
        means = table.iloc[:, place : place + 5].astype(float).mean(axis=1)
        assert (means - table["Mean"].astype(float)).abs().max() <= 0.0501, id


def test_reading_of_printed_numbers():
    assert number("0.0768M") == (0.0768, 1e-4)
    assert number("1.11×") == (1.11, 0.01)
    assert number("100k") == (0.1, 1e-3)
    assert number("less than 0.4%") == (0.4, 0.1)
    assert math.isclose(number("~ 0.001 GFLOPs")[0], 0.001)
