"""The notebook of one cell: fetched from a server of the tests' own, run on the pretended card, and
packed."""

import hashlib
import io
import tarfile
from dataclasses import replace
from pathlib import Path

import pytest
from pretended_card import PretendedCard
from test_fetching import server  # noqa: F401 (a fixture)

from visbook.studies import one_cell
from visbook.timing import card_run
from visprompt.data import catalogue
from visprompt.errors import BadInput
from visprompt.records import stores as folders
from visprompt.records.merging import merge
from visprompt.training.activations import SHARED

MICRO = "vit_micro_patch4_24"


def test_a_cell_is_found_and_has_its_printed_number():
    cell = one_cell.chosen("ivpt.table-1", "VPT-Deep", "caltech101")
    assert cell.run.method == "vpt-deep" and cell.recipe == "ivpt"
    assert one_cell.printed("ivpt.table-1", "LoRA", "caltech101") == 91.4
    assert one_cell.printed("ivpt.table-1", "LoRA", "nowhere") is None


@pytest.mark.refused
@pytest.mark.parametrize(
    ("asked", "message"),
    [
        (("ap.figure-1", "AP", "dtd"), "nothing is trained"),
        (("ivpt.table-1", "VPT-Dep", "dtd"), "VPT-Deep"),
        (("ivpt.table-1", "VPT-Deep", "caltech"), "caltech101"),
    ],
)
def test_a_cell_that_is_not_there_is_refused(asked, message):
    with pytest.raises(BadInput, match=message):
        one_cell.chosen(*asked)


def test_a_cell_is_fetched_run_on_a_card_and_packed(
    server,  # noqa: F811
    tmp_path,
    stores,
    monkeypatch,
):
    cell = one_cell.chosen("ivpt.table-1", "VPT-Deep", "caltech101")
    card_run.write_pictures(tmp_path / "made", (100, 100, 100), 32)
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as archive:
        archive.add(tmp_path / "made" / card_run.NAME, "lists")
    server.files["/caltech101.tar.gz"] = body = packed.getvalue()
    file = {"url": f"{server.url}/caltech101.tar.gz", "bytes": len(body), "source": "x"}
    file["checksum"] = f"sha256:{hashlib.sha256(body).hexdigest()}"
    every = dict(catalogue.datasets())
    every["caltech101"] = replace(
        every["caltech101"], access="open", listed=(file,), torchvision="", layout=""
    )
    monkeypatch.setattr(catalogue, "datasets", lambda: every)
    one_cell.fetch(cell, tmp_path / "data")
    (place,) = (tmp_path / "data").rglob("train800.txt")
    place = place.parent.rename(place.parent.parent / "caltech101")
    monkeypatch.setattr(one_cell.Lab, "protocol", one_cell.Lab(one_cell.LabSettings()).protocol)
    with PretendedCard():
        found = one_cell.run(cell, place.parent, "cuda", backbone=MICRO, epochs=1)
    assert found.settings["recipe"]["precision"] == "bf16" and 0 <= found.values["test"] <= 100
    file = one_cell.pack(found, tmp_path / "cell.tgz")
    with tarfile.open(file) as archive:
        archive.extractall(tmp_path / "sent", filter="data")
    monkeypatch.setattr("visprompt.records.store.ROOT", Path(tmp_path, "other"))
    assert merge(tmp_path / "sent").added == 1 and [*folders()[0].rglob("*.json")]
    SHARED.kept.clear()
