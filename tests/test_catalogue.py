"""The data sets of the papers: each manifest is Croissant, its names are its own, and its numbers
are torchvision's."""

import inspect
import logging
import re
from pathlib import Path

import pytest

from visprompt.data import catalogue
from visprompt.data.tasks import group_of
from visprompt.errors import BadInput
from visprompt.paths import MANIFESTS

SETS = catalogue.datasets()
TASKS = {task: (name, about) for name, found in SETS.items() for task, about in found.tasks.items()}


@pytest.mark.parametrize(
    "found", [*SETS.values(), *catalogue.embedded().values()], ids=lambda found: found.name
)
def test_each_is_croissant(found):
    import mlcroissant

    logging.getLogger("absl").setLevel(logging.ERROR)  # of every context that is not the longest
    assert not mlcroissant.Dataset(jsonld=catalogue.croissant(found)).metadata.ctx.issues.report()


def test_a_name_means_one_data_set():
    names = [name for found in SETS.values() for name in found.names]
    assert len(names) == len(set(names))
    # drawn anew here
    assert not {*names} & set(catalogue.embedded()) - {"dsprites_location", "dsprites_orientation"}


def test_names_are_found_as_people_write_them():
    assert {catalogue.find(name).name for name in ("cub200", "CUB-200-2011", "cub_200_2011")} == {
        "cub_200_2011"
    }
    assert catalogue.find("clevr_distance").name == "clevr"
    with pytest.raises(BadInput, match="Did you mean 'food101'"):
        catalogue.find("food1001")
    with pytest.raises(BadInput, match="nothing to fetch"):
        catalogue.find("digits")


def test_vtab_has_its_groups():
    vtab = [task for task, (_, about) in TASKS.items() if about["benchmark"] == "vtab-1k"]
    groups = [group_of(task) for task in vtab if not task.startswith("dsprites")] + [
        "structured"
    ] * 2
    assert len(vtab) == 19 and {kind: groups.count(kind) for kind in groups} == {
        "natural": 7,
        "specialized": 4,
        "structured": 8,
    }
    assert sum(about["benchmark"] == "fgvc" for _, about in TASKS.values()) == 5
    assert all(
        TASKS[task][1]["splits"]["train"] + TASKS[task][1]["splits"]["val"] == 1000 for task in vtab
    )
    assert group_of("a_folder_of_mine") == "other"


def test_every_task_of_the_papers_profile_has_a_data_set():
    from visprompt.manifests import load_yaml

    tasks = load_yaml(MANIFESTS / "studies.yaml")["profiles"]["paper"]["tasks"].values()
    assert {task for part in tasks for task in part} <= set(TASKS)


@pytest.mark.parametrize("name", [name for name, found in SETS.items() if found.torchvision])
def test_files_of_torchvision_are_its_own(name):
    files = [
        file
        for file in SETS[name].files
        if file.name not in {Path(one["url"]).name for one in SETS[name].listed}
    ]
    assert files and all(re.fullmatch("md5:[0-9a-f]{32}", file.checksum) for file in files)
    assert set(SETS[name].sizes) <= {file.name for file in SETS[name].files}


def test_what_is_said_to_be_torchvisions_stands_in_its_code():
    from torchvision import datasets

    modules = {"caltech101": datasets.caltech, "eurosat": datasets.eurosat, "gtsrb": datasets.gtsrb}
    said = {
        (found.name, file)
        for found in SETS.values()
        for file in found.files
        if file.source == "torchvision"
    }
    retyped = {(name, file) for name, file in said if not SETS[name].torchvision}
    assert {name for name, _ in retyped} == set(modules)
    for name, file in retyped:
        source = inspect.getsource(modules[name])
        assert file.checksum.removeprefix("md5:") in source and file.name in source


def test_a_checksum_says_whose_it_is_and_none_is_made_up():
    for found in SETS.values():
        for file in found.files:
            assert bool(file.checksum) == (file.source != "unverified"), (found.name, file.name)


def test_a_library_without_the_data_set_is_said():
    for kind in ("FGVCAircraft", "Nothing"):
        with pytest.raises(BadInput, match="write the files in the manifest"):
            catalogue.torchvision_files(kind)
