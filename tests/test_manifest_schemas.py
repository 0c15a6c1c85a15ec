"""Every YAML file of data_manifests/ is held against its schema: what is wrong is one line, with
the file's line."""

import itertools
import os
import shutil
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest
import yaml
from hypothesis import example, given, settings
from hypothesis import strategies as st

from visbook.auditing import audit, counts
from visprompt import manifests, paths
from visprompt.errors import BadInput
from visprompt.manifests import validation

SOURCE = Path(__file__).parents[1] / "data_manifests"
EVERY = sorted(str(path.relative_to(SOURCE)) for path in SOURCE.rglob("*.yaml"))
MUTATED = (
    "tasks.yaml",
    "datasets/kitti.yaml",
    "preprocessing.yaml",
    "backbones.yaml",
    "recipes.yaml",
    "differences.yaml",
    "studies.yaml",
    "notebooks.yaml",
    "papers/papers.yaml",
    "papers/names.yaml",
    "papers/counts.yaml",
    "papers/davpt/lost.yaml",
    "papers/shallowvit/claims.yaml",
    "papers/davpt/audit.yaml",
)
AP = "ap.table-1 | ResNet-101 | AP"
SAMPLE = int(os.environ.get("VISPROMPT_MUTATIONS", 26))  # mutations of each file that are tried
NULLABLE = {
    "learning_rate",
    "head_rate",
    "head_decay",
    "padding",
    "block",
    "guided_tokens",
    "guided_from",
    "images",
}
COLLECTIONS = (yaml.MappingNode, yaml.SequenceNode)
NUMBERS = ("tag:yaml.org,2002:int", "tag:yaml.org,2002:float")


@pytest.fixture(scope="module")
def copy(tmp_path_factory):
    """The manifests of a repository of its own; tests that damage a file put it back."""
    root = tmp_path_factory.mktemp("root")
    shutil.copytree(SOURCE, root / "data_manifests", ignore=shutil.ignore_patterns("weights"))
    (root / "notebooks").mkdir()
    for path in (SOURCE.parent / "notebooks").glob("*.py"):
        (root / "notebooks" / path.name).touch()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(paths, "MANIFESTS", root / "data_manifests")
        yield root / "data_manifests"


# a time of its own for each write: a file system may give two the same
TIMES = itertools.count(10**18)


@contextmanager
def holding(path: Path, text: bytes):
    """The file holds this text within; then its own again, with its own time, so that it need not
    be checked anew."""
    before, status = path.read_bytes(), path.stat()
    try:
        path.write_bytes(text)
        os.utime(path, ns=(next(TIMES),) * 2)
        yield
    finally:
        path.write_bytes(before)
        os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))


def refused(copy, name: str, text: str | bytes, use=manifests.load_yaml) -> str:
    """What is said when a file holds this text, without the file's name: one line."""
    path = copy / name
    with (
        holding(path, text.encode() if isinstance(text, str) else text),
        pytest.raises(BadInput) as caught,
    ):
        use(path)
    said = str(caught.value)
    assert said.startswith(str(path)) and "\n" not in said, said
    return said.removeprefix(str(path))


def pairs(node, path=()):
    """Every value below a node, each once: (its path, its key or None, the value)."""
    mapping = isinstance(node, yaml.MappingNode)
    for place, child in enumerate(node.value):
        key, value = child if mapping else (None, child)
        step = key.value if mapping else place
        if step == "<<":
            continue
        yield (*path, step), key, value
        if isinstance(value, COLLECTIONS):
            yield from pairs(value, (*path, step))


def mutations(name: str) -> list:
    """Parameters (file, text, line): the text with one value replaced by what can never stand
    there."""
    text = (SOURCE / name).read_text(encoding="utf-8")
    found, seen = [], set()
    for path, key, value in pairs(yaml.compose(text, Loader=yaml.SafeLoader)):
        start, end = value.start_mark.index, value.end_mark.index
        free = name == "notebooks.yaml" and len(path) > 3  # parameters of a notebook
        if id(value) in seen or "&" in text[start:end] or free:  # what an alias needs stays
            continue
        seen.add(id(value))
        old = text[start:end]
        tail = old[len(old.rstrip()) :]
        line = (value if key is None else key).start_mark.line + 1
        if isinstance(value, COLLECTIONS):
            new = ["1e-2", "a text", ".nan", "2024-01-01"]
        else:
            new = [".nan", "{}", "-.inf", "[[]]", "true" if value.tag in NUMBERS else "2024-01-01"]
            new += ["'1e-2'"] * (value.tag in NUMBERS)
        # an item has its list's name
        of = path[-2] if isinstance(path[-1], int) and len(path) > 1 else path[-1]
        tried = "searches" in path and (isinstance(value, COLLECTIONS) or of.endswith("rate"))
        new += ["~"] * (of not in NULLABLE or tried)
        if name == "papers/names.yaml" and path[-2:] == ("columns", "data"):
            new = new[:2]
        found += [
            (name, text[:start] + word + tail + text[end:], line, f"{path[-1]}={word}")
            for word in new
        ]
    step = len(found) / SAMPLE
    chosen = [found[int(i * step)] for i in range(SAMPLE)] if len(found) > SAMPLE else found
    return [pytest.param(*one[:3], id=f"{name} {one[2]} {one[3]}") for one in chosen]


@pytest.mark.parametrize("name", EVERY)
def test_the_real_files_pass_and_each_has_a_schema(name):
    assert validation.rules_of(Path(name))[0]
    assert manifests.load_yaml(SOURCE / name) or name == "replies.yaml"  # until an author replies


def test_schemas_are_json_schemas():
    from jsonschema import Draft202012Validator

    for name in validation.OWNERS:
        Draft202012Validator.check_schema(validation.rules_of(Path(f"{name}.yaml"))[0]())


@pytest.mark.refused
@pytest.mark.parametrize("name, text, line", [one for name in MUTATED for one in mutations(name)])
def test_values_of_a_wrong_kind(copy, name, text, line):
    said = refused(copy, name, text)
    assert said.startswith(f", line {line}: "), said


# file, text that stands there, what it becomes, words of the message; the line is that of the
# change's first letter
DAMAGE = [
    ("tasks.yaml", "embedded:", "embeded:", "Did you mean 'embedded'"),
    (
        "tasks.yaml",
        "    nature: real",
        "    natur: real",
        "unknown key 'natur'. Did you mean 'nature'",
    ),
    (
        "tasks.yaml",
        "group: natural",
        "group: naturall",
        "unknown group 'naturall'. Did you mean 'natural'",
    ),
    (
        "tasks.yaml",
        "splits: [800, 200, 797]",
        "splits: [800, 200]",
        "a list of 2 is given; write a list of 3, each a whole number",
    ),
    ("tasks.yaml", "splits: [800, 200, 797]", "splits: [800, 200, 798]", "add up to 1797"),
    (
        "tasks.yaml",
        "splits: [800, 200, 797]",
        "splits: [800, 0, 797]",
        "0 is given; write a whole number of at least 1",
    ),
    (
        "tasks.yaml",
        "splits: [800, 200, 797]",
        "splits: [800, 200.0, 797]",
        "200.0 is given; write a whole number",
    ),
    ("tasks.yaml", "seed: 11", "seed: -1", "at least 0"),
    ("tasks.yaml", "image_size: 24", "image_size: 32", "32 is given; write 24"),
    ("tasks.yaml", '["0", "1",', '["0", "0",', "'0' is given twice"),
    ("tasks.yaml", '["0", "1",', '["0",', "9 names are given; write 10"),
    ("tasks.yaml", '["0", "1",', '[0, "1",', "0 is given; write a text, in quotes"),
    (
        "tasks.yaml",
        "  position:\n",
        "  positon:\n",
        "unknown drawing 'positon'. Did you mean 'position'",
    ),
    ("backbones.yaml", "timm_class: ResNet", "timm_class: Resnet", "Did you mean 'ResNet'"),
    (
        "backbones.yaml",
        "patch_size: 4",
        "patch: 4",
        "unknown key 'patch'. Did you mean 'patch_size'",
    ),
    ("backbones.yaml", "patch_size: 4", "patch_size: 5", "a divisor of img_size, 24"),
    ("backbones.yaml", "num_heads: 4", "num_heads: 5", "a divisor of embed_dim, 64"),
    ("backbones.yaml", "img_size: 24", "img_size: 28", "as in image_size"),
    (
        "backbones.yaml",
        "mean: [0.5, 0.5, 0.5]",
        "mean: [0.5, 0.5]",
        "write a list of 3, each a number",
    ),
    (
        "backbones.yaml",
        "std: [0.5, 0.5, 0.5]",
        "std: [0.5, 0, 0.5]",
        "0 is given; write a number above 0",
    ),
    (
        "backbones.yaml",
        "source_accuracy: 0.9915",
        "source_accuracy: 99.15",
        "at least 0 and of at most 1",
    ),
    ("backbones.yaml", "    weights: ", "    weight: ", "Did you mean 'weights'"),
    ("backbones.yaml", "channels: [16, 32, 64, 128]", "channels: [16, 32, 64]", "a list of 4"),
    (
        "recipes.yaml",
        "vp: {learning_rate: 0.1}",
        "vp: {learning_rte: 0.1}",
        "Did you mean 'learning_rate'",
    ),
    (
        "recipes.yaml",
        "vp: {learning_rate: 0.1}",
        "vp: {learning_rate: 1e-2}",
        "vp > learning_rate: '1e-2' is given; write a number or null: 0.01 or 1.0e-2, "
        "since YAML reads 1e-2 as a text",
    ),
    (
        "recipes.yaml",
        "vp: {learning_rate: 0.1}",
        "vp: {learning_rate: '0.1'}",
        "write a number or null: 0.1, without quotes",
    ),
    (
        "recipes.yaml",
        "vp: {learning_rate: 0.1}",
        "vp: {learning_rate: -0.1}",
        "must be above 0, not -0.1",
    ),
    ("recipes.yaml", "  common: {epochs: 8", "  common: {epochs: 0", "must be above 0"),
    (
        "recipes.yaml",
        "standardise: false",
        "standardise: 'no'",
        "'no' is given; write true or false",
    ),
    (
        "recipes.yaml",
        "optimizer: sgd",
        "optimizer: sdg",
        "unknown optimizer 'sdg'. Did you mean 'sgd'",
    ),
    ("recipes.yaml", "warmup: 0.0", "warmup: 1.5", "0 to below 1"),
    ("recipes.yaml", "        caltech101: {", "        caltech100: {", "Did you mean 'caltech101'"),
    ("recipes.yaml", "guided_from: 9,", "guided_frm: 9,", "Did you mean 'guided_from'"),
    ("recipes.yaml", "clusters from epoch 10}", "clusters from epoch}", "'clusters from epoch 1"),
    ("recipes.yaml", "learning_rate: 0.00005,", "learning_rat: 0.00005,", "'learning_rate'"),
    ("recipes.yaml", "    lora: ", "    loraa: ", "unknown key 'loraa'. Did you mean 'lora'"),
    ("recipes.yaml", "resize: crop", "resize: croop", "Did you mean 'crop'"),
    (
        "recipes.yaml",
        "vit: [0.01, 0.1,",
        "vit: [0.1,",
        "7 rates are given; write one for each block, [8]",
    ),
    ("recipes.yaml", "weight_decay: 0.01", "weight_decay: -0.01", "at least 0"),
    ("recipes.yaml", "paper:\n", "papers:\n", "Did you mean 'paper'"),
    (
        "recipes.yaml",
        "trained_on: train and val}",
        "trained_on: train and test}",
        "Did you mean 'train and val'",
    ),
    ("recipes.yaml", "of_batch: [256]", "factors: [1.0]", "write either factors"),
    ("recipes.yaml", "of_batch: [256]", "outward: [3]", "outward of factors alone"),
    ("recipes.yaml", "outward: [3]", "outward: [0]", "at least 1"),
    ("recipes.yaml", "statistics: imagenet", "statistics: imagenett", "Did you mean 'imagenet'"),
    (
        "recipes.yaml",
        'schedule: "warm-up, then cosine"',
        "schedule: cosin",
        "Did you mean 'cosine'",
    ),
    ("recipes.yaml", "dropout: 0.1", "dropout: 1.0", "at least 0 and below 1"),
    ("recipes.yaml", "salient_tokens: 5}", "salient_token: 5}", "Did you mean 'salient_tokens'"),
    ("recipes.yaml", "of_batch: [256]", "of_bach: [256]", "Did you mean 'of_batch'"),
    (
        "differences.yaml",
        "as_released: mostly new",
        "as_released: mostly now",
        "Did you mean 'mostly new'",
    ),
    ("differences.yaml", "{normaliser: all}", "{normalizer: all}", "Did you mean 'normaliser'"),
    ("differences.yaml", "adaptformer:\n", "adaptfomer:\n", "Did you mean 'adaptformer'"),
    ("studies.yaml", "profiles:", "profile:", "Did you mean 'profiles'"),
    ("studies.yaml", "prompts: {deep: 10", "prompts: {dep: 10", "Did you mean 'deep'"),
    (
        "studies.yaml",
        "      mocov3: vit",
        "      mocov33: vit",
        "unknown part that no study names, 'mocov33'. Did you mean 'mocov3'",
    ),
    (
        "studies.yaml",
        "backbones: [mae, mocov3]",
        "backbones: [mae, mocov33]",
        "unknown part 'mocov33'. Did you mean 'mocov3'",
    ),
    ("studies.yaml", "    tasks: every\n", "    tasks: evry\n", "Did you mean 'every'"),
    ("studies.yaml", "prepared_on: four", "prepared_on: fore", "Did you mean 'four'"),
    (
        "studies.yaml",
        "fine: [flowers]",
        "fine: [flower]",
        "unknown task 'flower'. Did you mean 'flowers",
    ),
    (
        "studies.yaml",
        "scaling: [cub_200_2011]",
        "scaling: [cub_2002011]",
        "Did you mean 'cub_200_2011'",
    ),
    (
        "studies.yaml",
        "rate_of: DA-VPT+",
        "rate_of: DA-VTP+",
        "unknown variant of the benchmark 'DA-VTP+'. Did you mean 'DA-VPT+'",
    ),
    (
        "studies.yaml",
        "rate_of: true",
        "rate_of: false",
        "false is given; write true, none or the name of a variant",
    ),
    (
        "studies.yaml",
        "{method: bias}",
        "{method: bia}",
        "unknown method 'bia'. Did you mean 'bias'",
    ),
    ("studies.yaml", "{method: bias}", "{metod: bias}", "Did you mean 'method'"),
    (
        "studies.yaml",
        "{method: provp, prompt_tokens: deep}",
        "{method: provp, prompt_token: deep}",
        "Did you mean 'prompt_tokens'",
    ),
    (
        "studies.yaml",
        "{method: provp, prompt_tokens: deep}",
        "{method: provp, prompt_tokens: dep}",
        "write a whole number or 'deep', 'shallow' or 'place'",
    ),
    (
        "studies.yaml",
        "frozen: true, rate_of: none}",
        "frozen: 'yes', rate_of: none}",
        "'yes' is given; write true or false",
    ),
    ("studies.yaml", "biases: [query]", "biases: query", "'query' is given; write a list"),
    ("studies.yaml", "blocks: da-vpt ", "blocks: davpt ", "Did you mean 'da-vpt'"),
    (
        "studies.yaml",
        "quick: [80, 200, 800, 1600]",
        "quik: [80, 200, 800, 1600]",
        "Did you mean 'quick'",
    ),
    (
        "studies.yaml",
        "  benchmark:\n    title",
        "  benchmrk:\n    title",
        "Did you mean 'benchmark'",
    ),
    ("studies.yaml", "  benchmark:\n    title", "  benchmark:\n    titel", "Did you mean 'title'"),
    (
        "notebooks.yaml",
        "ap_theory:",
        "ap_theri:",
        "unknown notebook 'ap_theri'. Did you mean 'ap_theory'",
    ),
    ("notebooks.yaml", "ap.lemma-1,", "ap.lema-1,", "Did you mean 'ap.lemma-1'"),
    (
        "notebooks.yaml",
        "artifacts: [ap.lemma-1, ap.theorem-1",
        "artifacts: [ap.figure-2, ap.theorem-1",
        "is given to ap_theory already",
    ),
    (
        "notebooks.yaml",
        "artifacts: [ap.lemma-1, ap.theorem-1",
        "artifacts: [ap.lemma-1, ap.lemma-1",
        "given twice",
    ),
    ("notebooks.yaml", "  title: ", "  titel: ", "Did you mean 'title'"),
    ("notebooks.yaml", "after: [methods]", "after: [metods]", "Did you mean 'methods'"),
    ("notebooks.yaml", "after: [methods]", "after: [spt]", "unknown notebook above it 'spt'"),
    ("papers/papers.yaml", "  short: AP", "  shrt: AP", "Did you mean 'short'"),
    ("papers/papers.yaml", "  short: AP", "  short: ' '", "' ' is given; write a text"),
    ("papers/names.yaml", "  measure:\n", "  measur:\n", "Did you mean 'measure'"),
    (
        "papers/names.yaml",
        "fixed: {measure: accuracy, backbone",
        "fixed: {measure: accuracy, backbon",
        "Did you mean 'backbone'",
    ),
    ("papers/names.yaml", "  ivpt.table-11:", "  ivpt.table-111:", "Did you mean 'ivpt.table-11'"),
    (
        "papers/names.yaml",
        "rows: {method: structure}",
        "rows: {method: structur}",
        "Did you mean 'structure'",
    ),
    ("papers/names.yaml", "{CIFAR100: CIFAR100", "{CIFAR10: CIFAR100", "Did you mean 'CIFAR100'"),
    (
        "papers/names.yaml",
        "[CIFAR100 .. Group mean]",
        "[CIFAR100 .. Group men]",
        "Did you mean 'Group mean'",
    ),
    (
        "papers/names.yaml",
        "where: {setting: VPT baseline}",
        "where: {settin: VPT baseline}",
        "Did you mean 'setting'",
    ),
    ("papers/counts.yaml", "  table: ap.prose", "  tabel: ap.prose", "Did you mean 'table'"),
    ("papers/counts.yaml", "table: ap.prose", "table: ap.table-22", "Did you mean 'ap.table-2'"),
    (
        "papers/counts.yaml",
        "sources: [ap.figure-2]",
        "sources: [ap.figure-22]",
        "Did you mean 'ap.figure-2'",
    ),
    (
        "papers/counts.yaml",
        "column: parameters_m",
        "column: parameter_m",
        "Did you mean 'parameters_m'",
    ),
    (
        "papers/counts.yaml",
        "NORM-TUNE: {slug: norm-tune}",
        "NORMTUNE: {slug: norm-tune}",
        "unknown row 'NORMTUNE'. Did you mean 'NORM-TUNE'",
    ),
    (
        "papers/counts.yaml",
        "NORM-TUNE: {slug: norm-tune}",
        "NORM-TUNE: {slug: normtune}",
        "Did you mean 'norm-tune'",
    ),
    (
        "papers/counts.yaml",
        "settings: {padding: 48}",
        "settings: {pading: 48}",
        "Did you mean 'padding'",
    ),
    (
        "papers/counts.yaml",
        "settings: {prompt_tokens: N}",
        "settings: {prompt_tokens: M}",
        "write a whole number or 'N' or 'k'",
    ),
    ("papers/counts.yaml", "tasks: cifar-10", "tasks: cifar10", "Did you mean 'cifar-10'"),
    ("papers/counts.yaml", "measure: together", "measure: togther", "Did you mean 'together'"),
    ("papers/counts.yaml", "key: backbone", "key: backbon", "Did you mean 'backbone'"),
    ("papers/counts.yaml", "decimals: 1", "decimals: -1", "at least 0"),
    (
        "papers/davpt/lost.yaml",
        "table-7:",
        "7:",
        "the key '7' is no text to YAML; write it in quotes",
    ),
    ("papers/shallowvit/claims.yaml", "  metric:", "  metrik:", "Did you mean 'metric'"),
    (
        "papers/shallowvit/claims.yaml",
        "margin: 0.001",
        "margin: .nan",
        "nan is given; write a number",
    ),
    (
        "papers/shallowvit/claims.yaml",
        "margin: 0.001",
        "margin: 1e-3",
        "write a number: 0.001 or 1.0e-3",
    ),
    ("papers/shallowvit/claims.yaml", "margin: 0.001", "margn: 0.001", "Did you mean 'margin'"),
    (
        "papers/shallowvit/claims.yaml",
        "direction: less",
        "direction: lesser",
        "Did you mean 'less'",
    ),
    (
        "papers/shallowvit/claims.yaml",
        "settles: [derived]",
        "settles: [guessed]",
        "unknown evidence 'guessed'",
    ),
    ("papers/shallowvit/claims.yaml", "weight: core", "weight: cor", "Did you mean 'core'"),
    ("papers/shallowvit/claims.yaml", "weight: core", "weigth: core", "Did you mean 'weight'"),
    ("papers/shallowvit/claims.yaml", "most: 1\n", "most: one\n", "write a number"),
    ("papers/spt/claims.yaml", "data_sets: 24", "data_sets: 0", "at least 1"),
    (
        "papers/shallowvit/claims.yaml",
        "settles: [derived]",
        "settles: derived",
        "'derived' is given; write a list",
    ),
    (
        "papers/shallowvit/claims.yaml",
        "settles: [derived]",
        "settles: []",
        "a list of 0 is given; write a list of at least 1",
    ),
    (
        "papers/shallowvit/claims.yaml",
        "artifact: shallowvit.theorem-1",
        "artifact: shallowvit.theorem-2",
        "Write a known artifact",
    ),
    (
        "papers/shallowvit/claims.yaml",
        "artifact: shallowvit.theorem-1",
        "artifact: spt.table-1",
        "unknown artifact of this paper",
    ),
    ("papers/shallowvit/claims.yaml", "tolerance: 0.5", "tolerance: -0.5", "at least 0"),
    (
        "papers/shallowvit/claims.yaml",
        "id: shallowvit.theorem-1.noise",
        "id: noise",
        "write 'shallowvit.theorem-1.<short slug>'",
    ),
    (
        "papers/shallowvit/claims.yaml",
        "id: shallowvit.theorem-1.noise",
        "id: shallowvit.theorem-1.loss-vanishes",
        "given twice",
    ),
    ("papers/spt/audit.yaml", "statements:", "statement:", "Did you mean 'statements'"),
    ("papers/spt/audit.yaml", "column: Mean Acc", "column: Mean Ac", "Did you mean 'Mean Acc'"),
    (
        "papers/spt/audit.yaml",
        "[CUB-200-2011 .. Stanford Cars]",
        "[CUB-200-2011 .. Stanford Cas]",
        "Did you mean 'Stanford Cars'",
    ),
    (
        "papers/spt/audit.yaml",
        "table: spt.table-2",
        "table: spt.table-22",
        "Did you mean 'spt.table-2'",
    ),
    ("papers/spt/audit.yaml", "sense: between", "sense: betwen", "Did you mean 'between'"),
    ("papers/spt/audit.yaml", "    range: [", "    rang: [", "Did you mean 'range'"),
    ("papers/spt/audit.yaml", "ties: true", "ties: 'yes'", "write true or false"),
    ("papers/spt/audit.yaml", "id: gain-of-shallow", "id: gain-over-vpt", "given twice"),
    (
        "papers/spt/audit.yaml",
        '["spt.table-2 | MAE | SPT-Deep | Mean Acc, Natural .. Structured"',
        '["spt.table-2 SPT-Deep"',
        "a reference 'artifact | row | column'",
    ),
]


@pytest.mark.refused
@pytest.mark.parametrize("name, old, new, words", DAMAGE, ids=lambda value: str(value)[:40].strip())
def test_damage(copy, name, old, new, words):
    text = (copy / name).read_text(encoding="utf-8")
    before, found, after = text.partition(old)
    assert found, f"{old!r} is not in {name}"
    if words in ("given twice", "is given to ap_theory already"):  # said of the second of the two
        at = None
    else:
        changed = next((i for i, (a, b) in enumerate(zip(old, new, strict=False)) if a != b), 0)
        at = (before + old[:changed]).count("\n") + 1
    said = refused(copy, name, before + new + after)
    assert words in said, said
    if at is not None:
        assert said.startswith(f", line {at}: "), said


# a key that is left out is missed where its mapping begins
DROPPED = [
    (
        "tasks.yaml",
        "    seed: 12\n",
        "  position:\n",
        "'seed' is missing; the mapping needs the keys group, nature",
    ),
    (
        "backbones.yaml",
        "    log: weights/resnet_micro_24.json\n",
        "  resnet_micro_24:\n",
        "'log' is missing",
    ),
    (
        "recipes.yaml",
        "  common: {epochs: 100, batch_size: 128, warmup: 0.0, standardise: false}\n",
        "paper:\n",
        "'common' is missing",
    ),
    (
        "recipes.yaml",
        "    batch_size: AP Table A1\n",
        "  sources:\n    optimizer: Adam, AP",
        "'batch_size' has no source",
    ),
    ("studies.yaml", "    tasks: amount\n", "  spt-amount:\n", "'tasks' is missing"),
    ("notebooks.yaml", "  artifacts: []\n", "methods:\n", "'artifacts' is missing"),
    (
        "papers/papers.yaml",
        "  short: SPT\n",
        "spt:\n",
        "the mapping needs the keys title, short and subject",
    ),
    (
        "papers/names.yaml",
        "    columns: {data: [CIFAR100 .. Group mean]}\n",
        "  ivpt.table-1:",
        "'columns' is missing",
    ),
    (
        "papers/counts.yaml",
        "  column: total_parameters\n",
        "- sources: [ap.table-a2]\n",
        "'column' is missing",
    ),
    (
        "papers/shallowvit/claims.yaml",
        "  margin: 0.001\n",
        "- id: shallowvit.theorem-1.loss-vanishes",
        "needs a margin",
    ),
    (
        "papers/shallowvit/claims.yaml",
        "  tolerance: 0.5\n",
        "- id: shallowvit.figure-1.sample-exponent",
        "needs published and tolerance",
    ),
    (
        "papers/spt/audit.yaml",
        "    column: Mean Acc\n",
        "  - table: spt.table-2",
        "'column' is missing",
    ),
    (
        "papers/spt/audit.yaml",
        "    prose: gain-over-vpt\n",
        "  - id: gain-over-vpt",
        "as prose or as cell",
    ),
]


@pytest.mark.refused
@pytest.mark.parametrize(
    "name, old, where, words", DROPPED, ids=lambda value: str(value)[:40].strip()
)
def test_dropped_keys(copy, name, old, where, words):
    text = (copy / name).read_text(encoding="utf-8")
    assert old in text and where in text
    said = refused(copy, name, text.replace(old, "", 1))
    assert (
        said.startswith(f", line {text[: text.index(where)].count(chr(10)) + 1}: ")
        and words in said
    ), said


NAMES = [
    "../../x",
    "/abs.bin",
    "..",
    ".",
    "''",
    "' '",
    "a/b.zip",
    "a/../b",
    ".turn",
    "~/x",
    "'a\\b'",
    '"a\\0b"',
    '"a\\nb"',
    '"a.zip\\n"',
]
NAMES += ["C:x", "a b", "é.zip", "-rf", "x" * 201, "5", "[a]", "'*'", "$HOME", '"\\u202egpj.zip"']
ENDS = [
    "http://x",
    "http://x/",
    "http://x/a/",
    "http://x/..",
    "http://x/%2e%2e%2fa",
    "http://x/.turn",
    "'http://x/a b'",
]


@pytest.mark.refused
@pytest.mark.parametrize(
    "field, given", [*(("name", name) for name in NAMES), *(("url", end) for end in ENDS)]
)
def test_a_file_has_a_plain_name(copy, field, given):
    """What is fetched lies in its data set's folder, under a name that is none of a folder or of
    the project's own."""
    text = (copy / "datasets/kitti.yaml").read_text(encoding="utf-8")
    whole = "url: https://s3.eu-central-1.amazonaws.com/avg-kitti/data_object_label_2.zip"
    assert whole in text
    said = refused(
        copy,
        "datasets/kitti.yaml",
        text.replace(whole, f"url: {given}" if field == "url" else f"{whole}\n    name: {given}"),
    )
    line = text[: text.index(whole)].count("\n") + (1 if field == "url" else 2)
    assert (
        said.startswith(f", line {line}: files > entry 2 > {field}: ")
        and "plain name: letters, digits and . _ + -" in said
    ), said


@pytest.mark.refused
def test_two_files_of_a_data_set_have_two_names(copy):
    text = (copy / "datasets/kitti.yaml").read_text(encoding="utf-8")
    said = refused(
        copy,
        "datasets/kitti.yaml",
        text.replace("devkit_object.zip", "other/data_object_label_2.zip"),
    )
    assert "'data_object_label_2.zip' is given twice; write another name." in said


@pytest.mark.refused
@pytest.mark.parametrize(
    "text, line, words",
    [
        (b"", 1, "no list or mapping"),
        (b"# only a remark\n", 1, "no list or mapping"),
        (b"a text\n", 1, "no list or mapping"),
        (b"a: 1\nb: [1, 2\n", 3, "not readable YAML"),
        (b"a:\n\tb: 1\n", 2, "indent with spaces, not with tabs"),
        (b"a: 1\nb: caf\xe9\n", 2, "not readable as UTF-8"),
        ("ab: é\n".encode("utf-16"), 1, "not readable as UTF-8"),
        (b"a: 1\nb: \x00\n", 2, "not readable YAML"),
        (b"a: 1\nb: 2\na: 3\n", 3, "'a' given twice"),
        (b"a: &x [1, *x]\n", 1, "refers to itself"),
        (b"a: *x\n", 1, "not readable YAML"),
        (b"a: 1\n---\nb: 2\n", 2, "not readable YAML"),
        (b"x: 1\na: !!python/object:os.system {}\n", 2, "not readable YAML"),
        (b"[a, b]: 1\n", 1, "the key in brackets is no text"),
        (b"yes: 1\n", 1, "'yes' is no text to YAML"),
        (b"<<: 5\n", 1, "not readable YAML"),
    ],
)
@pytest.mark.parametrize("name", ["papers/papers.yaml", "papers/davpt/claims.yaml"])
def test_what_is_no_manifest_at_all(copy, name, text, line, words):
    said = refused(copy, name, text)
    assert said.startswith(f", line {line}: ") and words in said, said


def test_impossible_dates_are_refused(copy):
    assert "month must be in 1..12; write texts in quotes" in refused(
        copy, "papers/papers.yaml", b"a: 2024-13-45\n"
    )


@pytest.mark.parametrize(
    "deep", ["[" * 100_000, "- " * 5_000, "a: " + "{b: " * 60 + "1" + "}" * 60]
)
def test_deep_nesting_is_refused(copy, deep):
    assert (
        refused(copy, "papers/papers.yaml", deep)
        == ", line 1: nested more than 50 deep; write it flatter."
    )


def test_many_aliases_are_refused(copy):
    """Ten lists of ten of the one before: 10**10 values when written out."""
    lines = [
        "l0: &l0 [1, 1]",
        *(f"l{i}: &l{i} [{', '.join([f'*l{i - 1}'] * 10)}]" for i in range(1, 11)),
    ]
    assert "more than 100000 values" in refused(copy, "papers/papers.yaml", "\n".join(lines))


def test_what_cannot_be_read(copy, tmp_path):
    with pytest.raises(BadInput, match="does not exist; restore it"):
        manifests.load_yaml(copy / "nothing.yaml")
    with pytest.raises(BadInput, match="cannot be read .*directory"):
        manifests.load_yaml(tmp_path)
    with pytest.raises(BadInput, match="cannot be read .*directory"):
        manifests.read_table(tmp_path)
    (tmp_path / "loop.yaml").symlink_to(tmp_path / "loop.yaml")
    with pytest.raises(BadInput, match="cannot be read"):
        manifests.load_yaml(tmp_path / "loop.yaml")
    if os.getuid():
        (tmp_path / "tasks.yaml").write_text("embedded: {}")
        (tmp_path / "tasks.yaml").chmod(0)
        with pytest.raises(BadInput, match="cannot be read .*denied"):
            manifests.load_yaml(tmp_path / "tasks.yaml")


def test_a_changed_file_is_read_anew(copy):
    """Even with the time of the old one, where its length or the file itself is another."""
    path = copy / "papers" / "davpt" / "lost.yaml"
    before, status = path.read_text(), path.stat()
    assert manifests.load_yaml(path)["table-1"].startswith("Only the caption")
    other = path.with_name("other")
    other.write_text(before.replace("Only the caption", "Mere the caption"))
    os.utime(other, ns=(status.st_atime_ns, status.st_mtime_ns))
    path.rename(path.with_name("old"))
    other.rename(path)
    assert path.stat().st_mtime_ns == status.st_mtime_ns and path.stat().st_size == status.st_size
    assert manifests.load_yaml(path)["table-1"].startswith("Mere the caption")
    path.unlink()
    path.with_name("old").rename(path)


def test_files_are_checked_once(copy, monkeypatch):
    manifests._checked.cache_clear()
    manifests.load_yaml(copy / "studies.yaml")["studies"].clear()
    monkeypatch.setattr(
        manifests, "validated", lambda path: pytest.fail(f"{path} is checked again")
    )
    # and what a caller changes is its own
    assert manifests.load_yaml(copy / "studies.yaml")["studies"]


@pytest.mark.parametrize(
    "name, old, new, words",
    [
        (
            "papers/spt/audit.yaml",
            '"spt.table-2 | MAE | SPT-Deep |',
            '"spt.table-2 | MAEE | SPT-Deep |',
            "Did you mean 'MAE'",
        ),
        (
            "papers/spt/audit.yaml",
            "prose: wins-over-full",
            "prose: win-over-full",
            "Did you mean 'wins-over-full'",
        ),
        ("papers/counts.yaml", "settings: {block: 31}", "settings: {block: 3000}", "block"),
    ],
)
def test_references_are_located_when_they_are_followed(copy, name, old, new, words):
    text = (copy / name).read_text(encoding="utf-8")
    assert old in text
    follow = (
        (lambda path: audit("spt")) if "audit" in name else (lambda path: counts.printed_counts())
    )
    said = refused(copy, name, text.replace(old, new, 1), follow)
    entry = max(text.rfind(mark, 0, text.index(old)) for mark in ("\n- ", "\n  - "))
    assert said.startswith(f", line {text[: entry + 1].count(chr(10)) + 1}: ") and words in said, (
        said
    )


@settings(max_examples=100, deadline=None, derandomize=True)
@given(st.sampled_from(MUTATED), st.floats(0, 1), st.integers(0, 40), st.text(max_size=8))
@example("recipes.yaml", 0.5, 0, "\t")
def test_random_damage_gives_one_line_or_a_valid_file(copy, name, at, cut, put):
    text = (SOURCE / name).read_text(encoding="utf-8")
    start = int(at * len(text))
    path = copy / name
    with holding(path, (text[:start] + put + text[start + cut :]).encode("utf-8", "surrogatepass")):
        try:
            manifests.load_yaml(path)
        except BadInput as error:
            assert str(error).startswith(str(path)) and "\n" not in str(error)


def test_a_misspelt_part_runs_nothing_and_says_so(copy, monkeypatch, capsys):
    """Not exit 0 without a word, as if there were nothing to do."""
    from visbook.studies import grids
    from visprompt.__main__ import main

    monkeypatch.setattr(paths, "MANIFESTS", copy)
    text = (
        (copy / "studies.yaml")
        .read_text()
        .replace("backbones: [supervised]", "backbones: [supervized]", 1)
    )
    said = refused(copy, "studies.yaml", text, lambda path: grids.studies())
    (copy / "studies.yaml").write_text(text)
    try:
        assert main(["study", "tasks"]) == 2
    finally:
        shutil.copy(SOURCE / "studies.yaml", copy)
    assert capsys.readouterr().err == f"visprompt: {copy / 'studies.yaml'}{said}\n"


@pytest.mark.refused
@pytest.mark.parametrize(
    "rule, words",
    [
        ({"ratio": [f"{AP} | DTD", 0]}, "divides by a cell that is zero"),
        ({"difference": [f"{AP} | CUB200, DTD", 1]}, "difference is of single cells"),
        ({"largest": [f"{AP} | CUB200, DTD", f"{AP} | DTD"]}, "cannot be paired"),
        (
            {"rank": {"row": f"{AP} | CUB200, DTD", "among": [f"{AP} | CUB200, DTD"]}},
            "rank is of single cells",
        ),
        ("ap.table-1" + " | AP" * 30 + " | DTD", "name fewer"),
    ],
)
def test_rules_that_cannot_be_computed(rule, words):
    from visbook.auditing.operations import evaluate

    with pytest.raises(BadInput, match=words):
        evaluate(rule)


def test_a_schema_follows_from_the_dataclass_that_reads_the_file():
    from visprompt.manifests import schema

    @dataclass
    class Read:
        name: str
        title: schema.Text
        sizes: dict[str, schema.Whole] = field(default_factory=dict)

    made = schema.of_fields(Read, leave_out=("name",), files=schema.listed(schema.TEXT))
    assert made["required"] == ["title"] and set(made["properties"]) == {"title", "sizes", "files"}
    assert made["properties"]["sizes"] == schema.named(schema.COUNT)
    assert not made["additionalProperties"]
