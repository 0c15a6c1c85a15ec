"""Records of others: what is sent, what is refused, and what is shown beside ours."""

import copy
import json
import math
import random
from collections import Counter
from dataclasses import replace

import pytest
import sharing
import torch
from sites import seed as drawn_seed

from visbook.sharing import accepting, form, origins, others, possible, reruns, sending
from visbook.sharing.form import Sender
from visbook.studies import adopting, plan
from visbook.studies.case import Run
from visbook.studies.lab import Lab, LabSettings
from visprompt import records
from visprompt.errors import BadInput
from visprompt.records import keeping, store

COMMIT = "0123456789ab"
SEED = drawn_seed()  # before a test has another folder in the place of the repository
SENDER = Sender("A. Sender", "a.sender@example.org", "CC BY 4.0")
NETWORK = "vit_nano_patch4_24"


def do(method, seed, precision="float32", threads=1):
    """A small run of a task that comes with the project."""
    settings = {"prompt_tokens": 2} if method == "vpt-deep" else {}
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    lab = Lab(LabSettings(changes={"epochs": 3, "precision": precision}))
    done = lab.do(Run(NETWORK, "count", method, seed, train_size=160, settings=settings))
    torch.set_num_threads(before)
    return done


@pytest.fixture(scope="module")
def away(tmp_path_factory):
    """A second machine's records, packed: the text of its file."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(store, "ROOT", tmp_path_factory.mktemp("away"))
        patch.setattr(store, "commit", lambda: COMMIT)
        patch.setattr(keeping, "is_known", lambda commit: commit == COMMIT)
        machine = {**store.hardware(), "cpu": "another"}
        patch.setattr(store, "hardware", lambda: machine)
        for method in ("linear-probe", "vpt-deep"):
            for seed in range(3):
                do(method, seed)
        for seed in range(2):
            do("linear-probe", seed, "bf16", threads=2)
        found, refused = sending.chosen(lambda record: True)
        # each process that draws pictures leaves a record of them
        assert len(found) == 8 and [why[:12] for why in refused] == ["of kind data"]
        text = sending.packed(found, SENDER)
        assert "A. Sender" in sending.told(found, SENDER, text)
        yield text


@pytest.fixture
def home(stores, monkeypatch, tmp_path):
    """The first machine: none of these records, the same commit."""
    monkeypatch.setattr(store, "commit", lambda: COMMIT)
    monkeypatch.setattr(keeping, "is_known", lambda commit: commit == COMMIT)
    return tmp_path


def looked(text, folder, where=None):
    """What accepting finds in a file of this text."""
    path = folder / "sent.json"
    path.write_text(text)
    return accepting.look(path, where or origins.Origins())


def test_another_s_records_are_accepted_and_stand_beside_ours(away, home):
    mine = do("vpt-deep", 1)
    path = home / "sent.json"
    path.write_text(away)
    found, done, place = accepting.accept(path, count=2, seed=random.SystemRandom().getrandbits(63))
    assert len(done) == 2 and not any(one.why for one in done)
    (accepted,) = others.accepted()
    assert accepted.sender["name"] == "A. Sender" and len(accepted.records) == 8
    rows = others.beside(records.all_records("tune"), [accepted])
    (both,) = [row for row in rows if not row["values"][-1]["sender"]]
    assert (both["method"], both["seed"], both["spread"]) == ("vpt-deep", 1, 0)
    assert both["values"][-1]["test"] == mine.values["test"]
    # float32 and bf16 are two values of one run
    (two, *_) = [row for row in rows if (row["method"], row["seed"]) == ("linear-probe", 0)]
    assert {one["precision"] for one in two["values"]} == {"float32", "bf16"} and len(rows) == 6
    # none of it is found as one of ours
    assert [record.id for record in records.all_records("tune")] == [mine.id]
    with pytest.raises(BadInput, match="accepted already"):
        accepting.accept(path, count=0, seed=0)


def test_runs_equal_to_ours_to_the_last_digit_are_no_other_party(away, home, monkeypatch):
    mine = do("vpt-deep", 1)
    found = looked(away, home)
    runs, own = set(map(others.run_name, found.records)), others.run_name(mine)
    accepting.write(found, [], 0)
    assert others.parties({own}, others.accepted()) == []
    assert others.parties(runs - {own}, others.accepted()) == ["A. Sender"]
    assert others.parties({*runs, "another run"}, others.accepted()) == []
    monkeypatch.setattr(others, "own_names", lambda: {"A. Sender"})
    assert others.parties(runs - {own}, others.accepted()) == []


def test_an_equal_time_makes_no_copy_and_a_new_date_no_new_run(away, home):
    mine = do("vpt-deep", 1)
    curves = possible.Curves([mine])
    (other,) = [one for one in looked(away, home).records if one.key == mine.key]
    timed = replace(other, values=other.values | {"fit_seconds": mine.values["fit_seconds"]})
    assert curves.check(timed) == mine
    with pytest.raises(BadInput, match=f"record {mine.id} is here already"):
        curves.check(replace(mine, date="2020-02-20", commit=""))


def test_200_tampered_files_are_refused_in_one_line(away, home):
    rng, content, where = random.Random(SEED), json.loads(away), origins.Origins()
    todo = (sharing.KINDS * 6)[:200]
    passed, said = [], Counter()
    for kind in todo:
        text = sharing.tampered(content, kind, rng)
        try:
            looked(text, home, where)
            passed.append(kind.__name__)
        except BadInput as error:
            assert "\n" not in str(error) and len(str(error)) < 600, error
            said[kind.__name__] += 1
    print(f"VISPROMPT_SEED={SEED}: {sum(said.values())} of {len(todo)} refused")
    assert not passed and len(said) == len(sharing.KINDS)
    assert not others.home().exists()


def test_forgeries_that_fit_together_are_caught_where_they_are_drawn(away, home):
    """A file of eight with some forged runs passes what can be seen; a drawn forgery is told."""
    rng, where = random.Random(SEED), origins.Origins()
    content = json.loads(away)
    for record in content["records"][:3]:
        sharing.forged(record, rng)
    found = looked(json.dumps(content), home, where)
    for record in found.records[:2]:
        assert reruns.rerun(record, where, None, content["code"][record.code]).why
    bad = {record.id for record in found.records[:3]}
    draws = [reruns.draw(found.records, 3, seed, where) for seed in range(300)]
    caught = sum(any(record.id in bad for record in drawn) for drawn in draws) / len(draws)
    print(f"{100 * caught:.0f} % of files with 3 of 8 runs forged are caught by 3 drawn reruns")
    assert abs(caught - (1 - math.comb(5, 3) / math.comb(8, 3))) < 0.1
    forged = next(s for s, drawn in enumerate(draws) if any(r.id in bad for r in drawn))
    with pytest.raises(BadInput, match="was run again"):
        accepting.run_again(found, where, 3, forged, None)


def test_first_epochs_of_a_run_are_compared_alone(away, home):
    where, content = origins.Origins(), json.loads(away)
    found = looked(away, home, where)
    assert not reruns.rerun(found.records[0], where, 1, {}).why
    sharing.forged(content["records"][0], random.Random(0))
    found = looked(json.dumps(content), home, where)
    assert reruns.rerun(found.records[0], where, 1, {}).why


def test_what_may_not_leave_stays(away, home, monkeypatch):
    do("linear-probe", 0)
    found, _ = sending.chosen(lambda record: True)
    (content,) = copy.deepcopy(found)
    for change, why in [
        ({"settings": content["settings"] | {"task": "my-cats"}}, "no task of the project"),
        ({"about": content["about"] | {"data": "/home/me/cats"}}, "short text"),
        ({"values": content["values"] | {"picture": "x"}}, "no field"),
    ]:
        changed = sharing.named_again(copy.deepcopy(content) | change)
        assert why in sending.of_form(changed)
    monkeypatch.setattr(sending, "private", lambda: ["A. Sender"])
    with pytest.raises(BadInput, match="a name of this machine"):
        sending.packed(found, SENDER)
    with pytest.raises(BadInput, match="short text of one line"):
        sending.packed(found, Sender("<b>", "x", "y"))


def test_a_file_that_is_none_is_refused(home, tmp_path):
    for path in (tmp_path, tmp_path / "missing.json"):
        with pytest.raises(BadInput):
            form.read(path)
    large = tmp_path / "large.json"
    with large.open("wb") as file:
        file.truncate(form.LARGEST + 1)
    with pytest.raises(BadInput, match="at most"):
        form.read(large)


def test_every_artifact_that_waits_for_a_card_has_a_row():
    rows = {one.artifact: one for one in adopting.waiting()}
    asked = {id for id, one in plan.artifacts().items() if {"runs", "masks"} & {*one.made}}
    assert asked <= {*rows}
    assert all(one.command and one.hours >= 0 for one in rows.values())
    rates = [one.claims / max(one.hours, 0.01) for one in adopting.waiting()]
    assert rates == sorted(rates, reverse=True)
    assert all(one.hours <= 1 for one in adopting.waiting()[:5])


def test_hours_of_a_card_choose_what_settles_claims():
    chosen = adopting.fitting(8)
    assert sum(one.hours for one in chosen) <= 8 and all(one.claims for one in chosen)
    assert [one.hours for one in chosen] == sorted(one.hours for one in chosen)
    assert {one.artifact for one in adopting.fitting(8, "A100")} < {one.artifact for one in chosen}
    for hours, card in ((0, "h100"), (8, "h1000"), (-1, "h100"), (math.nan, "h100")):
        with pytest.raises(BadInput):
            adopting.fitting(hours, card)


@pytest.mark.parametrize(
    "kind, why",
    [("bench", "one machine"), ("epochs", "which test images"), ("count", "here again")],
)
def test_other_kinds_of_record_stay_and_are_refused_with_the_reason(kind, why, stores, tmp_path):
    records.recorded(kind, {"name": "x"}, lambda: {"value": 1})
    found, refused = sending.chosen(lambda record: True)
    ((said, number),) = refused.items()
    assert not found and number == 1 and why in said and "(kind tune) are taken alone" in said
    content = {"form": 1, "sender": vars(SENDER), "records": [{"kind": kind}], "code": {}}
    path = tmp_path / "sent.json"
    path.write_text(json.dumps(content))
    with pytest.raises(BadInput, match=why):
        form.read(path)
