"""`make bench`: what takes turns, what is counted, which records are shown. No test asserts a
time."""

from types import SimpleNamespace

import pytest
import torch
from conftest import tiny_task

import visprompt as vp
from visbook.chapters import ap_peft
from visbook.chapters.cost import CostPage
from visbook.pages.parameters import Parameters
from visbook.studies import bench, bench_table, from_record
from visbook.timing import clock, host_costs, method_cost, pairs, task_memory
from visbook.timing.clock import Side
from visbook.timing.side_by_side import speeds_in_turns, variants_in_turns
from visbook.timing.start_times import time_starts
from visprompt.__main__ import main
from visprompt.models.backbones import load_backbone
from visprompt.records import store

MICRO = "vit_micro_patch4_24"


def test_actions_take_turns_after_an_untimed_round():
    order = []
    found = clock.in_turns(
        {"a": lambda: order.append("a"), "b": lambda: order.append("b")}, repeats=2, calls=3
    )
    assert "".join(order) == "aaabbb" * 3
    assert [len(found[name]["seconds"]) for name in "ab"] == [2, 2]


def test_a_step_trains_and_leaves_the_backbone_alone():
    backbone = load_backbone(MICRO)
    side = Side("vpt-deep", {"prompt_tokens": 3})
    model = side.build(backbone)
    before = [
        parameter.clone() for parameter in (*model.method_parameters(), *backbone.parameters())
    ]
    clock.training_step(side, model, *clock.sample_batch(backbone, 2))()
    moved = [
        not torch.equal(a, b)
        for a, b in zip(before, (*model.method_parameters(), *backbone.parameters()))
    ]
    assert all(moved[: backbone.depth]) and not any(moved[backbone.depth :])


def test_a_side_that_does_not_trim_leaves_the_others_as_they_are():
    backbone = load_backbone(MICRO, device="meta")
    plain, fast = (Side("linear-probe", trims=trims).build(backbone) for trims in (False, True))
    assert not plain.source.trims and fast.source.trims and backbone.trims
    assert plain.source.blocks[0] is fast.source.blocks[0]
    assert vp.count_flops(plain)["macs"] > vp.count_flops(fast)["macs"]


def test_cached_sides_count_what_is_above_the_cache():
    backbone, macs = load_backbone("vit_base_patch16_224", device="meta"), []
    for cached in (True, False):
        side = Side("ap", {"block": 6}, trims=False, cached=cached)
        macs.append(pairs.side_counts(side, side.build(backbone), 2)["macs"])
    head, stem = 768 * clock.CLASSES, 196 * 768 * 768
    assert (macs[0] - head) * 2 == macs[1] - head - stem


@pytest.mark.parametrize("batch", [8, 64])
def test_a_hundred_prompts_need_no_more_operations_than_the_bare_network(stores, batch):
    row = bench_table.macs_row("vit_base_patch16_224", batch)
    assert float(row["ratio"]) <= 1 and row["aim"] == "≤ 1.00"


def test_a_pair_is_counted_compared_and_kept(stores):
    pair = bench.pairs(MICRO, "cpu")["vpt-deep-10"]
    record = pairs.pair_in_turns(
        "vpt-deep-10", MICRO, pair.first, pair.second, batch_size=2, repeats=2, equal=True
    )
    assert record.values["difference"] < 1e-4
    assert record.values["first"]["macs"] < record.values["second"]["macs"]
    assert record.values["first"]["parameters"] == record.values["second"]["parameters"]
    units = store.read_code(stores[0] / "code" / f"{record.code}.json")
    assert {
        "models.blocks:vit_block",
        "methods.prompts:Deep.extra",
        "timing.clock:training_step",
    } <= set(units)
    (row,) = bench_table.pair_rows(record)
    assert row["pair"] == pair.label and " to " in row["range"]


def test_every_pair_of_a_gpu_runs_in_its_precision():
    """bf16 by autocast, on this machine's CPU; without the compiler, which a test cannot wait
    for."""
    backbone = load_backbone(MICRO)
    for pair in bench.pairs(MICRO, "cuda").values():
        for side in (pair.first, pair.second):
            if side.precision == "bf16" and not side.compiled:
                model, batch = side.build(backbone), clock.sample_batch(backbone, 2)
                assert clock.inference(side, model, batch[0])().dtype == torch.bfloat16
                clock.training_step(side, model, *batch)()


def test_every_clock_times_the_step_that_the_loop_takes(monkeypatch, stores):
    """AdamW with the same options, so that no page shows the time of a step that nobody takes."""
    options, plain = [], torch.optim.AdamW

    def watched(*args, **more):
        options.append({name: more[name] for name in more if name not in ("lr", "weight_decay")})
        return plain(*args, **more)

    monkeypatch.setattr(torch.optim, "AdamW", watched)
    backbone = load_backbone(MICRO)
    model = vp.build_method("vpt-deep", backbone, 3, prompt_tokens=2)
    vp.fit(model, tiny_task(24), vp.Recipe(epochs=1))
    asked = dict(batch_size=2, repeats=1)
    method_cost.speed_and_peak(MICRO, "vpt-deep", **asked, device="cpu", settings={})
    found = speeds_in_turns(MICRO, {"ap": {}, "vpt-deep": {}}, **asked).values
    assert {name: {key: len(times) for key, times in by.items()} for name, by in found.items()} == (
        dict.fromkeys(("ap", "vpt-deep"), {"train_seconds": 1, "infer_seconds": 1})
    )
    assert len(options) == 4 and all(found == {"fused": True} for found in options)


def test_variants_of_one_method_are_timed_side_by_side(stores):
    """Settings tell them apart, and a page that only looks finds the record of the same settings
    alone."""
    asked = dict(batch_size=2, repeats=3)
    variants = {"AP": ("ap", {}), "AP-3": ("ap", {"block": [0, 1, 2]})}
    assert variants_in_turns(MICRO, variants, **asked, run=False) is None
    record = variants_in_turns(MICRO, variants, **asked)
    assert {name: len(found["seconds"]) for name, found in record.values.items()} == {
        "AP": 3,
        "AP-3": 3,
    }
    assert variants_in_turns(MICRO, variants, **asked, run=False).id == record.id
    assert variants_in_turns(MICRO, {"AP": variants["AP"]}, **asked, run=False) is None
    methods = speeds_in_turns(MICRO, {"ap": {}}, batch_size=2, repeats=1)
    for old in (record, methods):  # both forms can be timed again from their settings
        assert from_record.again(old).settings == old.settings


def test_a_time_is_judged_by_rounds_in_pairs(monkeypatch):
    """Twice as long in every round is 1 above, however much the rounds differ."""
    seconds = {"AP": [1.0, 2.0, 3.0], "AP-3": [2.0, 4.0, 6.0]}
    timed = SimpleNamespace(
        values={name: {"seconds": found} for name, found in seconds.items()},
        settings={"batch_size": 2, "repeats": 3},
        hardware={"gpu": "", "cpu": "x", "threads": 2},
    )
    judged = []
    page = SimpleNamespace(
        judge=lambda claim, *values, **told: judged.append((claim, values, told["records"]))
    )
    ap_peft.judge_time(page, "c", timed, "AP-3", "AP")
    ap_peft.judge_time(page, "c", None, "AP-3", "AP")
    assert judged == [("c", (1.0, 1.0, 1.0), [timed])]


def test_inference_returns_to_training():
    backbone = load_backbone(MICRO)
    side = Side("da-vpt")
    model, (images, labels) = side.build(backbone), clock.sample_batch(backbone, 2)
    clock.inference(side, model, images)()
    assert model.method.training and not backbone.training
    clock.training_step(
        side, model, images, labels
    )()  # DA-VPT's loss needs what training mode keeps


def test_epochs_with_and_without_cache_have_one_loss(stores):
    record = pairs.epochs_in_turns("epoch-ap-4", MICRO, "position", "ap", {"block": 4}, repeats=1)
    assert abs(record.values["first"]["loss"] - record.values["second"]["loss"]) < 1e-4
    assert bench_table.epoch_rows(record)[0]["aim"] == "≈ 0.50"


def test_starts_hold_the_chosen_images_only():
    values = time_starts(MICRO, pool=2000, images=4, repeats=1, device="cpu")
    assert set(values["seconds"]) == {"random from all", "random", "mean", "max", "one iteration"}
    assert values["pool_mb"] == pytest.approx(2000 * 8 * 36 * 64 * 4 / 2**20, abs=0.1)
    assert (values["prompts"], values["blocks"]) == (20, 8)


def test_theory_is_timed_in_a_batch_and_one_by_one(stores, monkeypatch):
    asked = []
    monkeypatch.setattr(
        "visbook.theory.shallow_training.run_trials",
        lambda trials, device: asked.append([seed for _, seed in trials]),
    )
    record = bench.theory("theory-shallow", 2)
    assert (
        asked[:2] == [[0], list(range(24))]
        and asked[2:26] == [[seed] for seed in range(24)]
        and len(asked) == 52
    )
    (row,) = bench_table.theory_rows(record)
    assert (
        row["pair"] == "shallow ViT, 100 neurons: batched over one by one"
        and row["aim"] == "≤ 0.20"
    )
    assert "µs a trial and step" in row["note"] and record.values["floor"] > 0
    assert len(record.values["ratios"]) == 2 and bench_table.kept_records() == [record]
    names = [label for label, _ in bench.jobs([], "cpu", None, 1)]
    assert names[-3:] == list(bench.THEORIES.values())


def test_the_floor_counts_the_products_of_a_step():
    tokens, d = 8 * 50, 10  # of a batch in Figure 4's setting, and their dimension
    # a neuron's part of the hidden layer, of its read-out and of its gradient
    each = 2 * 3 * tokens * d
    assert bench.shallow_operations(300) - bench.shallow_operations(100) == 200 * each


def test_the_precision_named_is_the_one_that_runs():
    from visbook.theory import ap_toy, shallow_vit

    assert {ap_toy.Settings().dtype, shallow_vit.Settings().dtype} == {"float32"}


def test_a_run_on_mapped_images_is_the_run_on_those_in_memory(stores, monkeypatch):
    record = task_memory.task_memory((16, 16, 200), 16)
    mapped, plain = record.values["mapped"], record.values["in memory"]
    assert mapped["test"] == plain["test"] and record.values["images_mb"] == pytest.approx(
        232 * 768 / 2**20, abs=0.05
    )
    (row,) = bench_table.rows([record]).to_dict("records")
    assert (
        row["pair"] == "A run on 200 test images of 16 px: mapped over in memory"
        and "MiB are added at most" in row["note"]
    )
    assert bench_table.kept_records() == [record]
    page, shown = CostPage("cost", Parameters()), []
    monkeypatch.setattr(page, "present", lambda table, **about: shown.append((table, about)))
    page.show_bench(record.settings["machine"])  # a machine that ran no more of the bench
    ((table, about),) = shown
    assert (
        table["A / B"].tolist() == ["A run on 200 test images of 16 px: mapped / in memory"]
        and about["records"] == [record]
        and row["model"] in about["caption"]
    )


def test_each_row_that_is_shown_open_has_two_sides(monkeypatch):
    page, shown = CostPage("cost", Parameters()), []
    monkeypatch.setattr(page, "present", lambda table, **about: shown.append((table, about)))
    page.show_bench(
        next(r for r in bench_table.kept_records() if r.settings["name"] == "spt-starts").settings[
            "machine"
        ]
    )
    assert all((table["ratio"] != "").all() for table, _ in shown)
    counts = {about["how"]: {r.settings["repeats"] for r in about["records"]} for _, about in shown}
    assert all(
        (" or ".join(map(str, sorted(rounds))) + " rounds" if rounds != {1} else "One round") in how
        for how, rounds in counts.items()
    )


@pytest.fixture
def two_jobs(monkeypatch):
    """The bench with its first and its fifth pair only, on the embedded ViT."""
    whole = bench.jobs
    monkeypatch.setattr(bench, "jobs", lambda *words: whole(*words)[:5:4])
    return ["bench", "--models", MICRO, "--repeats", "1", "--batch-size", "2"]


def test_the_command_prints_one_table_and_times_nothing_twice(two_jobs, stores, capsys):
    assert main(two_jobs) == 0
    first = capsys.readouterr()
    lines = first.out.splitlines()
    assert len(lines) == 2 + 5  # machine, head, two pairs, inference, operations at two batch sizes
    columns = ("ratio", "range", "aim", "parameters, M", "forward GMACs", "memory, GiB")
    assert all(column in lines[1] for column in columns)
    assert main(two_jobs) == 0
    second = capsys.readouterr()
    assert second.out == first.out and "2 of 2 were timed before" in second.err
    times = [path.stat().st_mtime_ns for path in store.files(stores[0], "bench")]
    assert main([*two_jobs, "--again"]) == 0
    assert "timed before" not in capsys.readouterr().err
    assert all(
        a < b
        for a, b in zip(
            times, [p.stat().st_mtime_ns for p in store.files(stores[0], "bench")], strict=True
        )
    )
    assert [record.settings["name"] for record in bench_table.kept_records()] == [
        "vpt-deep-100",
        "ivpt",
    ]


def test_a_failure_does_not_stop_the_others(two_jobs, stores, capsys, monkeypatch):
    jobs = bench.jobs

    def broken(run):
        if run:
            raise RuntimeError("no compiler")

    monkeypatch.setattr(bench, "jobs", lambda *words: [("compiled", broken), *jobs(*words)])
    assert main(two_jobs) == 2
    out, error = capsys.readouterr()
    assert (
        "iVPT" in out
        and "1 of 3 failed; their records say so. compiled: RuntimeError: no compiler" in error
    )


def test_a_page_takes_the_record_with_most_rounds(stores):
    pair = bench.pairs(MICRO, "cpu")["vpt-deep-10"]
    for repeats in (2, 3, 1):
        pairs.pair_in_turns(
            "vpt-deep-10", MICRO, pair.first, pair.second, batch_size=1, repeats=repeats
        )
    assert [record.settings["repeats"] for record in bench_table.kept_records()] == [3]


@pytest.mark.refused
@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--repeats", "0"], "repeats must be 1 or more"),
        (["--batch-size", "0"], "batch-size must be 1 or more"),
        (["--device", "gpu"], "unknown device 'gpu'"),
        (["--models", "vit_bse_patch16_224"], "unknown backbone"),
        (["--models", "resnet18", "--repeats", "1"], "resnet"),
        pytest.param(
            ["--device", "cuda"],
            "no GPU",
            marks=pytest.mark.skipif(torch.cuda.is_available(), reason="this machine has a GPU"),
        ),
    ],
)
def test_what_cannot_be_benched_is_refused(stores, capsys, words, message):
    assert main(["bench", *words]) == 2
    assert message in capsys.readouterr().err


def test_a_whole_run_on_a_card_is_told_by_part():
    from visbook.chapters import card_costs

    (record,) = card_costs.whole_runs()
    values = record.values
    ratio = values["bf16"]["whole"] / values["float32"]["whole"]
    assert f"takes {ratio:.2f} of the time" in card_costs.said(record)
    table = card_costs.parts(record)
    assert [*table.precision] == ["float32", "bf16"]
    assert [float(whole) for whole in table["100 epochs, all"]] == [
        pytest.approx(values[name]["whole"], rel=0.005)  # three digits are shown
        for name in table.precision
    ]
    steps = card_costs.steps(record)
    assert {*steps["a training step"]} == {
        card_costs.WAYS.get(name, name)
        for name, found in values["step"].items()
        if isinstance(found, dict)
    }


@pytest.mark.parametrize("name", host_costs.LABELS)
def test_what_the_host_does_beside_a_step_has_a_row(name, stores):
    record = host_costs.host_cost(name, repeats=1)
    row = bench_table.rows([record]).iloc[0]
    assert float(row["ratio"]) > 0 and row["note"].endswith("ms")
    assert record.id in {kept.id for kept in bench_table.kept_records()}
    labels = [label for label, _ in bench.jobs([], "cpu", None, 1)]
    assert host_costs.LABELS[name] in labels
