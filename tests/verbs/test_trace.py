"""The verb trace, from the command line and from Python."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
import torch
from torch import nn

import descend
from descend import cli
from descend.errors import Mistake
from tests.close import close


def test_an_expression(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["trace", "sin(x*y) + x**2", "--at", "x=1", "--at", "y=2"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("sin(x*y) + x**2\n")
    assert re.search(r"^1 +x +input +1 +1 +1\.168$", out, re.MULTILINE)
    assert "gradients equal autograd's" in out


def test_json_is_what_python_returns(capsys: pytest.CaptureFixture[str]) -> None:
    assert (
        cli.main(["trace", "x*y", "--at", "x=[1,2]", "--at", "y=3", "--output", "1", "--along", "x[1]", "--json"]) == 0
    )
    printed = json.loads(capsys.readouterr().out)
    trace = descend.trace("x*y", x=[1.0, 2.0], y=3.0, output="1", along="x[1]")
    assert printed["result"] == trace.result == 6.0
    assert [node["name"] for node in printed["nodes"]] == trace.names
    assert printed["nodes"][0]["adjoint"]["values"] == [0.0, 3.0]
    assert printed["nodes"][-1]["tangent"]["values"] == 3.0


def test_a_page(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = tmp_path / "head.html"
    assert cli.main(["trace", "attention-head", "--html", str(page)]) == 0
    assert capsys.readouterr().out.endswith(f"written: {page}\n")
    html = page.read_text(encoding="utf-8")
    assert html.startswith("<!doctype html>")
    assert html.count("<script") == html.count("</script>") == 2


def test_any_function_and_module() -> None:
    torch.manual_seed(0)
    net, x = nn.Linear(3, 2), torch.randn(4, 3)
    trace = descend.trace(net, x, output="mean")
    close(trace.adjoint("weight"), torch.autograd.grad(net(x).mean(), net.weight)[0])
    loss = descend.trace(lambda w, b: (w * 2 + b).exp(), torch.tensor(0.5), torch.tensor(0.1))
    close(loss.adjoint("w"), 2 * torch.tensor(1.1).exp())
    assert "exp" in str(loss)
    with pytest.raises(Mistake, match="no value 'nothing'"):
        loss.value("nothing")
    close(descend.trace(lambda x: x**3, 2.0).adjoint("x"), torch.tensor(12.0).double())


def test_the_package_is_still_there() -> None:
    from descend.tracing import record

    assert record.__name__ == "descend.tracing.record"
    assert callable(descend.trace)
    assert callable(descend.train)


def test_the_walkthroughs_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["trace"]) == 0
    listed = capsys.readouterr().out
    assert all(f"{name} " in listed for name in ("2-3-1", "lstm-cell", "attention-head", "convolution"))
    assert cli.main(["trace", "--json"]) == 0
    names = {entry["walkthrough"] for entry in json.loads(capsys.readouterr().out)}
    assert {"2-3-1", "lstm-cell", "attention-head", "convolution"} <= names


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (["foo(x)", "--at", "x=1"], "there is no function 'foo'"),
        (["x*y", "--at", "x=1"], "needs a value for y"),
        (["x*2", "--at", "x=[1,2]"], "the result has shape (2,): choose one element with --output 0"),
        (["x*2", "--at", "x=[1,2]", "--output", "5"], "--output 5: the result has shape (2,)"),
        (["x*2", "--at", "x=[1,2]", "--output", "a"], "give one index per dimension"),
        (["x*2", "--at", "x=1", "--output", "3:0"], "the result has 1 tensors"),
        (["x*2", "--at", "x=1", "--along", "z"], "there is no 'z'"),
        (["x*2", "--at", "x=1", "--segments", "9"], "between 1 and 1"),
        (["x", "--at", "x=1"], "nothing is computed"),
        (["sin(1)"], "does not depend on anything differentiable"),
        (["2", "--at", "x=1"], "no variable 'x'"),
        (["gpt2"], "the result has shape (2, 7, 61)"),
        (["no-such-model"], "there is no walkthrough, model or run"),
        (["x", "--at", "x=1", "--html", "/nowhere/x.html"], "in a folder that exists"),
        (["x", "--at", "x=1", "--html", "page.txt"], "ends in .html"),
    ],
)
def test_a_mistake_is_one_line(args: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["trace", *args]) == 2
    captured = capsys.readouterr()
    assert said in captured.err
    assert captured.err.count("\n") == 1
    assert not captured.out


def test_mistakes_from_python() -> None:
    with pytest.raises(Mistake, match="by name"):
        descend.trace("x", 1.0)
    with pytest.raises(Mistake, match="by position"):
        descend.trace(torch.sin, x=1.0)
    with pytest.raises(Mistake, match="neither a function nor a name"):
        descend.trace(3)  # type: ignore[arg-type]
    with pytest.raises(Mistake, match="which holds no tensor"):
        descend.trace(lambda x: 1, torch.ones(1))


def test_the_loss_of_a_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = tmp_path / "run"
    assert cli.main(["train", "mlp-lbfgs-digits", "--steps", "1", "--out", str(run), "--quiet"]) == 0
    capsys.readouterr()
    trace = descend.trace(str(run))
    assert trace.gap < 1e-4
    assert "on two examples" in trace.program.title
    assert any(node.kind == "parameter" and "layers" in node.name for node in trace.program.nodes)
