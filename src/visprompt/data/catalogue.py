"""The papers' data sets: description, licence, files, and the tasks made of each.

Each is a file of `data_manifests/datasets/`; addresses and checksums are torchvision's own if it
has the data set. `croissant` exports MLCommons' Croissant 1.0.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Annotated, Any, Literal, NotRequired, TypedDict
from urllib.parse import urlsplit

from .. import paths
from ..errors import BadInput, choose
from ..manifests import load_yaml
from ..manifests.schema import COUNT, DIGITS, TEXT, Text, Whole, listed, one_of

FILE_NAME = {
    "type": "string",
    "pattern": r"^[A-Za-z0-9_][A-Za-z0-9._+-]{0,199}\Z",
    "description": "a file's plain name: letters, digits and . _ + -, no folder",
}
CHECKSUM = {
    "type": "string",
    "pattern": "^(md5:[0-9a-f]{32}|sha256:[0-9a-f]{64})$",
    "description": "md5: or sha256: and the digits",
}
ADDRESS = {
    "type": "string",
    "pattern": "^https?://",
    "description": "an address that begins with https:// or http://",
}
SPLITS = {
    "type": "object",
    "additionalProperties": COUNT,
    "propertyNames": one_of(["train", "val", "test"]),
}
ACCESS = ("open", "registration", "by hand")
MASKS = ("ADE20K", "PASCAL Context")  # raw forms of data sets with masks; `mask_tasks` reads them
Benchmark = Literal["vtab-1k", "fgvc", "full", "segmentation", "amount", "pasted", "none"]
Address = Annotated[str, ADDRESS]


class FileEntry(TypedDict):
    """A file of a data set, as its manifest lists it."""

    url: Address
    name: NotRequired[Annotated[str, FILE_NAME]]
    bytes: NotRequired[Whole]
    checksum: NotRequired[Annotated[str, CHECKSUM]]
    source: NotRequired[Text]
    mirrors: NotRequired[Sequence[Address]]


class TaskEntry(TypedDict):
    """A task that papers make of a data set, as its manifest lists it."""

    benchmark: Benchmark
    group: Literal["natural", "specialized", "structured", "fine", "other"]
    classes: Whole
    splits: NotRequired[Annotated[dict[str, int], SPLITS]]
    source: NotRequired[Text]
    label: NotRequired[Text]
    lists: NotRequired[Annotated[str, DIGITS]]  # as `layouts.digest_of_lists` gives them
    # counts of released lists where they differ from the paper's; either may be used
    released: NotRequired[Annotated[dict[str, int], SPLITS]]


def counts_of(about: Mapping) -> list[list[int | None]]:
    """Images of train, val and test that an entry names, the paper's before the released lists';
    None where one is not said."""
    return [
        [about[key].get(part) for part in ("train", "val", "test")]
        for key in ("splits", "released")
        if about.get(key)
    ]


def agree(given: Sequence[int], known: Sequence[int | None]) -> bool:
    """Whether numbers of images are the known ones, as far as both are said."""
    return bool(given) and all(
        wanted in (None, count) or count is None
        for count, wanted in zip(given, known, strict=False)
    )


@dataclass(frozen=True)
class File:
    """A file to fetch: name, addresses (best first), and what is known of its bytes."""

    name: str
    addresses: tuple[str, ...] = ()
    checksum: str = ""  # "md5:…" or "sha256:…"; "" where nobody published one
    size: int | None = None
    source: str = "unverified"  # who published the checksum


@dataclass(frozen=True, eq=False)
class DataSet:
    """A file of `datasets/`; its name is the file's, and its fields are those of the file."""

    name: str
    title: Text
    about: Text
    citation: Text
    year: Whole
    home: Address
    licence: Text
    access: Annotated[str, one_of(ACCESS)]  # "embedded" of what comes with this project
    tasks: dict[str, TaskEntry]
    unverified: Annotated[list[str], listed(TEXT, 0)]
    aliases: Sequence[Text] = ()
    steps: Sequence[Text] = ()
    torchvision: Text = ""
    sizes: dict[str, Whole] = field(default_factory=dict)
    layout: Text = ""
    masks: str = ""  # one of MASKS
    ids: dict[str, Whole] = field(
        default_factory=dict
    )  # class -> its number in the published masks
    made_of: Sequence[Text] = ()
    listed: Sequence[FileEntry] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """All its names: its own, its aliases, and its tasks'."""
        return tuple(dict.fromkeys((self.name, *self.aliases, *self.tasks)))

    @cached_property
    def files(self) -> tuple[File, ...]:
        """The files to fetch: torchvision's, and those that the file lists."""
        known = torchvision_files(self.torchvision) if self.torchvision else []
        known = [replace(file, size=self.sizes.get(file.name)) for file in known]
        for entry in self.listed:
            name = entry.get("name") or file_name(entry["url"])
            more = entry.get("checksum", ""), entry.get("bytes"), entry.get("source", "unverified")
            known.append(File(name, (entry["url"], *entry.get("mirrors", ())), *more))
        return tuple(known)


def datasets() -> dict[str, DataSet]:
    """Name -> data set, of all that the papers use."""
    sets = {}
    for path in sorted((paths.MANIFESTS / "datasets").glob("*.yaml")):
        entry = load_yaml(path)
        sets[path.stem] = DataSet(path.stem, listed=entry.pop("files", ()), **entry)
    return sets


def embedded() -> dict[str, DataSet]:
    """Name -> data set without files, of the tasks that come with this project."""
    sets = {}
    for name, about in load_yaml(paths.MANIFESTS / "tasks.yaml")["embedded"].items():
        splits = dict(zip(("train", "val", "test"), about["splits"]))
        task: TaskEntry = {
            "benchmark": "none",
            "group": about["group"],
            "classes": len(about["classes"]),
            "splits": splits,
        }
        known = {
            "title": name,
            "about": about["nature"],
            "citation": about["source"],
            "licence": about["licence"],
        }
        sets[name] = DataSet(
            name, **known, year=2026, home="", access="embedded", tasks={name: task}, unverified=[]
        )
    return sets


def used_whole(task: str) -> bool:
    """Whether a paper uses all images of a task's data set, not a subset or lists of its own."""
    return entry_of(task).get("benchmark") in ("full", "amount")


def entry_of(task: str) -> Any:
    """The manifest's entry of a task; {} if none has it."""
    return next(
        (dataset.tasks[task] for dataset in datasets().values() if task in dataset.tasks), {}
    )


def find(name: str) -> DataSet:
    """A data set by its name, an alias, or the name of a task made of it.

    Raises:
        BadInput: there is none; the message names the nearest.
    """
    known = {every: dataset for dataset in datasets().values() for every in dataset.names}
    if name in embedded() and name not in known:
        raise BadInput(f"{name!r} comes with this project; there is nothing to fetch.")
    plain = name.lower().replace("-", "_") if isinstance(name, str) else name
    return known[
        choose("data set", name if name in known else plain if plain in known else name, known)
    ]


def chosen(names: Iterable[str]) -> list[DataSet]:
    """The data sets of these names, without duplicates; see `find`."""
    return list({dataset.name: dataset for dataset in map(find, names)}.values())


def group(task: str) -> str:
    """VTAB's group of a task; "fine" if fine-grained, "other" if no paper groups it."""
    return next(
        (dataset.tasks[task]["group"] for dataset in datasets().values() if task in dataset.tasks),
        "other",
    )


def file_name(address: str) -> str:
    """The last part of an address."""
    return urlsplit(address).path.rsplit("/", 1)[-1]


def torchvision_files(kind: str) -> list[File]:
    """The files of a data set of torchvision, with its addresses and checksums.

    Raises:
        BadInput: torchvision has no such data set, or states its files in an unknown way.
    """
    from torchvision import datasets as every  # slow to import

    if kind not in every.__all__:
        raise BadInput(f"torchvision has no data set {kind!r}; write the files in the manifest.")
    dataset = getattr(every, kind)
    if kind == "ImageNet":  # torchvision has no address of it
        return [
            File(name, (), f"md5:{md5}", source="torchvision")
            for name, md5 in every.imagenet.ARCHIVE_META.values()
        ]
    if kind == "INaturalist":
        pairs = [(every.inaturalist.DATASET_URLS["2018"], every.inaturalist.DATASET_MD5["2018"])]
    elif hasattr(dataset, "tgz_md5"):
        pairs = [(dataset.url, dataset.tgz_md5)]
    elif hasattr(dataset, "_MD5"):
        pairs = [(dataset._URL, dataset._MD5)]
    elif hasattr(dataset, "_DATASET_MD5"):
        pairs = [(dataset._DATASET_URL, dataset._DATASET_MD5)]
    elif hasattr(dataset, "_RESOURCES"):
        pairs = dataset._RESOURCES
    elif hasattr(dataset, "_file_dict"):
        pairs = [
            (dataset._download_url_prefix + name, md5) for name, md5 in dataset._file_dict.values()
        ]
    elif hasattr(dataset, "split_list"):
        pairs = [
            (url, md5) for split, (url, _, md5) in dataset.split_list.items() if split != "extra"
        ]
    else:
        raise BadInput(
            f"torchvision's {kind} keeps its addresses to itself; write the files in the manifest."
        )
    return [File(file_name(url), (url,), f"md5:{md5}", source="torchvision") for url, md5 in pairs]


def croissant(dataset: DataSet) -> dict:
    """A data set as JSON-LD by Croissant 1.0; a checksum that nobody published is "unverified"."""
    terms = (
        "citeAs column conformsTo md5 recordSet field dataType extract source fileObject".split()
    )
    homes = {"conformsTo": "dct:conformsTo", "dataType": {"@id": "cr:dataType", "@type": "@vocab"}}
    context = {"@language": "en", "@vocab": "https://schema.org/", "sc": "https://schema.org/"}
    context |= {"cr": "http://mlcommons.org/croissant/", "dct": "http://purl.org/dc/terms/"}
    context |= {term: homes.get(term, f"cr:{term}") for term in terms}  # type: ignore[misc]
    files = []
    for file in dataset.files:
        kind, _, digits = (file.checksum or "sha256:unverified").partition(":")
        entry = {"@type": "cr:FileObject", "@id": file.name, "name": file.name, kind: digits}
        entry["contentUrl"] = file.addresses[0] if file.addresses else dataset.home
        entry["encodingFormat"] = encoding(file.name)
        files.append(entry | ({"contentSize": f"{file.size} B"} if file.size else {}))
    return {
        "@context": context,
        "@type": "sc:Dataset",
        "conformsTo": "http://mlcommons.org/croissant/1.0",
        "name": dataset.name,
        "alternateName": [dataset.title, *dataset.aliases],
        "description": dataset.about,
        "license": dataset.licence,
        "citeAs": dataset.citation,
        "datePublished": str(dataset.year),
        "version": "1.0.0",
        "distribution": files,
    } | ({"url": dataset.home} if dataset.home else {})


def encoding(name: str) -> str:
    """Media type of a file, by its name."""
    types = {
        ".zip": "application/zip",
        ".tar": "application/x-tar",
        ".tgz": "application/gzip",
        ".gz": "application/gzip",
    }
    return next(
        (kind for end, kind in types.items() if name.endswith(end)), "application/octet-stream"
    )
