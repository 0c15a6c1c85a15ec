"""make and Snakemake around the notebooks: what they pass on and run again, and the site that never
goes away."""

import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import yaml
from snakemake.cli import parse_config

from visbook.site import build as book
from visbook.site import links
from visprompt.errors import BadInput
from visprompt.paths import ROOT

RESULTS = {
    "profile": "quick",
    "commit": "0",
    "claims": {},
    "artifacts": {"a": {"shows": [{"records": ["1f2e"]}]}},
}
RECORD = '{\n "id": "1f2e",\n "key": "k"\n}\n'
NOTEBOOK = {"cells": [{"outputs": [{"data": {book.RESULTS_MIME: RESULTS}}]}]}
# In place of the real ones: what runs is noted, and a notebook leaves the record that its results
# name.
PROGRAMS = {
    "jupytext": 'mkdir -p build/ipynb; touch "$5"',
    "papermill": """echo notebook >> ran; mkdir -p build/records/kind; cp record build/records/kind/x.json
        cp done "${@: -1}"; """,
    "python3": """if [[ $* != *visbook.site.build* ]]; then exec PYTHON "$@"; fi
        echo site >> ran; [ ! -e slow ] || sleep 60; [ ! -e wrong ] || exit 1
        mkdir -p build/site; date +%N > build/site/index.html""",
    "snakemake": 'exec PYTHON -m snakemake "$@"',
}


@pytest.fixture
def root(tmp_path) -> Path:
    """A repository with one notebook whose programs only pretend."""
    root = tmp_path / "a root"
    for folder in ("book/records", "notebooks", "data_manifests/weights", ".venv/bin"):
        (root / folder).mkdir(parents=True)
    (root / "src").symlink_to(ROOT / "src")
    (root / "data_manifests" / "papers").mkdir()
    papers = ROOT / "data_manifests" / "papers" / "papers.yaml"
    shutil.copy(papers, root / "data_manifests" / "papers")
    for name in ("backbones", "tasks", "recipes"):
        (root / "data_manifests" / f"{name}.yaml").write_text("{}")
    (root / "data_manifests" / "notebooks.yaml").write_text("one: {title: One, artifacts: [a]}\n")
    (root / "notebooks" / "one.py").write_text(
        "# %% [markdown]\n# # One ±\n\n# %%\ndata_dir = None\n", encoding="utf-8"
    )
    for name in (
        "Makefile",
        "Snakefile",
        "_config.yml",
        "_toc.yml",
        "requirements.lock",
        "pyproject.toml",
    ):
        shutil.copy(ROOT / name, root)
    (root / "book" / "page.md").write_text("A page.")
    (root / "done").write_text(json.dumps(NOTEBOOK))
    (root / "record").write_text(RECORD)
    for name, text in PROGRAMS.items():
        program(root, name, text)
    (root / ".venv" / ".ready").touch()
    return root


def program(root: Path, name: str, text: str) -> None:
    """Put a shell program into the small repository's .venv."""
    path = root / ".venv" / "bin" / name
    path.write_text("#!/bin/bash\n" + text.replace("PYTHON", sys.executable) + "\n")
    path.chmod(0o755)


def make(root: Path, *words: str) -> subprocess.CompletedProcess:
    """Run make there, without what an outer make exports, which would say that it enters a
    folder."""
    outer = ("MAKEFLAGS", "MAKELEVEL", "NAME", "ARGS", "DATA", "PROFILE", "DEVICE", "GPUS", "CORES")
    kept = {key: value for key, value in os.environ.items() if key not in outer}
    return subprocess.run(["make", *words], cwd=root, env=kept, capture_output=True, text=True)


def ran(root: Path) -> list[str]:
    """What has run since the last call."""
    path = root / "ran"
    lines = path.read_text().split() if path.exists() else []
    path.unlink(missing_ok=True)
    return lines


def test_the_old_site_stands_when_the_site_step_fails_or_is_killed(root):
    done = make(root, "book")
    assert done.returncode == 0, done.stderr
    assert ran(root) == ["notebook", "site"]
    index = root / "build" / "site" / "index.html"
    first = index.read_text()

    (root / "book" / "page.md").write_text("Another page.")
    (root / "wrong").touch()
    assert make(root, "book").returncode != 0 and ran(root) == ["site"]
    assert index.read_text() == first
    (root / "wrong").rename(root / "slow")
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    run = subprocess.Popen(["make", "book"], cwd=root, start_new_session=True, **quiet)
    while not ((root / "ran").exists() and (root / "ran").read_text()):  # made, then written
        time.sleep(0.01)
    os.killpg(run.pid, signal.SIGKILL)
    run.wait()
    assert index.read_text() == first and ran(root) == ["site"]
    (root / "slow").unlink()
    assert make(root, "book").returncode == 0 and ran(root) == ["site"]
    assert index.read_text() != first

    shutil.rmtree(root / "build" / "site")  # somebody tidies up by hand
    assert make(root, "book").returncode == 0 and ran(root) == ["site"] and index.exists()
    assert make(root, "clean").returncode == 0
    assert sorted(path.name for path in (root / "build").iterdir()) in (
        [".turn", "records"],
        ["records"],
    )


def test_a_book_that_fails_says_last_which_page_died_of_what(root):
    died = {"output_type": "error", "ename": "BadInput", "evalue": "no number gives 33.3 %."}
    (root / "done").write_text(json.dumps({"cells": [{"outputs": [died]}]}))
    program(root, "papermill", 'cp done "${@: -1}"; exit 1')
    done = make(root, "book")
    assert done.returncode != 0
    said = "build/running/one.ipynb: BadInput: no number gives 33.3 %."
    assert said in done.stderr.splitlines()[-6:], done.stderr


def test_a_notebook_starts_after_those_that_do_some_of_its_runs(root):
    entries = (
        "two: {title: Two, artifacts: [], after: [one]}\nalone: {title: Alone, "
        "artifacts: []}\none: {title: One, artifacts: [a]}\n"
    )
    (root / "data_manifests" / "notebooks.yaml").write_text(entries)
    for name in ("two", "alone"):
        shutil.copy(root / "notebooks" / "one.py", root / "notebooks" / f"{name}.py")
    program(root, "papermill", PROGRAMS["papermill"].replace("echo notebook", 'echo "$5"'))
    done = make(root, "book", "CORES=1")
    assert done.returncode == 0, done.stderr
    # what others wait for comes first
    assert [Path(name).stem for name in ran(root)] == ["one", "two", "alone", "site"]
    # as after any change of the package
    (root / "book" / "records" / "x.json").write_text(RECORD.replace("1f2e", "2f2e"))
    assert make(root, "book").returncode == 0
    assert sorted(Path(name).stem for name in ran(root)) == ["alone", "one", "site", "two"]


def test_a_notebook_whose_records_are_gone_runs_again(root):
    assert make(root, "book").returncode == 0
    ran(root)
    shutil.rmtree(root / "build" / "records")
    done = make(root, "book")
    assert done.returncode == 0 and "one.ipynb are gone" in done.stderr
    assert ran(root) == ["notebook", "site"]
    (
        root / "build" / "executed" / "quick" / "one.ipynb"
    ).unlink()  # as after a kill between the removal and the run
    assert make(root, "book").returncode == 0 and ran(root) == ["notebook", "site"]
    assert make(root, "book").returncode == 0 and ran(root) == []


def test_what_is_gone_is_known_from_the_files(root, monkeypatch):
    """The functions of the Snakefile, without Snakemake: a record counts wherever it lies, a failed
    one does not."""
    text = (ROOT / "Snakefile").read_text(encoding="utf-8")
    text = (
        text[text.index("def ids(") : text.index("# The kept records as one")]
        + text[text.index("def named(") : text.index("if workflow.is_main_process")]
    )
    names = {
        "json": json,
        "re": re,
        "sys": sys,
        "Path": Path,
        "PROFILE": "quick",
        "NOTEBOOKS": ["one"],
        "RESULTS_MIME": book.RESULTS_MIME,
    }
    exec(text, names := {**names, "STORES": ("build/records", "book/records")})
    monkeypatch.chdir(root)
    path, kept = Path("build/executed/quick/one.ipynb"), Path("book/records/any/folder")
    path.parent.mkdir(parents=True)
    kept.mkdir(parents=True)
    for file, text, stays in (
        ("x.json", RECORD, True),
        ("deeper.json", RECORD.replace("\n", ""), True),
        ("x.json.part", RECORD, False),
        ("x.json", RECORD.replace("1f2e", "1f2f"), False),
        ("x.json", "{}", False),
        ("x.json", "", False),
    ):
        (kept / file).write_text(text)
        shutil.copy("done", path)
        names["forget_what_is_gone"]()
        assert path.exists() == stays, (file, text)
        (kept / file).unlink()
    # the site step speaks of it
    for damaged in ("", "[]", '{"cells": [1]}', "\x00", '{"cells": [{"outputs": null}]}'):
        path.write_text(damaged)
        names["forget_what_is_gone"]()
        assert path.exists()


# Leaves a record for each number, whole at once as records are, and a notebook that is half written
# for a while.
RECORDING = """mkdir -p build/records/kind
for n in {11..30}; do
    file=build/records/kind/$n.json
    [ -e $file ] || { sleep 0.03; sed "s/1f2e/$n/" record > $file.part; mv $file.part $file; }
done
head -c 50 done > "${@: -1}"; sleep 0.3; cat done > "${@: -1}"; sleep 0.1
"""


def records_there(root: Path) -> dict[str, tuple]:
    """Name -> (text, when it was written) of the records."""
    files = (root / "build" / "records").rglob("*.json")
    return {path.name: (path.read_text(), path.stat().st_mtime_ns) for path in files}


def test_a_killed_book_is_made_by_the_next_run(root):
    """Half as many kills as VISPROMPT_KILLS says, from states that lack something; VISPROMPT_SEED
    draws others."""
    numbers = [str(number) for number in range(11, 31)]
    text = json.dumps({"cells": [{"outputs": [{"data": {book.RESULTS_MIME: RESULTS}}]}]}).replace(
        '"1f2e"', json.dumps(numbers)[1:-1]
    )
    (root / "done").write_text(text)
    program(root, "papermill", RECORDING)
    kills, seed = (
        int(os.environ.get(f"VISPROMPT_{name}", usual))
        for name, usual in (("KILLS", 4), ("SEED", 0))
    )
    print(f"VISPROMPT_SEED={seed}")
    chance, began = random.Random(seed), time.perf_counter()
    assert make(root, "book").returncode == 0
    whole, executed = (
        time.perf_counter() - began,
        root / "build" / "executed" / "quick" / "one.ipynb",
    )
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    for number in range(max(1, kills // 2)):
        for name in numbers:
            if chance.random() < 0.7:
                (root / "build" / "records" / "kind" / f"{name}.json").unlink()
        before = records_there(root)
        run = subprocess.Popen(["make", "book"], cwd=root, start_new_session=True, **quiet)
        time.sleep(chance.uniform(0.1, 0.9) * whole)
        os.killpg(run.pid, signal.SIGKILL)
        run.wait()
        after = records_there(root)
        assert before.items() <= after.items()
        assert not executed.exists() or executed.read_text() == text
        done = make(root, "book")
        assert done.returncode == 0, done.stderr
        there = records_there(root)
        assert after.items() <= there.items() and len(there) == 20 and executed.read_text() == text
        assert all(
            said == RECORD.replace("1f2e", Path(name).stem) for name, (said, _) in there.items()
        )
    ran(root)
    assert make(root, "book").returncode == 0 and not ran(root)  # nothing is left to do


@pytest.mark.skipif(not shutil.which("flock"), reason="make takes turns by flock")
def test_two_makes_in_one_folder_take_turns(root):
    program(
        root,
        "papermill",
        "touch started; while [ ! -e go ]; do sleep 0.05; done; " + PROGRAMS["papermill"],
    )
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
    first = subprocess.Popen(["make", "book"], cwd=root, **pipes)
    while not (root / "started").exists():
        assert first.poll() is None, first.communicate()[0]
        time.sleep(0.05)
    second = subprocess.Popen(["make", "book"], cwd=root, **pipes)
    said = second.stdout.readline()
    while said and "Waiting for another make in this folder." not in said:
        said = second.stdout.readline()
    assert said and ran(root) == []
    (root / "go").touch()
    assert "Waiting" not in first.communicate()[0]
    second.communicate()
    assert [first.returncode, second.returncode] == [0, 0] and ran(root) == ["notebook", "site"]


@pytest.mark.refused
@pytest.mark.parametrize(
    "mount",
    [
        "mount --bind . . && cd . && mount -o remount,ro,bind .",
        "mkdir build && mount -t tmpfs -o size=64k tmpfs build",
    ],
    ids=["read-only", "full"],
)
def test_a_folder_that_cannot_be_written_is_one_line(root, mount):
    inside = ["unshare", "--mount", "bash", "-c"]
    if (
        not shutil.which("unshare")
        or subprocess.run([*inside, "mount -t tmpfs tmpfs /tmp"], capture_output=True).returncode
    ):
        pytest.skip("this user may not mount anything")
    program(root, "inside", f'{mount} || exit 77; cd "$PWD" && exec make book')
    done = subprocess.run(
        ["unshare", "--mount", root / ".venv/bin/inside"], cwd=root, capture_output=True, text=True
    )
    said = [line for line in (done.stdout + done.stderr).splitlines() if "make" not in line]
    assert (
        done.returncode == 2
        and len(said) == 1
        and said[0].startswith("This folder cannot be written: free space")
    ), done


def test_a_user_without_a_home_gets_one_in_the_folder(root, monkeypatch):
    program(root, "snakemake", 'echo "$HOME and $USER"')
    monkeypatch.setenv("HOME", "/proc/nowhere")
    monkeypatch.delenv("USER", raising=False)
    assert re.search(rf"(?m)^{root}/build/home and \w+$", make(root, "book").stdout)
    monkeypatch.setenv("HOME", str(root))
    assert f"{root} and " in make(root, "book").stdout


FOLDERS = [
    "a #b",
    "2024",
    "it's",
    'say "x"',
    "007",
    "1e5",
    "true",
    "[a]",
    "ä: {b}",
    "back\\slash",
    "",
]


@pytest.mark.parametrize("folder", FOLDERS)
def test_a_data_folder_arrives_as_it_was_given(root, folder):
    program(
        root,
        "snakemake",
        "exec PYTHON -c 'import json, sys; print(json.dumps(sys.argv[1:]))' \"$@\"",
    )
    done = make(root, "book", f"DATA={folder}", "PROFILE=paper", "CORES=3")
    assert done.returncode == 0, done.stderr
    words = json.loads(done.stdout.splitlines()[-2])
    given = words[words.index("--config") + 1 : words.index("--")]
    assert parse_config(given) == {
        "profile": "paper",
        "device": "cpu",
        "gpus": 1,
        "jobs_a_card": 1,
        "data_dir": [folder],
    }
    assert words[words.index("--cores") + 1] == "3"


def test_a_notebook_gets_the_data_folder(root):
    folder = "it's a #folder ä"
    (root / folder).mkdir()
    program(root, "papermill", PROGRAMS["papermill"] + 'printf %s "$4" > given')
    done = make(root, "book", f"DATA={folder}")
    assert done.returncode == 0, done.stderr
    assert json.loads((root / "given").read_text(encoding="utf-8"))["data_dir"] == folder


@pytest.mark.refused
@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["book", "GPUS=x"], "GPUS is 'x'; write a number"),
        (["book", "JOBS_A_CARD=0"], "JOBS_A_CARD is '0'; write a number"),
        (["book", "CORES=x"], "CORES is 'x'; write a number"),
        (["book", "CORES=0"], "CORES is '0'; write a number"),
        (
            ["book", "DATA=no such folder"],
            "the data folder is 'no such folder'; write a folder that is there",
        ),
        (["notebook", "NAME=it's"], "Write NAME=..., one of: one"),
        (["notebook", 'NAME=a "b'], "Write NAME=..., one of: one"),
        (["notebook", "NAME=one two"], "Write NAME=..., one of: one"),
        (["notebook", "NAME=../notebooks/one"], "Write NAME=..., one of: one"),
        (["notebook", "NAME=*"], "Write NAME=..., one of: one"),
        (["notebook"], "Write NAME=..., one of: one"),
        (
            ["notebook", "NAME=one", "ARGS=-p seeds '[0]"],
            "ARGS cannot be read, perhaps for an odd quote; write",
        ),
        (["notebook", "NAME=one", "PROFILE=nonsense"], "write quick or paper"),
        (["bench", 'ARGS=--models "x'], "ARGS cannot be read"),
    ],
)
def test_a_mistake_at_make_is_one_line(root, words, message):
    done = make(root, *words)
    said = [line for line in (done.stdout + done.stderr).splitlines() if line.strip()]
    said = [line for line in said if not line.startswith("make: ***")]
    assert done.returncode == 2 and len(said) == 1 and message in said[0], done.stdout + done.stderr
    assert not ran(root)


@pytest.mark.refused
@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"profile": "nonsense"}, "the profile is 'nonsense'; write quick or paper"),
        ({"profile": "it's; false"}, "write quick or paper"),
        ({"device": "gpu"}, "the device is 'gpu'; write cpu, cuda or mps"),
        ({"device": "cuda:x"}, "the device is 'cuda:x'; write cpu, cuda or mps"),
        ({"gpus": "x"}, "the gpus is 'x'; write a number"),
        ({"jobs_a_card": "0"}, "the jobs_a_card is '0'; write a number of 1 or more"),
        ({"data_dir": ["2024"]}, "the data folder is '2024'; write"),
        ({"data_dir": "Makefile"}, "the data folder is 'Makefile'; write"),
    ],
)
def test_a_mistake_in_the_configuration_is_one_line(root, monkeypatch, config, message):
    """What the Snakefile reads before anything else, without Snakemake, which takes seconds to
    start."""
    text = (root / "Snakefile").read_text(encoding="utf-8")
    text = text[text.index("PROFILE, DEVICE") : text.index("os.environ.setdefault")]
    monkeypatch.chdir(root)
    known = {"re": re, "os": os, "sys": sys, "yaml": yaml}
    exec(text, {"config": {"profile": "quick", "device": "mps", "gpus": 2}, **known})
    with pytest.raises(SystemExit) as told:
        exec(text, {"config": config, **known})
    assert message in told.value.code and "\n" not in told.value.code


def test_jobs_share_cards_evenly(root):
    """Four places on two cards, each held until its job ends; a free one is taken again."""
    text = (root / "Snakefile").read_text(encoding="utf-8")
    text = text[text.index('CARD = ""') : text.index("def parameters")].rsplit("\n\n\n", 1)[0]
    known = {"DEVICE": "cuda", "CARDS": 2, "A_CARD": 2}
    exec(text, known)
    (root / "build").mkdir(exist_ok=True)
    env = {name: value for name, value in os.environ.items() if name != "CUDA_VISIBLE_DEVICES"}
    job = f"{known['CARD']}echo $CUDA_VISIBLE_DEVICES; read line"
    start = lambda: subprocess.Popen(
        ["bash", "-c", job], cwd=root, env=env, stdin=-1, stdout=-1, text=True
    )
    jobs, cards = [], []
    for _ in range(4):
        jobs.append(start())
        cards.append(jobs[-1].stdout.readline().strip())
    assert cards == ["0", "1", "0", "1"]
    jobs[1].communicate("done\n")
    jobs.append(start())
    assert jobs[-1].stdout.readline().strip() == "1"
    for one in jobs[:1] + jobs[2:]:
        one.communicate("done\n")


def test_arguments_reach_papermill(root):
    program(root, "papermill", 'printf "%s\\n" "$@" > given')
    done = make(root, "notebook", "NAME=one", "ARGS=-p seeds '[0, 1]' -p tasks '[\"count\"]'")
    assert done.returncode == 0, done.stderr
    assert (root / "given").read_text().splitlines()[-6:] == [
        "-p",
        "seeds",
        "[0, 1]",
        "-p",
        "tasks",
        '["count"]',
    ]


# --- the site step itself

BUILDER = """import pathlib, sys, time
pages, out = pathlib.Path(sys.argv[2]), pathlib.Path(sys.argv[4]) / "_build" / "html"
word = (pages / "word").read_text()
(out / "_static").mkdir(parents=True)
for name in ("index", *range(20)):
    (out / f"{name}.html").write_text(word)
    time.sleep(0.001)
sys.exit("wrong" in word)
"""


@pytest.fixture
def site(tmp_path, monkeypatch):
    """A function that builds a site of 21 pages that all hold one word, in some 0.1 s."""

    def build(word: str) -> Path:
        pages = tmp_path / "build" / "pages"
        pages.mkdir(parents=True, exist_ok=True)
        (pages / "word").write_text(word)
        (tmp_path / "_config.yml").write_text("sphinx: {config: {html_theme_options: {}}}\n")
        return book.build("quick", tmp_path)

    monkeypatch.setattr(book, "assemble", lambda profile, root: root / "build" / "pages")
    monkeypatch.setattr(book, "START", BUILDER)
    return build


def read(folder: Path) -> list[str]:
    """The words on all pages of a site, which must be there."""
    return [(folder / f"{name}.html").read_text() for name in ("index", *range(20))]


def left(root: Path) -> set[str]:
    return {path.name for path in (root / "build").iterdir()}


@pytest.mark.parametrize("one_step", [True, False])
def test_a_new_site_replaces_the_old_one(site, tmp_path, monkeypatch, one_step):
    if not one_step:
        monkeypatch.setattr(book, "exchange", lambda one, other: False)
    else:
        two = [tmp_path / "a", tmp_path / "b"]
        for folder in two:
            folder.mkdir()
        if not book.exchange(*two):
            pytest.skip("folders cannot be exchanged in one step here")
    folder = site("first")
    (folder / "stale.html").touch()
    for word in ("second", "third"):
        assert site(word) == folder == tmp_path / "build" / "site"
        assert set(read(folder)) == {word}
        assert left(tmp_path) == {"pages", "site"} and not (folder / "stale.html").exists()
    with pytest.raises(BadInput, match="mend the warnings"):
        site("wrong")
    assert set(read(folder)) == {"third"}


def test_a_dead_link_stops_the_site(site):
    folder = site("first")
    with pytest.raises(BadInput, match="lead nowhere: 0.html -> nowhere.html; .* 18 more") as told:
        site('<a href="nowhere.html">')
    assert "\n" not in str(told.value) and set(read(folder)) == {"first"}


def test_which_links_are_dead(tmp_path):
    texts = {
        "index.html": '<p id="here"><a href="#here"><a href="b/c.html?x=1#ä"><a href="b/d.csv">'
        '<a href="https://x.org/y"><a href="mailto:a@b.c"><script src="b/s.js"></script>'
        '<pre>&lt;a href="none"&gt;</pre><script>\'<a href="none">\'</script>',
        "b/c.html": '<p id="ä"><a href="../index.html#there"><a href="#c"><img src="none.png">'
        '<a href="../b"><link href="none.css">',
    }
    (tmp_path / "b").mkdir()
    for name, text in texts.items() | {("b/d.csv", ""), ("b/s.js", "")}:
        (tmp_path / name).write_text(text, encoding="utf-8")
    lost = ("../index.html#there", "#c", "none.png", "../b", "none.css")
    assert links.dead(tmp_path) == [f"b/c.html -> {link}" for link in lost]


def test_a_kill_between_the_two_steps_is_mended_by_the_next_run(site, tmp_path, monkeypatch):
    folder, rename = site("first"), os.rename
    monkeypatch.setattr(book, "exchange", lambda one, other: False)

    def killed(one, other):
        if Path(other) == folder:
            raise KeyboardInterrupt
        rename(one, other)

    with monkeypatch.context() as patch:
        patch.setattr(book.os, "rename", killed)
        with pytest.raises(KeyboardInterrupt):
            site("second")
    assert not folder.exists()
    with pytest.raises(BadInput):  # it is there again before anything else is tried
        site("wrong")
    assert set(read(folder)) == {"first"}
    site("third")
    assert set(read(folder)) == {"third"} and left(tmp_path) == {"pages", "site"}


def test_random_kills_of_the_site_step_leave_a_whole_site(site, tmp_path):
    folder = site("0")
    began = time.perf_counter()
    site("1")
    whole, moments = time.perf_counter() - began, random.Random(0)
    children = []
    for number in range(int(os.environ.get("VISPROMPT_KILLS", 30))):
        child = os.fork()
        if not child:
            os.setsid()
            try:
                site(f"{number + 2}")
            finally:
                os._exit(0)
        children.append(child)
        until = time.perf_counter() + moments.uniform(0, 1.2) * whole
        while time.perf_counter() < until:
            assert all(word.isdigit() for word in read(folder))
        # what it has started itself lives on for a moment, into the next run
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        assert len(set(read(folder))) == 1
    for child in children:
        try:
            os.killpg(child, signal.SIGKILL)
        except ProcessLookupError:
            pass
    site("last")
    assert set(read(folder)) == {"last"} and left(tmp_path) == {"pages", "site"}


def test_a_full_disk_is_one_line_and_the_old_site_stands(site, tmp_path, monkeypatch):
    folder = site("first")
    for error, said in (
        (
            OSError(28, "No space left on device", "/some/page.md"),
            "/some/page.md: No space left on device",
        ),
        (
            shutil.Error([("/a", "/b", "[Errno 28] No space left"), ("/c", "/d", "x")]),
            "/b: .*No space left",
        ),
    ):

        def full(profile, root, error=error):
            raise error

        monkeypatch.setattr(book, "assemble", full)
        with pytest.raises(BadInput, match=said) as told:
            site("second")
        assert "\n" not in str(told.value) and set(read(folder)) == {"first"}


def test_a_site_that_may_not_fit_is_not_begun(site, tmp_path, monkeypatch):
    folder = site("first")
    monkeypatch.setattr(
        book.shutil,
        "disk_usage",
        lambda path: shutil._ntuple_diskusage(2**30, 2**30 - 2**20, 2**20),
    )
    with pytest.raises(BadInput, match="build: No space left on device. Free space") as told:
        site("second")
    assert "\n" not in str(told.value) and set(read(folder)) == {"first"}
