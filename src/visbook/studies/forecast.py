"""What planned runs take: operations, hours on a device, and bytes to fetch."""

import contextlib
import functools
import statistics
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import timm
import torch
from torch.utils.flop_counter import FlopCounterMode

from visprompt import paths
from visprompt.data import catalogue
from visprompt.data.fetching import read_lock
from visprompt.data.layouts import read_items, task_folder
from visprompt.data.tasks import embedded_tasks
from visprompt.errors import BadInput, choose
from visprompt.manifests import load_yaml
from visprompt.methods import method_class
from visprompt.models import embedded
from visprompt.models.backbones import load_backbone
from visprompt.models.blocks import Hooks
from visprompt.records import read_record, recorded, stores
from visprompt.records.store import files

from .lab import LabSettings
from .plan import Planned, family_of, lab_of

# operations of a backward pass over those of the forward one: where all weights are trained
TRAINED_BACKWARD = 2
FROZEN_BACKWARD = 1  # where gradients only pass through


@dataclass(frozen=True)
class Network:
    """Operations of one image, forward; a multiply-add counts as two."""

    stem: float
    blocks: tuple[float, ...]
    tokens: int  # that enter the first block of a transformer; 0 of a ResNet

    def part(self, start: int, extra: int = 0) -> float:
        """Operations from block `start` on (-1: from the image), with `extra` more tokens in each
        block of a ViT."""
        grown = 1 + extra / self.tokens if self.tokens else 1.0
        return (self.stem if start < 0 else 0.0) + grown * sum(self.blocks[max(start, 0) :])


class Marks(Hooks):
    """Hooks that note the operations counted so far whenever a block is entered.

    A Swin's merging counts to the block before it.
    """

    def __init__(self):
        self.counter, self.seen = None, []

    def before_block(self, index, x):
        self.seen.append(self.counter.get_total_flops())
        return x


@functools.cache
def network(name: str) -> Network:
    """Operations of a backbone by block, counted on shapes alone once, and kept as a record.

    Raises:
        BadInput: unknown backbone.
    """
    known = {**embedded.networks(), **embedded.from_files()}
    plain = (
        name
        if name in embedded.networks()
        else known.get(name, {}).get("timm", name).partition(".")[0]
    )

    def compute():
        backbone, marks = load_backbone(plain, device="meta"), Marks()
        size, shape = backbone.image_size, backbone.shapes()[0]
        with FlopCounterMode(display=False) as marks.counter, torch.no_grad():
            backbone.run(backbone.stem(torch.empty(1, 3, size, size, device="meta")), marks)
            marks.before_block(backbone.depth, None)
        each = [later - before for before, later in zip(marks.seen, marks.seen[1:])]
        return {
            "stem": marks.seen[0],
            "blocks": each,
            "tokens": shape[0] if backbone.family == "vit" else 0,
        }

    settings = {"what": "forward by block", "backbone": plain}
    values = (
        recorded("count", settings, compute, run=False) or recorded("count", settings, compute)
    ).values
    return Network(values["stem"], tuple(values["blocks"]), values["tokens"])


own_tasks = functools.cache(embedded_tasks)
data_set = functools.cache(catalogue.find)  # of a task


@functools.cache
def sizes(task: str, data_dir: str | None = None) -> tuple[int | None, int | None, int | None]:
    """Images of train, val and test of a task: those that lie in the folder of data sets, or as
    its manifest says; None where neither has the number."""
    if task in own_tasks():
        return tuple(own_tasks()[task]["splits"])
    if data_dir is not None:
        with contextlib.suppress(BadInput):  # it is not there, or cannot be read
            return tuple(map(len, read_items(task_folder(data_dir, task, own_tasks()))[1]))
    found = data_set(task).tasks.get(task, {}).get("splits") or {}
    return (
        found.get("train"),
        found.get("val", 0 if found else None),
        found.get("test", 0 if found else None),
    )


def operations(run: Planned, data_dir: str | None = None) -> float | None:
    """Operations of a whole run: every step, what is computed once before, and every evaluation.

    Where nothing changes the pictures, what lies below the first trained block is computed once an
    image; else with every step. A backward pass counts as much as the forward one, and twice as
    much where all weights are trained. None where the number of images is not known.
    """
    one, (train, val, test) = run.run, sizes(run.run.task, data_dir)
    if None in (train, val, test):
        return None
    case = lab_of(run.recipe).resolve(one)
    r, settings = case.recipe, case.settings
    train = one.train_size or train + val * case.joined
    net, start = network(one.backbone), first_trained(one)
    extra = settings.get("prompt_tokens", 0) if one.method != "ap" else 0
    above, whole = net.part(start, extra), net.part(-1, extra)
    backward = backward_of(one.method)
    step, once = above * (1 + backward), whole - above
    seen = train * r.epochs
    again = 2 if one.method == "e2vpt" else 1  # pruned, and trained from the start
    if r.augmentation == "none":
        return (
            again * (seen * step + val * r.epochs * above)
            + (train + val + test) * once
            + test * above
        )
    return again * (seen * (step + once) + val * r.epochs * whole) + test * whole


def backward_of(method: str) -> int:
    """Operations of a method's backward pass through the backbone, over those of the forward
    one."""
    return TRAINED_BACKWARD if method_class(method).trains_backbone else FROZEN_BACKWARD


def first_trained(run) -> int:
    """The first trained block of a run's method; see `methods.base.Method.start`."""
    depth = len(network(run.backbone).blocks)
    if run.method == "linear-probe":
        return depth
    block = run.settings.get("block")
    if run.method == "ap" and block is None:
        return depth - 3 if family_of(run.backbone) == "resnet" else 2
    if block is not None:
        return min(block) if isinstance(block, tuple) else block
    return method_class(run.method).start


@dataclass(frozen=True)
class Speed:
    """Operations per second of a device, by precision, and how they are known."""

    by_precision: dict[str, float]
    how: str

    def hours(self, run: Planned, data_dir: str | None = None) -> float | None:
        """Hours of a run; None where neither the folder nor a manifest tells its images."""
        precision = lab_of(run.recipe).resolve(run.run).recipe.precision
        return self.hours_of(operations(run, data_dir), precision)

    def hours_of(self, work: float | None, precision: str = "float32") -> float | None:
        """Hours that `work` operations take; None where that is not known."""
        return None if work is None else work / self.by_precision[precision] / 3600


def usual_precision(profile: str) -> str | None:
    """The precision of a profile on a GPU, see `LabSettings.fields`; None: that of each recipe."""
    return LabSettings(profile=profile, device="cuda").fields.get("precision")


def speed_of(device: str | None, precision: str | None = None) -> Speed:
    """The speed of a device: the peak that devices.yaml gives, or what was measured here.

    Args:
        device: of devices.yaml, or "measured"; None: measured where a GPU's bench is kept, else an
            H200.
        precision: of all runs, in place of their recipes' own.

    Raises:
        BadInput: neither a device of the table nor "measured", or nothing was measured here.
    """
    table = load_yaml(paths.MANIFESTS / "devices.yaml")
    if device in (None, "measured"):
        if found := measured():
            return found
        if device == "measured":
            raise BadInput(
                "no step times of this machine are kept; time some: visprompt bench --device cuda."
            )
    entry = table[choose("device", device or "h200", [*table, "measured"])]
    rates = {name: entry[precision or name] * 1e12 for name in ("float32", "bf16")}
    told = (
        f"counted operations at the peak of one {entry['title']} in "
        f"{precision or 'the precision of each recipe'}"
    )
    return Speed(rates, f"{told}, so the least that it can take")


def measured() -> Speed | None:
    """What the newest bench of all methods on a GPU of this machine reached; None where there is
    none."""
    records = [
        r
        for r in map(read_record, (path for each in stores() for path in files(each, "bench")))
        if r.settings.get("what") == "methods" and r.settings["device"] != "cpu"
    ]
    if not records:
        return None
    record = max(records, key=lambda record: record.date)
    net, batch, reached = network(record.settings["backbone"]), record.settings["batch_size"], []
    for side, values in record.values.items():
        start, method = values["start"], record.settings["sides"][side]["method"]
        work = batch * net.part(start) * (1 + backward_of(method))
        if start < len(net.blocks):
            reached.append(work / statistics.median(values["seconds"]))
    rate = statistics.median(reached)
    precision = {side["precision"] for side in record.settings["sides"].values()}
    told = (
        f"step times measured on {record.settings['machine']} ({record.date}), "
        f"{', '.join(precision)}"
    )
    return Speed(dict.fromkeys(("float32", "bf16"), rate), told)


@dataclass(frozen=True)
class Fetch:
    """A file that is not there yet."""

    name: str
    bytes: int | None  # None: no manifest says
    dataset: str = ""  # that it belongs to; "": it is a checkpoint


def data_files(tasks: Iterable[str], folder: Path | None = None) -> list[Fetch]:
    """The files of the data sets that tasks are made of, without those that a data folder has."""
    found = {}
    for task in dict.fromkeys(tasks):
        if task in own_tasks():
            continue
        for dataset in with_parts(data_set(task)):
            pins = read_lock(folder).get(dataset.name, {}) if folder else {}
            if folder and any((folder / name).is_dir() for name in dataset.names):
                continue
            for file in dataset.files:
                size = file.size or (pins[file.name].size if file.name in pins else None)
                found[dataset.name, file.name] = Fetch(
                    f"{dataset.name}/{file.name}", size, dataset.name
                )
            if not dataset.files:
                found[dataset.name, ""] = Fetch(f"{dataset.name} (by hand)", None, dataset.name)
    return list(found.values())


def with_parts(dataset: catalogue.DataSet) -> list[catalogue.DataSet]:
    """A data set, or those that it is made of."""
    return [part for name in dataset.made_of for part in with_parts(data_set(name))] or [dataset]


def checkpoint_files(backbones: Iterable[str]) -> list[Fetch]:
    """The checkpoints of backbones that do not come with this project."""
    outside = [name for name in dict.fromkeys(backbones) if name not in own_networks()]
    return [Fetch(name, checkpoint_bytes(name)) for name in outside]


@functools.cache
def checkpoint_bytes(name: str) -> int | None:
    """Bytes of a published checkpoint that timm fetches: four a parameter, with its classifier;
    None of others."""
    if name not in embedded.published():
        return None

    def compute():
        with torch.device("meta"):
            network = timm.create_model(name, num_classes=timm.get_pretrained_cfg(name).num_classes)
        return {"bytes": sum(4 * part.numel() for part in network.parameters())}

    settings = {"what": "checkpoint", "backbone": name}
    return (
        recorded("count", settings, compute, run=False) or recorded("count", settings, compute)
    ).values["bytes"]


own_networks = functools.cache(embedded.networks)
