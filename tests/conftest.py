"""What the tests share."""

import csv
import os
import random
from collections import Counter
from pathlib import Path

import pytest
import torch
from hypothesis import settings
from sites import (  # noqa: F401 (fixtures that several files share)
    EVERYTHING,
    ROOT,
    browser,
    seed,
    site,
    small,
    whole,
)

from visprompt import records
from visprompt.data import tasks
from visprompt.methods import method_class

settings.register_profile("no deadline", deadline=None)  # a busy machine is no failure
settings.load_profile("no deadline")
torch.set_num_threads(1)
os.environ["VISPROMPT_CACHE"] = "none"  # images stay in memory but where a test says otherwise
# One process draws the pictures of an embedded task once; for records they count as drawn each
# time.
tasks.pictures = records.remember(tasks.pictures)


# The files that run whole programs: the site in a browser, kills, papermill, the wheel, the
# rehearsal; the longest first.
WHOLE = [
    "site",
    "kills",
    "bench",
    "site_axe",
    "real",
    "rehearsal",
    "edits",
    "wheel",
    "site_reading",
    "commands",
    "workflow",
    "new_paper",
    "plan_and_pages",
    "second_clone",
]
SECONDS = 100  # of a processor, that `make test` gives to costly tests
TAKEN = Counter()  # seconds by test, and by file what setting up took
WATCHED = Path(__file__).with_name("seconds.csv")


def pytest_collection_modifyitems(config, items):
    """What takes longest comes first, so that of the processes of `make test` none is left with it
    at the end.

    Costly are whole programs and the tests of seconds.csv. Runs of the whole folder do some of
    them, other ones for every commit (`sites.seed`), unless VISPROMPT_WHOLE is set, as `.ci/run`
    does; a file that is named is run whole.
    """
    rank = {f"test_{name}": place for place, name in enumerate([*WHOLE, "auditing"])}
    items.sort(key=lambda item: rank.get(item.path.stem, len(rank)))
    with WATCHED.open() as file:
        seconds = {row["test"]: float(row["seconds"]) for row in csv.DictReader(file)}
    for item in items:
        if item.path.stem.removeprefix("test_") in WHOLE:
            item.add_marker("whole")
        if item.get_closest_marker("whole") or name_of(item.nodeid) in seconds:
            item.add_marker("costly")
    costly = [item for item in items if item.get_closest_marker("costly")]
    if config.args == ["tests"] and not EVERYTHING:
        left = {*costly} - {*affordable(costly, seconds)}
        items[:] = [item for item in items if item not in left]
        config.hook.pytest_deselected(items=[*left])


def affordable(items: list, seconds: dict[str, float]) -> list:
    """Some of the tests, in a drawn order, that take SECONDS together with what files set up."""
    names, left, open_files = Counter(name_of(item.nodeid) for item in items), SECONDS, set()
    found = []
    for item in random.Random(seed()).sample(items, len(items)):
        name = name_of(item.nodeid)
        cost = seconds.get(name, 0.5) / names[name]
        if item.path.name not in open_files:
            cost += seconds.get(item.path.name, 0)
        if cost <= left:
            left -= cost
            open_files.add(item.path.name)
            found.append(item)
    return found


def name_of(test: str) -> str:
    """A test without its folder and parameters: `test_site.py::test_a_link`."""
    return test.removeprefix("tests/").split("[")[0]


def pytest_runtest_logreport(report):
    name = name_of(report.nodeid)
    if report.when == "setup":  # of what is set up once, the others wait for one
        file = name.split("::")[0]
        TAKEN[file] = max(TAKEN[file], report.duration)
    else:
        TAKEN[name] += report.duration


def pytest_sessionfinish(session):
    """A run of everything leaves build/seconds.csv, to take the place of tests/seconds.csv."""
    if (
        EVERYTHING
        and session.config.args == ["tests"]
        and not hasattr(session.config, "workerinput")
    ):
        (ROOT / "build").mkdir(exist_ok=True)
        with (ROOT / "build" / "seconds.csv").open("w", newline="") as file:
            rows = csv.writer(file, lineterminator="\n")
            rows.writerow(["test", "seconds"])
            rows.writerows([n, f"{TAKEN[n]:.1f}"] for n in sorted(TAKEN) if TAKEN[n] >= 1)


def pytest_report_header(config):
    return f"VISPROMPT_SEED={seed()} draws which costly tests and pages are looked at"


@pytest.fixture(scope="session")
def vit():
    """A tiny ViT with random weights: 4 blocks of width 16 on 16 pixels, 16 patches."""
    return small_vit()


def small_vit(pool="token", width=16, heads=2, size=16, depth=4, class_token=None, **more):
    from timm.models.vision_transformer import VisionTransformer

    from visprompt.models.backbones import Backbone

    torch.manual_seed(0)
    model = VisionTransformer(
        img_size=size,
        patch_size=4,
        embed_dim=width,
        depth=depth,
        num_heads=heads,
        num_classes=0,
        global_pool=pool,
        class_token=pool == "token" if class_token is None else class_token,
        fc_norm=False if pool == "avg" else None,
        **more,
    )
    # biases and norms away from their trivial start, where a mistake would not show
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if name.endswith("bias") or "norm" in name:
                parameter.add_(0.2 * torch.randn(parameter.shape))
    return Backbone(model, "test_vit", size, (0.5,) * 3, (0.5,) * 3)


@pytest.fixture(scope="session")
def swin():
    """A tiny Swin with random weights: two stages of two blocks, windows of 4 x 4 on 32 pixels."""
    from timm.models.swin_transformer import SwinTransformer

    from visprompt.models.backbones import Backbone

    torch.manual_seed(0)
    model = SwinTransformer(
        img_size=32,
        patch_size=2,
        embed_dim=8,
        depths=(2, 2),
        num_heads=(2, 4),
        window_size=4,
        num_classes=0,
    )
    return Backbone(model, "test_swin", 32, (0.5,) * 3, (0.5,) * 3)


@pytest.fixture(scope="session")
def resnet():
    """A tiny ResNet with random weights and BatchNorm statistics that are not the trivial ones.

    Eight channels at least: of a 1 x 1 convolution with stride 2 and four, channels last, oneDNN's
    backward pass (torch 2.15, a processor with AVX2 alone) writes outside its memory.
    """
    from timm.models.resnet import BasicBlock, ResNet

    from visprompt.models.backbones import Backbone

    torch.manual_seed(0)
    model = ResNet(BasicBlock, [1, 1, 1, 1], channels=(8, 8, 8, 16), num_classes=0)
    model.train()
    with torch.no_grad():
        for _ in range(3):
            model(torch.randn(8, 3, 32, 32))
    return Backbone(model, "test_resnet", 32, (0.5,) * 3, (0.5,) * 3)


@pytest.fixture
def stores(tmp_path, monkeypatch):
    """Records go to a folder of the test."""
    monkeypatch.setattr(records.store, "ROOT", tmp_path)
    return records.stores()


def carries(slug, family):
    """Whether a method runs on a family of backbones."""
    return family in method_class(slug).families


def tiny_task(size=16, classes=3, per_split=(24, 12, 12), seed=0):
    """Images whose mean colour tells the class."""
    from visprompt.data.tasks import Task

    generator = torch.Generator().manual_seed(seed)

    def split(count):
        labels = torch.arange(count) % classes
        images = torch.randint(0, 120, (count, 3, size, size), generator=generator)
        images[torch.arange(count), labels % 3] += 100
        return images.to(torch.uint8), labels

    return Task("tiny", tuple("abcdef"[:classes]), *map(split, per_split), resize="none")


@pytest.fixture
def task():
    return tiny_task()
