"""Documents as Markdown and as pages."""

from pathlib import Path

import pytest

from nodepiece.report.document import (
    Document,
    Part,
    Picture,
    Section,
    Table,
    anchor,
    inline,
    moved,
    paragraphs,
    plain,
    to_html,
    to_markdown,
)

HOSTILE = '<script>alert("1")</script> | a_b *c* [d](e) `f` \\'
SVG = (
    '<?xml version="1.0"?><svg xmlns="http://www.w3.org/2000/svg"><g id="a" fill="#72798a"/></svg>'
)


def document() -> Document:
    table = Table(
        ["", "MRR"], [[f"**{plain(HOSTILE)}**", ".123"], ["[`run`](../x.json)", ".4"]], ["n"]
    )
    parts: list[Part] = ["A paragraph.\n\n- one\n- two", table, Picture("curves", "Curves", SVG)]
    return Document("Report", "See [it](y.md).", [Section("Some runs", parts)])


def test_markdown_has_the_headings_tables_notes_and_links_to_figures() -> None:
    text = to_markdown(document(), figures="figures/")
    assert text.startswith("# Report\n\nSee [it](y.md).\n\n## Some runs\n\nA paragraph.\n\n- one")
    assert "| [`run`](../x.json) | .4 |" in text
    assert "<sup>1</sup> n" in text and "![Curves](figures/curves.svg)" in text


def test_a_page_has_the_same_and_the_figures_themselves() -> None:
    text = to_html(document())
    assert '<th scope="row"><a href="../x.json"><code>run</code></a></th><td>.4</td>' in text
    assert "<ul><li>one</li><li>two</li></ul>" in text
    assert '<g id="curves-a" fill="currentColor"/>' in text  # text in the colour of the page
    assert '<li><a href="#some-runs">Some runs</a></li>' in text


def test_blocks_of_code_keep_their_lines_and_comments_are_left_out() -> None:
    text = "Run it:\n\n<!-- not run: long -->\n```sh\nnodepiece a > b\n  c\n```\n\nDone."
    assert paragraphs(text) == (
        "<p>Run it:</p>\n<pre><code>nodepiece a &gt; b\n  c</code></pre>\n<p>Done.</p>"
    )


def test_names_are_shown_as_they_are() -> None:
    assert inline(plain(HOSTILE)) == (
        "&lt;script&gt;alert(&quot;1&quot;)&lt;/script&gt; | a_b *c* [d](e) `f` \\"
    )
    assert "<script>" not in to_html(document())


def test_links_are_rewritten_for_another_folder() -> None:
    found = to_markdown(moved(document(), Path("/a/docs"), Path("/a/out/report")))
    assert "[it](../../docs/y.md)" in found and "[`run`](../../x.json)" in found


def test_a_row_of_another_length_is_an_error() -> None:
    with pytest.raises(ValueError, match="a row of 1 cells in a table of 2"):
        Table(["a", "b"], [["c"]])


def test_anchors_are_those_of_markdown() -> None:
    assert anchor("5 % of the labels: 3 nodes") == "5--of-the-labels-3-nodes"
