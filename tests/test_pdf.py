"""The book as one PDF."""

import pytest
from pypdf import PdfReader
from sites import CHROMIUM, call


def links(reader: PdfReader) -> list[str]:
    """The addresses that the pages of a PDF link to."""
    notes = [note.get_object() for page in reader.pages for note in page.get("/Annots") or ()]
    return [note["/A"]["/URI"] for note in notes if "/URI" in note.get("/A", {})]


@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium")
def test_every_page_of_the_sidebar_is_printed(small, tmp_path):
    file = tmp_path / "book.pdf"
    done = call("-m", "visbook.site.pdf", file, root=small)
    assert done.returncode == 0, done.stderr[-2000:]
    reader = PdfReader(file)
    titles = [mark.title for mark in reader.outline if not isinstance(mark, list)]
    assert {"Glossary", "Recipes", "All claims"} <= {*titles}
    assert f"{len(reader.pages)} pages" in done.stdout
    glossary = reader.get_destination_page_number(reader.outline[titles.index("Glossary")])
    words = " ".join(reader.pages[glossary].extract_text().split())
    assert "never called a reproduction" in words
    assert not [link for link in links(reader) if link.startswith("file:")]
    assert [path.name for path in tmp_path.iterdir()] == ["book.pdf"]


def test_without_a_site_one_line_says_so(tmp_path):
    done = call("-m", "visbook.site.pdf", tmp_path / "book.pdf", root=tmp_path)
    assert done.returncode == 1 and done.stderr.count("\n") == 1
    assert "make book builds it" in done.stderr and not (tmp_path / "book.pdf").exists()
