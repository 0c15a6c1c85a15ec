"""The built website as one PDF with a bookmark for each page, printed by Chromium.

python -m visbook.site.pdf build/book.pdf
"""

import argparse
import io
import os
import shutil
import sys
import tempfile
from pathlib import Path

from tqdm import tqdm

from visprompt import paths
from visprompt.errors import BadInput

# what leads to another page would lead to a folder of the machine that printed it
PREPARE = """() => {
  document.querySelectorAll("a[href]").forEach((link) => {
    if (!/^(https?:|mailto:|#)/.test(link.getAttribute("href"))) link.removeAttribute("href");
  });
}"""
SET = """() => document.querySelectorAll("mjx-container").length >=
  document.querySelectorAll(".bd-article .math").length"""
CHAPTERS = """() => [...document.querySelectorAll("nav.bd-links a.reference.internal")].map(
  (link) => [link.textContent.trim(), link.href])"""

NAMES = ("chromium", "chromium-browser", "google-chrome")
MARGIN = {"top": "15mm", "bottom": "15mm", "left": "14mm", "right": "14mm"}


def chromium() -> str | None:
    """The path of Chromium; None where there is none."""
    named = os.environ.get("VISPROMPT_CHROMIUM")
    return named or next(filter(None, map(shutil.which, NAMES)), None)


def printed(site: Path, file: Path) -> int:
    """Write the pages of a site's sidebar, the front page first, as one PDF; return how many pages
    of paper it has.

    Raises:
        BadInput: the site has not been built, or there is no Chromium.
    """
    from playwright.sync_api import sync_playwright
    from pypdf import PdfWriter

    if not (front := site / "index.html").exists():
        raise BadInput(f"there is no website in {site}; make book builds it.")
    if not (program := chromium()):
        raise BadInput("no Chromium was found; install it, or set VISPROMPT_CHROMIUM to its path.")
    book = PdfWriter()
    with sync_playwright() as engine:
        browser = engine.chromium.launch(executable_path=program, args=["--no-sandbox"])
        tab = browser.new_page()
        tab.goto(front.as_uri())
        chapters = {address: name for name, address in tab.evaluate(CHAPTERS)}
        for address, name in tqdm(chapters.items(), "printing", unit=" pages"):
            tab.goto(address)
            tab.wait_for_function(SET)
            tab.evaluate(PREPARE)
            sheet = tab.pdf(format="A4", print_background=True, margin=MARGIN)
            book.append(io.BytesIO(sheet), outline_item=name)
        browser.close()
    book.compress_identical_objects()
    file.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile(dir=file.parent, suffix=".part", delete=False) as part:
        book.write(part)
    os.replace(part.name, file)
    return len(book.pages)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("file", type=Path, help="where the PDF is written")
    file = parser.parse_args().file
    try:
        count = printed(paths.ROOT / "build" / "site", file)
    except BadInput as error:
        sys.exit(str(error))
    print(f"{file}: {count} pages, {file.stat().st_size / 2**20:.1f} MiB")


if __name__ == "__main__":
    main()
