"""One place escapes: text in, markup out; and no page of descend is put together anywhere else."""

from __future__ import annotations

import ast
import json
import re

from descend.web.markup import Html, embed_json, html, join
from descend.web.page import make_fragment, make_page
from descend.web.parts import make_card, make_header, make_table
from tests.contracts.source import files

TAG = re.compile(r"</?[a-z][a-z0-9]*[ >/]")
OWN = ("web/",)


def test_text_is_escaped_and_markup_is_not() -> None:
    bold = html("<b>{}</b>", "a < b & 'c'")
    assert bold == "<b>a &lt; b &amp; &#x27;c&#x27;</b>"
    assert isinstance(bold, Html)
    assert html("<p>{}</p>", bold) == f"<p>{bold}</p>"
    assert html("{:.1f} {} {}", 1.25, 3, None) == "1.2 3 "
    assert html("<i>{}</i>", ["<", bold]) == f"<i>&lt;{bold}</i>"
    assert join(["<", Html("<br>")]) == "&lt;<br>"
    assert html("{}", str(bold) + "") == "&lt;b&gt;a &amp;lt; b &amp;amp; &amp;#x27;c&amp;#x27;&lt;/b&gt;"


def test_an_attribute_cannot_be_left() -> None:
    assert html('<a title="{}">', '" onclick="x') == '<a title="&quot; onclick=&quot;x">'


def test_data_cannot_close_its_script() -> None:
    value = {"text": "</script><script>alert(1)"}
    found = embed_json("data", value)
    assert found.count("<script") == found.count("</script>") == 1
    inner = found.partition(">")[2].removesuffix("</script>")
    assert json.loads(inner) == value


def test_a_page_has_one_style_and_a_script_only_where_the_mouse_is_answered() -> None:
    still = make_page("a < b", make_header("x", "about <it>", "finished"), make_card("T", "text & more"))
    assert still.startswith("<!doctype html>")
    assert "<title>a &lt; b</title>" in still
    assert "<script" not in still
    assert "text &amp; more" in still
    assert not re.search(r"url\(|@import|(src|href)=", still)
    moving = make_fragment(Html('<svg data-hover="[]"></svg>'))
    assert moving.count("<script>") == 1
    assert moving.count(".descend {") == 1


def test_numbers_stand_to_the_right() -> None:
    drawn = make_table(["name", "n"], [["<a>", 1234], ["b", 0.123456]])
    assert "<th class=number>n</th>" in drawn
    assert "<th>name</th>" in drawn
    assert '<td class="number">1,234</td>' in drawn
    assert '<td class="number">0.12346</td>' in drawn
    assert "&lt;a&gt;" in drawn


def test_markup_is_written_with_html_only() -> None:
    """An f-string with a tag in it could carry text that nobody escaped."""
    found = [
        f"{path}:{node.lineno}"
        for path, tree in files().items()
        if not path.startswith(OWN) and path != "data/detection/voc.py"  # annotations are XML, and escaped there
        for node in ast.walk(tree)
        if isinstance(node, ast.JoinedStr)
        and any(isinstance(part, ast.Constant) and TAG.search(str(part.value)) for part in node.values)
    ]
    assert found == []
    escaping = [
        path
        for path, tree in files().items()
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.module == "html" and path != "web/markup.py"
    ]
    assert escaping == []
