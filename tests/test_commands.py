"""The commands a user types: answers on stdout, mistakes as one line and a non-zero exit."""

import io
import os
import re
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path

import pandas as pd
import papermill
import pytest
from test_notebook import shell  # noqa: F401

from visbook import auditing
from visprompt import papers
from visprompt.__main__ import main
from visprompt.errors import BadInput
from visprompt.paths import ROOT
from visprompt.records import store
from visprompt.words import NOT_JUDGED, NOT_RUN, WEIGHTS, answers

BIN = Path(sys.executable).parent


def outside() -> dict:
    """The environment without pytest's mark, in which ipykernel leaves its streams alone; users
    have none."""
    return {key: value for key, value in os.environ.items() if key != "PYTEST_CURRENT_TEST"}


def test_published_prints_the_table(capsys):
    assert main(["published", "ap.table-2"]) == 0
    assert "304.33" in capsys.readouterr().out


@pytest.mark.refused
@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["published", "ap.table-22"], "unknown artifact 'ap.table-22'. Did you mean"),
        (["published", "ap.table-a8"], "lost the cells"),
        (["published", "ap.figure-2"], "prints no cells"),
        (["claims", "--paper", "app"], "Did you mean 'ap'"),
        (["claims", "--verdict", "agree"], "Did you mean 'agrees'"),
        (["claims", "--verdict", "seen her"], "Did you mean 'seen here'"),
        (["claims", "--profile", "fast"], "unknown profile"),
        (["artifacts", "--paper", "davptt"], "Did you mean 'davpt'"),
        (["study", "benchmrk"], "Did you mean 'benchmark'"),
        (["rates", "lorra"], "unknown method 'lorra'. Did you mean 'lora'"),
        (["rates", "lora", "--rates", "-1"], "learning_rate must be above 0"),
        (["study", "benchmark", "--part", "3"], "part must be written 1/2"),
        (["study", "benchmark", "--profile", "papers"], "Did you mean 'paper'"),
    ],
)
def test_a_mistake_is_one_line_and_exit_2(capsys, words, message):
    assert main(words) == 2
    error = capsys.readouterr().err
    assert message in error and error.count("\n") == 1


def test_claims_are_one_a_line(capsys):
    assert main(["claims", "--paper", "ap"]) == 0
    said = capsys.readouterr()
    lines = [line.split("\t") for line in said.out.splitlines()]
    assert len(lines) == len(papers.claims("ap"))
    assert all(len(line) == 5 and line[4] in WEIGHTS for line in lines)
    for _, _, evidence, word, _ in lines:
        assert word in ((NOT_JUDGED, NOT_RUN) if evidence == "-" else answers(evidence))
    assert "judged: " in said.err and "disagrees" in said.err


def test_a_reader_that_stops_ends_the_command_in_silence(monkeypatch, capsys):
    reading, writing = os.pipe()
    os.close(reading)
    with monkeypatch.context() as patch, os.fdopen(writing, "w") as stream:
        patch.setattr(sys, "stdout", stream)
        assert main(["artifacts"]) == 141
    assert capsys.readouterr().err == ""  # also when the stream is closed


def test_a_full_disk_behind_the_answer_is_one_line(monkeypatch, capsys):
    with monkeypatch.context() as patch, open("/dev/full", "w") as stream:
        patch.setattr(sys, "stdout", stream)
        assert main(["artifacts"]) == 2
    assert (
        capsys.readouterr().err
        == "visprompt: the answer: No space left on device. Mend that, or name another place.\n"
    )


def test_a_closed_stdout_is_said(monkeypatch, capsys):
    monkeypatch.setattr(sys, "stdout", None)
    assert main(["artifacts"]) == 1
    assert "standard output is closed" in capsys.readouterr().err


def test_without_streams_nothing_is_raised(monkeypatch):
    monkeypatch.setattr(sys, "stdout", None)
    monkeypatch.setattr(sys, "stderr", None)
    assert main(["artifacts"]) == 1
    assert main(["artifacts", "--paper", "app"]) == 2


@pytest.fixture
def quick_audit(monkeypatch):
    """One finding in place of the hundreds, which take seconds."""
    claim = next(
        claim
        for claim in papers.claims("ap")
        if claim.direction == "equal" and "derived" in claim.settles
    )
    finding = auditing.Finding(
        "ap.mean",
        "ap",
        "",
        "Table 1",
        "mean",
        "a mean",
        "3 × 4",
        "12",
        "disagrees",
        claim=claim.id,
        estimate=claim.published + 2 * claim.tolerance + 1,
    )
    monkeypatch.setattr(auditing, "audit", lambda paper=None: pd.DataFrame([asdict(finding)]))


def test_a_terminal_without_the_signs_gets_their_numbers(monkeypatch, quick_audit):
    stream = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    monkeypatch.setattr(sys, "stdout", stream)
    assert main(["audit", "ap"]) == 0
    stream.seek(0)
    shown = stream.read()
    assert "\\xd7" in shown and shown.isascii()


def test_every_command_reads_its_files_in_a_plain_locale():
    plain = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONIOENCODING": "ascii"}
    code = (
        "from visbook import auditing; from visprompt.__main__ import main\n"
        # all of them take a while
        "one = auditing.audit('shallowvit'); auditing.audit = lambda paper=None: one\n"
        "print([main([word]) for word in ('audit', 'artifacts', 'claims')])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], env={**outside(), **plain}, capture_output=True, text=True
    )
    assert done.stdout.splitlines()[-1:] == ["[0, 0, 0]"], done.stderr


@pytest.mark.parametrize(
    ("error", "status", "message"),
    [
        (KeyboardInterrupt(), 130, "visprompt: stopped; finished runs are kept"),
        (
            PermissionError(13, "Permission denied", "/a folder"),
            2,
            "visprompt: /a folder: Permission denied",
        ),
        (
            FileNotFoundError(2, "No such file or directory", "list.txt"),
            2,
            "visprompt: list.txt: No such file",
        ),
    ],
)
def test_what_a_command_meets_is_one_line(monkeypatch, capsys, error, status, message):
    def met(paper):
        raise error

    monkeypatch.setattr(papers, "artifacts", met)
    assert main(["artifacts"]) == status
    said = capsys.readouterr().err
    assert said.startswith(message) and said.count("\n") == 1


@pytest.mark.parametrize("error", [KeyError("bug"), OSError("no file in it"), TypeError()])
def test_a_bug_is_seen(monkeypatch, error):
    def met(paper):
        raise error

    monkeypatch.setattr(papers, "artifacts", met)
    with pytest.raises(type(error)):
        main(["artifacts"])


def test_looking_needs_no_folder_to_write_to(stores, quick_audit, tmp_path, capsys):
    (tmp_path / "build").write_text("no folder")
    for words in (
        ["claims", "--paper", "ap"],
        ["audit", "ap"],
        ["artifacts"],
        ["published", "ap.table-2"],
    ):
        assert main(words) == 0
    assert "derived\tdisagrees" in capsys.readouterr().out  # what the audit says of claims
    records = auditing.audit_records()
    assert {record.id for record in records} == {""} and all(
        record.values["findings"] for record in records
    )


def test_a_damaged_audit_is_still_named(stores, quick_audit):
    auditing.audit_records()
    path = next(store.files(stores[0], "audit"))
    path.write_text("{")
    with pytest.raises(BadInput, match=f"{path.stem}.*damaged"):
        auditing.audit_records()


@pytest.fixture(scope="module")
def converted(tmp_path_factory):
    folder = tmp_path_factory.mktemp("ipynb")
    for name in ("ap", "ap_theory"):
        command = [
            BIN / "jupytext",
            "--quiet",
            "--to",
            "ipynb",
            "--output",
            folder / f"{name}.ipynb",
            ROOT / "notebooks" / f"{name}.py",
        ]
        subprocess.run(command, check=True)
    return folder


def test_plain_papermill_refuses_a_bad_parameter(converted, tmp_path):
    words = [
        "--no-progress-bar",
        converted / "ap_theory.ipynb",
        tmp_path / "out.ipynb",
        "-p",
        "sede",
        "[0]",
    ]
    there = {"cwd": tmp_path, "env": {**outside(), "VISPROMPT_ROOT": str(ROOT)}}
    done = subprocess.run([BIN / "papermill", *words], capture_output=True, text=True, **there)
    assert done.returncode != 0
    assert "unknown notebook parameter 'sede'. Did you mean 'seeds'" in done.stderr
    assert not list(tmp_path.glob("build/records/*/*"))


@pytest.mark.refused
@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"methods": '["app"]'}, "unknown method 'app'. Did you mean 'ap'"),
        ({"tasks": '["positon"]'}, "Did you mean 'position'"),
        ({"weights": "/nowhere/file.safetensors"}, "/nowhere/file.safetensors does not exist"),
    ],
)
def test_a_chapter_refuses_what_papermill_passes_on(converted, stores, shell, given, message):  # noqa: F811
    """As papermill does it, in this process: a cell with what was given behind that of the
    parameters."""
    notebook = papermill.iorw.load_notebook_node(str(converted / "ap.ipynb"))
    notebook = papermill.parameterize.parameterize_notebook(notebook, given)
    code = [cell.source for cell in notebook.cells if cell.cell_type == "code"]
    with pytest.raises(BadInput, match=re.escape(message)):
        for source in code:
            shell.run_cell(source, store_history=True).raise_error()
    assert not list(store.files(stores[0]))


def test_plain_papermill_runs_a_narrow_slice(converted, tmp_path):
    """One seed, one method, one epoch, few images: the notebook renders what it has."""
    root = tmp_path / "root"
    root.mkdir()
    for folder in ("data_manifests", "notebooks"):
        (root / folder).symlink_to(ROOT / folder)
    words = [
        "-p",
        "seeds",
        "[0]",
        "-p",
        "kept_seeds",
        "[]",
        "-p",
        "methods",
        '["linear-probe"]',
        "-p",
        "epochs",
        "1",
    ]
    words += ["-p", "backbone", "resnet_micro_24", "-p", "tasks", '["position"]']
    done = subprocess.run(
        [
            BIN / "papermill",
            "--no-progress-bar",
            converted / "ap.ipynb",
            tmp_path / "out.ipynb",
            *words,
        ],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env={**outside(), "VISPROMPT_ROOT": str(root)},
    )
    assert done.returncode == 0, done.stderr[-2000:]
    # whole training split and few shots; the page's last cell, "Try it", leaves one of AP
    made = [store.read_record(path) for path in store.files(root / "build" / "records", "tune")]
    assert sorted(r.settings["method"] for r in made) == ["ap", "linear-probe", "linear-probe"]
    assert "3/3" in done.stderr  # progress reaches the terminal from inside the kernel


@pytest.mark.refused
@pytest.mark.parametrize(
    "words",
    [
        ["verify", "0"],
        ["verify", "x"],
        ["verify", "--tolerance", "-1"],
        ["verify", "--tolerance", "nan"],
        ["runs", "--format", "xml"],
        ["runs", "--seed", "x"],
        ["runs", "--store", "there"],
        ["keep", "--kind", "nosuch"],
        ["audit", "--nosuch"],
        [],
    ],
)
def test_what_a_command_cannot_read_gives_one_line(capsys, words):
    try:
        status = main(words)
    except SystemExit as left:
        status = left.code
    assert status == 2 and capsys.readouterr().err.count("\n") == 1
