"""A paper, `gate`, is added to a copy of the repository as CONTRIBUTING.md says, with a table of
two cells and a claim: the website has all of it, and no link leads nowhere."""

from pathlib import Path

import yaml
from sites import build_site, document, small_root

CLAIM = "gate.table-1.gate-over-vpt"
ADDED = {  # file -> what is added to its end
    "data_manifests/papers/papers.yaml": """
gate:
  title: "Gated Prompts: a Paper That Nobody Wrote"
  short: Gate
  subject: Prompts behind a gate.
""",
    "data_manifests/artifacts.csv": "gate.table-1,gate,table,1,Accuracy with a gate,"
    "The gated prompts beat the plain ones.,,,arithmetic\n",
    "data_manifests/plan.yaml": "  gate.table-1: {made: [printed]}\n",
    "data_manifests/papers/gate/table-1.csv": "method,accuracy,doubt\nVPT,71.0,\nGate,72.5,\n",
    "data_manifests/papers/gate/claims.yaml": f"""
- id: {CLAIM}
  artifact: gate.table-1
  weight: core
  where: Table 1
  metric: accuracy of Gate minus that of VPT, points
  direction: greater
  printed: Gate beats VPT
  margin: 0
  why: only the direction is claimed
  settles: [derived]
""",
    "data_manifests/notebooks.yaml": 'gate: {title: "Gate: gated prompts", '
    "artifacts: [gate.table-1]}\n",
    "notebooks/gate.py": f"""# ---
# jupyter:
#   kernelspec: {{display_name: Python 3, language: python, name: python3}}
# ---

# %% [markdown]
# # Gate: gated prompts

# %% tags=["parameters"]
profile = "quick"
device = "cpu"

# %%
from visbook.pages.page import Page
from visbook.pages.parameters import Parameters, read_parameters
from visprompt.papers import published

page = Page("gate", read_parameters(Parameters, globals()))

# %% [markdown]
# (gate.table-1)=
# ## Table 1: Accuracy with a gate

# %% name="gate.table-1" tags=["hide-input"]
accuracy = published("gate.table-1").set_index("method").accuracy.astype(float)
gain = accuracy["Gate"] - accuracy["VPT"]
page.show(
    "gate.table-1",
    accuracy.reset_index(),
    evidence="derived",
    how="From the printed cells.",
    caption="Accuracy in per cent.",
)
page.judge("{CLAIM}", gain, evidence="derived")
page.printed("gate.table-1", "Table 1 as printed")

# %%
page.close()
""",
}


# The site without what takes a minute and says nothing of the list of papers: the other papers'
# audits, and the pages on the package itself.
BUILD = """
from visbook.site import api_pages, build, results
results.audited = list
api_pages.rooms_of = lambda root: {"words": ["visprompt.words"]}
build.MAKERS["api"] = lambda results, root: ""
build.main()
"""


def add(root: Path) -> None:
    """Add the paper to the repository at `root`."""
    for name, text in ADDED.items():
        path = root / name
        path.parent.mkdir(exist_ok=True)
        before = path.read_text(encoding="utf-8") if path.exists() else ""
        path.write_text(before + text.removeprefix("\n" * (not before)), encoding="utf-8")
    path = root / "_toc.yml"
    contents = yaml.safe_load(path.read_text(encoding="utf-8"))
    (part,) = [part for part in contents["parts"] if part["caption"] == "Papers"]
    part["chapters"].append({"file": "notebooks/gate"})
    path.write_text(yaml.safe_dump(contents), encoding="utf-8")


def test_a_new_paper_is_on_every_page_that_lists_papers(tmp_path):
    root = small_root(tmp_path / "root")
    add(root)
    build_site(root, ["ap_theory", "gate"], ["-c", BUILD])
    site = root / "build" / "site"
    front = document(site / "index.html")
    assert front.find("section", id="the-six-papers")
    card = front.find("h3", id="card-gate").parent
    ways = {"notebooks/gate.html", "claims.html?paper=Gate", "numbers-gate.html"}
    assert ways <= {link["href"] for link in card.find_all("a")}
    assert "Prompts behind a gate." in card.get_text() and not card.find_all(["svg", "dl"])
    assert document(site / "claims.html").find(id=CLAIM)
    assert document(site / "numbers-gate.html").find(id="n-gate.table-1")
    assert document(site / "numbers.html").find("a", href="numbers-gate.html")
    assert "numbers-gate.html" in (site / "_static" / "places.js").read_text(encoding="utf-8")
    assert "agrees" in document(site / "notebooks" / "gate.html").get_text()
