"""Table, JSON and page of a trace; the layout; what can be traced by name."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from itertools import combinations

import pytest
import torch
from torch import Tensor

from descend import models
from descend.errors import Mistake
from descend.tracing.examples import EXAMPLES
from descend.tracing.layout import HIGH, WIDE, lay_out
from descend.tracing.page import make_body
from descend.tracing.result import Trace, make_trace
from descend.tracing.sources import find_source
from descend.tracing.table import as_json, format_cell, to_plain


def f(x: Tensor, y: Tensor) -> Tensor:
    z = x * y
    return z.sin() + x**2


@pytest.fixture(scope="module")
def small() -> Trace:
    return make_trace(f, [torch.tensor(1.0).double(), torch.tensor(2.0).double()], title="a </script> & <b>")


def test_a_trace_is_a_table(small: Trace) -> None:
    lines = str(small).splitlines()
    assert lines[0] == "a </script> & <b>"
    assert lines[2].split()[:4] == ["#", "name", "operation", "value"]
    assert lines[5].split() == ["3", "z", "mul(x,", "y)", "2", "2", "-0.4161", "x:", "2;", "y:", "1"]
    assert "gradients equal autograd's" in str(small)
    assert [line.split()[0] for line in lines[-4:]] == ["evaluate", "reverse", "checkpointed", "forward"]


def test_cells() -> None:
    assert format_cell(None) == ""
    assert format_cell(torch.tensor([[1.0, -0.0]])) == "[[1, 0]]"
    assert format_cell(torch.ones(2, 5)) == "2x5: mean 1, std 0"
    assert format_cell(torch.arange(9)) == "9: 0, 1, 2, .."
    assert to_plain(torch.tensor([float("nan"), float("inf")])) == {"shape": [2], "values": ["nan", "inf"]}
    big = to_plain(torch.arange(100.0))
    assert big is not None
    assert (big["shape"], big["max"], len(big["first"])) == ([100], 99.0, 8)


def test_json_has_everything(small: Trace) -> None:
    found = json.loads(json.dumps(as_json(small), allow_nan=False))
    z = next(node for node in found["nodes"] if node["name"] == "z")
    assert z["operation"] == "mul(x, y)"
    assert z["value"] == {"shape": [], "values": 2.0}
    assert [edge["jacobian"] for edge in z["parents"]] == [[[2.0]], [[1.0]]]
    assert z["parents"][0]["pull"]["values"] == 2 * z["adjoint"]["values"]
    assert [cost["mode"] for cost in found["costs"]] == ["evaluate", "reverse", "checkpointed", "forward"]


class Tags(HTMLParser):
    """Checks that tags are closed in order."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append(tag)
        if tag != "input":
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append(tag)


def test_the_page_is_well_formed_and_needs_nothing_from_elsewhere(small: Trace) -> None:
    html = make_body(small)
    tags = Tags()
    tags.feed(html)
    assert not tags.open
    assert tags.seen.count("g") == len(small.program.nodes)
    assert tags.seen.count("path") == sum(len(node.parents) for node in small.program.nodes)
    assert not re.search(r"(src|href)=|https?://(?!www\.w3\.org)", html)
    data = re.search(r'id="trace-data">(.*?)</script>', html, re.DOTALL)
    assert data is not None
    assert json.loads(data[1])["title"] == "a </script> & <b>"


@pytest.mark.parametrize("name", list(EXAMPLES))
def test_no_two_nodes_overlap(name: str) -> None:
    program = make_trace(EXAMPLES[name].fn, EXAMPLES[name].inputs).program
    at = lay_out(program).nodes
    for node in program.operations:
        assert all(at[parent].y < at[node.index].y for parent in node.parents)
    for a, b in combinations(at, 2):
        assert abs(a.x - b.x) > 0.9 * WIDE or abs(a.y - b.y) > 0.9 * HIGH


@pytest.mark.system("mlp", "execution-trace")
@pytest.mark.parametrize("name", ["mlp", "lenet", "gpt2"])
def test_a_model_is_traced_by_name(name: str) -> None:
    found = find_source(name, {})
    trace = make_trace(found.fn, found.inputs, "sum", module=found.module)
    assert trace.gap < 1e-4
    parameters = {node.name for node in trace.program.nodes if node.kind == "parameter"}
    assert isinstance(found.fn, torch.nn.Module)
    assert parameters == {key for key, _ in found.fn.named_parameters()}
    assert all(tangent is None or torch.isfinite(tangent).all() for tangent in trace.derivatives.tangents)


def test_unknown_names() -> None:
    with pytest.raises(Mistake, match=r"no walkthrough, model or run 'gpt3'\. Did you mean 'gpt2'"):
        find_source("gpt3", {})
    with pytest.raises(Mistake, match="only an expression has variables"):
        find_source("2-3-1", {"x": torch.ones(())})
    assert "mlp" in models.names()
    assert find_source("x-y", {"x": torch.ones(()), "y": torch.ones(())}).title == "x-y"


def test_an_edge_that_skips_rows_leads_around_the_nodes_between() -> None:
    def residual(x: Tensor) -> Tensor:
        return x + (x.sin().cos().exp() * 2).tanh()

    at = lay_out(make_trace(residual, [torch.tensor(0.3)]).program)
    bends = at.bends[0, len(at.nodes) - 1]
    assert len(bends) == 5
    for bend in bends:
        assert all(abs(bend.x - p.x) > 0.3 * WIDE for p in at.nodes if p.y == bend.y)
