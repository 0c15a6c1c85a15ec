"""axe-core looks at every page of the site, light and dark."""

import hashlib
import shutil
import subprocess
import tarfile

import pytest
from sites import ROOT, pages

AXE = ("axe-core@4.14.1", "29348999450cdf2849a8e70b7912fc2da85a849da39c0d0d5394f51d4a9ed95c")
# What the theme itself does, by rule and a piece of the element's HTML.
OF_THE_THEME = (
    ("summary-name", "<summary>"),  # the arrows of the list of pages
    ("label-content-name-mismatch", "search-button"),
    ("label-content-name-mismatch", "theme-switch-button"),
    ("label-content-name-mismatch", 'aria-label="Toggle hidden content"'),  # folded source cells
    ("aria-allowed-role", "doc-biblioentry"),
    ("aria-deprecated-role", "doc-biblioentry"),
    ("aria-required-children", "citation-list"),
)
RUN = """
async (dark) => {
  document.querySelectorAll("details").forEach((fold) => { fold.open = true; });
  const only = dark ? {runOnly: ["color-contrast"]} : {rules: {region: {enabled: false}}};
  const {violations} = await axe.run(document, {resultTypes: ["violations"], ...only});
  return violations.flatMap(({id, nodes}) => nodes.map((node) => [id, node.html.slice(0, 200), node.failureSummary.slice(0, 300)]));
}
"""


@pytest.fixture(scope="session")
def axe() -> str:
    """The script of axe-core, from npm once, then from build/axe."""
    name, known = AXE
    kept = ROOT / "build" / "axe" / f"{name}.js"
    if not kept.exists():
        if not shutil.which("npm"):
            pytest.skip("npm is not there, so axe-core cannot be had; install npm")
        kept.parent.mkdir(parents=True, exist_ok=True)
        try:
            command = ["npm", "pack", "--silent", name]
            got = subprocess.run(
                command, cwd=kept.parent, capture_output=True, text=True, timeout=120
            )
        except subprocess.TimeoutExpired:
            pytest.skip(f"npm did not give {name} in two minutes")
        if got.returncode:
            pytest.skip(f"npm could not give {name}")
        packed = kept.parent / got.stdout.split()[-1]
        with tarfile.open(packed) as archive:
            script = archive.extractfile("package/axe.min.js").read()
        packed.unlink()
        kept.write_bytes(script)
    script = kept.read_bytes()
    assert hashlib.sha256(script).hexdigest() == known, (
        f"{kept} is not the {name} that was looked at"
    )
    return script.decode()


def test_axe_finds_nothing(whole, browser, axe):
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    tab = context.new_page()
    tab.set_default_timeout(120_000)
    found = []
    # they are all of one mould
    largest = max((whole / "records").glob("*.html"), key=lambda page: page.stat().st_size)
    for page in [largest, *pages(whole)]:
        tab.emulate_media(color_scheme="light")
        tab.goto(page.as_uri(), wait_until="load")
        tab.evaluate(axe)
        # No colour halfway between two themes, and no fold that is still fading in.
        tab.add_style_tag(content="* {transition: none !important; animation: none !important}")
        for scheme in ("light", "dark"):
            tab.emulate_media(color_scheme=scheme)
            if page != largest:  # which has no theme
                tab.wait_for_function(
                    "(scheme) => document.documentElement.dataset.theme === scheme", arg=scheme
                )
            for rule, shown, why in tab.evaluate(RUN, scheme == "dark"):
                if not any(rule == known and piece in shown for known, piece in OF_THE_THEME):
                    found.append(f"{page.relative_to(whole)}, {scheme}: {rule}: {shown}: {why}")
    context.close()
    assert not found, f"{len(found)} violations\n" + "\n".join(found[:40])
