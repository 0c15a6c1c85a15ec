# What depends on what: notebooks/NAME.py -> ipynb -> executed notebook -> website.
# One file for a laptop and for a cluster; the book's page "How to read and rerun" has the commands.
#
# Runs are cached by their records, not here: when a notebook or the package changes, the notebook runs
# again, finds the records that are still valid, and computes only the others.
import json
import os
import re
import sys
import threading
import time
from hashlib import sha256
from pathlib import Path

import yaml

PROFILE, DEVICE, CARDS, A_CARD = (
    str(config.get(*key)) for key in (("profile", "quick"), ("device", "cpu"), ("gpus", 1), ("jobs_a_card", 1))
)
DATA_DIR = config.get("data_dir") or ""
if isinstance(DATA_DIR, list):  # from make, since snakemake reads a bare 2024 as a number and "a #b" as "a"
    DATA_DIR = DATA_DIR[0]
DATA_DIR = os.path.expanduser(str(DATA_DIR))


def words(key: str) -> list[str]:
    """The words of a setting; make hands them over as a list of one text, for the same reason."""
    given = config.get(key) or ""
    return str(given[0] if isinstance(given, list) and given else given or "").split()


# What narrows a book: parameters of the notebooks that have them, given to the chapters of PAPERS alone.
PAPERS, SEEDS, EPOCHS, PRECISION = words("papers"), words("seeds"), words("epochs"), words("precision")
NARROWED = {name: found for name in ("tasks", "methods", "weights") if (found := words(name))}
NARROWED |= {name: words(name)[0] for name in ("backbone", "precision") if words(name)}
with open("data_manifests/papers/papers.yaml", encoding="utf-8") as file:
    KNOWN = list(yaml.safe_load(file))
# Before anything runs; make names the same things in capitals.
for name, given, right, write in (
    ("profile", PROFILE, PROFILE in ("quick", "paper", "rehearsal"), "quick or paper"),
    ("device", DEVICE, re.fullmatch(r"cpu|mps|cuda(:\d+)?", DEVICE), "cpu, cuda or mps"),
    ("list of papers", PAPERS, {*PAPERS} <= {*KNOWN}, " or ".join(KNOWN)),
    ("list of seeds", SEEDS, all(re.fullmatch(r"\d+", seed) for seed in SEEDS), "numbers, such as 0 1 2"),
    ("number of epochs", EPOCHS, not EPOCHS or re.fullmatch(r"[1-9]\d*", " ".join(EPOCHS)), "a number, such as 1"),
    ("precision", PRECISION, PRECISION in ([], ["float32"], ["bf16"]), "float32 or bf16"),
    ("gpus", CARDS, re.fullmatch(r"\d+", CARDS), "a number, such as 1"),
    ("jobs_a_card", A_CARD, re.fullmatch(r"[1-9]\d*", A_CARD), "a number of 1 or more, such as 2"),
    ("data folder", DATA_DIR, not DATA_DIR or os.path.isdir(DATA_DIR), "a folder that is there, from / or from here"),
):
    if not right:
        sys.exit(f"the {name} is {given!r}; write {write}")
NARROWED |= {"seeds": [int(seed) for seed in SEEDS]} if SEEDS else {}
NARROWED |= {"epochs": int(EPOCHS[0])} if EPOCHS else {}
NARROWED |= {name: True for name in ("larger", "compile") if words(name)}
os.environ.setdefault("VISPROMPT_RUN", f"{os.getpid()} {time.time()}")  # weights that cannot be reached are asked for once
os.environ.setdefault("OMP_NUM_THREADS", "1")  # two runs of one thread are faster than one of two
# Freed memory stays with the process: fresh pages cost these small networks a tenth of their time (glibc only).
os.environ.setdefault("MALLOC_MMAP_THRESHOLD_", str(2**30))
os.environ.setdefault("MALLOC_TRIM_THRESHOLD_", str(2**32))
os.environ["PATH"] = f"{workflow.basedir}/.venv/bin:{os.environ['PATH']}"  # on the machines of a cluster too

with open("data_manifests/notebooks.yaml", encoding="utf-8") as file:
    NOTEBOOKS = yaml.safe_load(file)
# Not as `ancient`: what comes after a notebook that runs is then not asked whether it has to run itself.
AFTER = {
    name: [f"build/executed/{PROFILE}/{other}.ipynb" for other in entry.get("after", ())] for name, entry in NOTEBOOKS.items()
}
AWAITED = {name for entry in NOTEBOOKS.values() for name in entry.get("after", ())}  # start first, what follows them next
GPUS = int(DEVICE.startswith("cuda"))
CARDS, A_CARD = int(CARDS), int(A_CARD)

MODULES = sorted(str(path) for path in Path("src").rglob("*.py"))
SITE_ONLY = [path for path in MODULES if "/site/" in path or path.endswith("/__main__.py")]
LOOKS_ONLY = [path for path in MODULES if "/pages/diagrams/" in path or path.endswith("/pages/plots.py")]
WEIGHTS = sorted(str(path) for path in Path("data_manifests/weights").rglob("*") if path.is_file())
PAGES = sorted(str(p) for p in Path("book").rglob("*") if p.is_file() and "records" not in p.parts)
MANIFESTS = sorted(str(p) for p in Path("data_manifests").rglob("*.*") if "weights" not in p.parts)
SETTINGS = [f"data_manifests/{name}.yaml" for name in ("backbones", "tasks", "recipes")]

# A sweep is a list of jobs, as `visprompt batches --out` writes it: {"jobs": [{"name", "notebook", "parameters", "minutes",
# "after"}]}. Every job is a papermill run of a notebook that is narrowed to some of its runs.
SWEEP = str(config.get("sweep") or "")
JOBS = {}
if SWEEP:
    with open(SWEEP, encoding="utf-8") as file:
        JOBS = {job["name"]: job for job in json.load(file)["jobs"]}
FOLDER = f"build/jobs/{Path(SWEEP).stem or None}"

STORES = ("build/records", "book/records")
RESULTS_MIME = "application/vnd.visprompt.results+json"  # as visbook.pages.page leaves them
def ids(store: str) -> set:
    """The ids of a folder's records, each of which stands for all that its record says."""
    starts = (path.read_bytes()[:64] for path in Path(store).rglob("*.json") if path.is_file())
    return {found[1].decode() for start in starts if (found := re.match(rb'\{\s*"id": "(\w+)"', start))}


# The kept records as one word, since a list of them would bury the message of a run that fails.
KEPT = sha256(repr(sorted(ids("book/records"))).encode()).hexdigest()



def digest(*paths: list[str]) -> str:
    """What files hold, as one word. As inputs they would be looked at for every job, each time that one is chosen."""
    found = sha256()
    for path in sorted(set().union(*paths)):
        found.update(path.encode() + sha256(Path(path).read_bytes()).digest())
    return found.hexdigest()


SHOWN = [module for module in MODULES if module not in SITE_ONLY]
RUN = digest([module for module in SHOWN if module not in LOOKS_ONLY], SETTINGS, WEIGHTS)
SHOWN = digest(SHOWN, WEIGHTS, MANIFESTS)

# Puts the notebook's name before every line; a progress bar rewrites its line with \r, which ends one here.
# The kernel's remark on sockets of this machine is left out.
NAMED = """python3 -uc 'import sys
for line in open(0, errors="replace"):
    if line.strip() and "TCP without encryption" not in line:
        print("[" + sys.argv[1] + "]", line.rstrip(), flush=True)'"""

# Snakemake counts places on accelerators but hands none out: each run takes the first that no other run holds, and
# places of a number are spread over the cards. Schedulers of clusters set the variable themselves.
CARD = ""
if DEVICE == "cuda" and CARDS * A_CARD > 1:
    CARD = (
        'if [ -z "${CUDA_VISIBLE_DEVICES:-}" ]; then '
        f"for place in $(seq 0 {CARDS * A_CARD - 1}); do exec 9>build/.card$place; if flock -n 9; then break; fi; done; "
        f"export CUDA_VISIBLE_DEVICES=$((place % {CARDS})); fi; "
    )


def parameters(name: str) -> str:
    """What papermill passes to a notebook, as JSON: the data folder and what narrows only to those that take it."""
    given, text = {"profile": PROFILE, "device": DEVICE}, Path(f"notebooks/{name}.py").read_text(encoding="utf-8")
    shown = {id.partition(".")[0] for id in NOTEBOOKS.get(name, {}).get("artifacts", ())}
    paper = shown.pop() if len(shown) == 1 else ""  # a page on several papers is none's chapter
    # the notebook of a job is no page, and all of a rehearsal has stand-ins
    mine = not PAPERS or paper in PAPERS or name not in NOTEBOOKS or PROFILE == "rehearsal"
    wanted = {**NARROWED, **({"data_dir": DATA_DIR} if DATA_DIR else {})} if mine else {}
    given |= {key: value for key, value in wanted.items() if f"\n{key} = " in text}
    return json.dumps(given, ensure_ascii=False)


def job_parameters(name: str) -> str:
    """What papermill passes to the notebook of a job, as JSON."""
    job = JOBS[name]
    return json.dumps({**json.loads(parameters(job["notebook"])), **job["parameters"]}, ensure_ascii=False)


def tell_progress() -> None:
    """Say once a minute how far a sweep is, and how long it will take at the pace so far."""
    minutes = {name: job["minutes"] for name, job in JOBS.items()}
    there = {name for name in JOBS if Path(FOLDER, f"{name}.ipynb").exists()}
    todo, start = sum(minutes[name] for name in JOBS if name not in there), time.monotonic()
    while True:
        time.sleep(60)
        done = {name for name in JOBS if Path(FOLDER, f"{name}.ipynb").exists()} - there
        share = sum(minutes[name] for name in done) / max(todo, 1e-9)
        left = f", about {(time.monotonic() - start) * (1 - share) / share / 60:.0f} min left" if share else ""
        print(f"[sweep] {len(done) + len(there)} of {len(JOBS)} jobs{left}", file=sys.stderr, flush=True)


def named(path: Path) -> set[str]:
    """The records that the results of a notebook name; the site step speaks of one that cannot be read."""
    try:
        cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
        outputs = [output for cell in cells for output in cell.get("outputs", [])]
        results = [found for output in outputs if (found := output.get("data", {}).get(RESULTS_MIME))]
        parts = [part for found in results for part in found["claims"].values()]
        parts += [show for found in results for artifact in found["artifacts"].values() for show in artifact["shows"]]
        return {record for part in parts for record in part["records"]}
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return set()


def forget_what_is_gone() -> None:
    """Remove notebooks whose records were removed, and the stamp of a site that lacks its pages or one of its notebooks,
    so that both are made again; Snakemake alone would not miss a notebook between its source and the stamp."""
    there = set().union(*map(ids, STORES))
    for path in Path("build", "executed", PROFILE).rglob("*.ipynb"):
        if any(record not in there for record in named(path)):
            print(f"Records of {path} are gone; it runs again.", file=sys.stderr)
            path.unlink()
    needed = ["build/site/index.html", *(f"build/executed/{PROFILE}/{name}.ipynb" for name in NOTEBOOKS)]
    if not all(Path(path).exists() for path in needed):
        Path("build/site.done").unlink(missing_ok=True)


if workflow.is_main_process and not workflow.dryrun:
    forget_what_is_gone()
    if JOBS:
        threading.Thread(target=tell_progress, daemon=True).start()


onerror:
    # last, since what a page died of stands far above the lines of those that went on
    for path in sorted(Path("build/running").rglob("*.ipynb")):
        cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
        for output in (output for cell in cells for output in cell.get("outputs", ())):
            if output["output_type"] == "error":
                print(f"{path}: {output['ename']}: {output['evalue']}", file=sys.stderr)


wildcard_constraints:
    name="[^/.]+",
    job="[^/]+",


localrules: all, sweep, convert, site


rule all:
    default_target: True
    input:
        "build/site.done",


rule convert:
    input:
        "notebooks/{name}.py",
    output:
        "build/ipynb/{name}.ipynb",
    message:
        "convert {input}"
    priority: 3  # so that all can start
    shell:
        "jupytext --quiet --to ipynb --output {output} {input}"


rule sweep:
    """Every job of a sweep."""
    input:
        [f"{FOLDER}/{name}.ipynb" for name in JOBS],


rule job:
    """One job of a sweep, the longest first. A second start does only those that are not done."""
    input:
        notebook=lambda wildcards: f"build/ipynb/{JOBS[wildcards.job]['notebook']}.ipynb",
        after=lambda wildcards: [f"{FOLDER}/{name}.ipynb" for name in JOBS[wildcards.job].get("after", ())],
    output:
        f"{FOLDER}/{{job}}.ipynb",
    message:
        "run the job {wildcards.job} ({params.given})"
    params:
        given=lambda wildcards: job_parameters(wildcards.job),
        code=RUN,
    priority: lambda wildcards: JOBS[wildcards.job]["minutes"]
    resources:
        gpu=GPUS,
    shell:
        "{CARD}mkdir -p build/running/jobs && "
        "papermill --cwd . -y {params.given:q} {input.notebook} build/running/jobs/{wildcards.job}.ipynb 2>&1 "
        "| {NAMED} {wildcards.job} && "
        "mv build/running/jobs/{wildcards.job}.ipynb {output}"


rule execute:
    """The whole notebook. One that fails stays in build/running, to be looked at."""
    input:
        notebook="build/ipynb/{name}.ipynb",
        after=lambda wildcards: AFTER[wildcards.name],
    output:
        f"build/executed/{PROFILE}/{{name}}.ipynb",
    message:
        "run {wildcards.name} ({params.given})"
    params:
        given=lambda wildcards: parameters(wildcards.name),
        kept=KEPT,
        code=SHOWN,
    priority: lambda wildcards: 2 if wildcards.name in AWAITED else bool(AFTER[wildcards.name])
    resources:
        gpu=GPUS,
    shell:
        "{CARD}mkdir -p build/running && "
        "papermill --cwd . -y {params.given:q} {input.notebook} build/running/{wildcards.name}.ipynb 2>&1 "
        "| {NAMED} {wildcards.name} && "
        "mv build/running/{wildcards.name}.ipynb {output}"


rule site:
    """Snakemake removes what a rule makes before it starts: hence a stamp, so that the old site stands meanwhile."""
    input:
        expand("build/executed/{profile}/{name}.ipynb", profile=PROFILE, name=NOTEBOOKS),
        [module for module in MODULES if module.endswith("__.py") or module in SITE_ONLY],
        PAGES,
        MANIFESTS,
        "_config.yml",
        "_toc.yml",
    output:
        touch("build/site.done"),
    message:
        "build the website"
    params:
        profile=PROFILE,
    shell:
        "python3 -m visbook.site.build {params.profile} 2>&1 | {NAMED} site"
