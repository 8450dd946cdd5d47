"""descend export and inspect: a run as a public folder with its card, as a graph and as GGUF; what is refused."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
import torch

import descend
from descend import cli
from descend.data.text.plain import Text
from descend.errors import Mistake
from descend.exports.card import hide_path
from descend.kinds.language import LanguageRecipe
from descend.models.llama import LlamaConfig
from tests.close import close


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small language model of cats and dogs, with byte-level tokens."""
    where = tmp_path_factory.mktemp("writer")
    (where / "pets.txt").write_text("the cat sat on the mat . a dog ran over the hill . " * 60)
    model = LlamaConfig(context=16, width=32, depth=1, heads=2, kv_heads=1, hidden=32)
    data = Text(path=str(where / "pets.txt"), tokenizer="bpe", vocab=280)
    recipe = LanguageRecipe(about="pets in a row", model=model, data=data)
    loop = replace(recipe.loop, steps=4, batch=4, eval_every=4, threads=1)
    descend.train(replace(recipe, loop=loop), out=where / "run", quiet=True)
    return where / "run"


def read_front_matter(page: str) -> dict[str, object]:
    yaml = pytest.importorskip("yaml")
    _, front, _ = page.split("---\n", 2)
    found: dict[str, object] = yaml.safe_load(front)
    return found


def test_a_public_folder(run: Path, tmp_path: Path) -> None:
    """descend and transformers open it; the card has front matter, scores, facts and no path of this machine."""
    from transformers import AutoModelForCausalLM, AutoTokenizer

    out = tmp_path / "pets"
    found = descend.export(run, "safetensors", out)
    assert found["bytes"] == sum(path.stat().st_size for path in out.iterdir())
    names = {path.name for path in out.iterdir()}
    assert {"config.json", "model.safetensors", "tokenizer.json", "README.md"} <= names
    assert not any("state" in name for name in names)
    page = (out / "README.md").read_text()
    assert read_front_matter(page) == {"library_name": "transformers", "tags": ["descend", "llama"]}
    scores = descend.evaluate(run)["valid"]
    assert f"| perplexity | {scores['perplexity']:.4g} |" in page
    flags = ("--model.width 32", "--steps 4")
    for line in ("Llama on pets.txt", *flags, "import LlamaForCausalLM", 'descend.load("pets")'):
        assert line in page
    assert str(run.parent) not in page
    tokens = torch.randint(270, (2, 9), generator=torch.Generator().manual_seed(0))
    theirs = AutoModelForCausalLM.from_pretrained(out).eval()
    with torch.no_grad():
        close(descend.load(out)(tokens), theirs(tokens).logits, loosen=5)
    assert AutoTokenizer.from_pretrained(out).encode("the cat")


def test_a_graph_and_a_file_for_llama_cpp(run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["export", str(run), "--to", "onnx", "--out", str(tmp_path / "m.onnx")]) == 0
    said = capsys.readouterr().out
    assert "input     tokens (batch, length)" in said
    assert "checked   batch 1, length 11: file and model differ by" in said
    assert "checked   batch 3, length 6: file and model differ by" in said
    arguments = ["export", str(run), "--to", "gguf", "--type", "q8_0", "--out", str(tmp_path / "m.gguf"), "--json"]
    assert cli.main(arguments) == 0
    assert json.loads(capsys.readouterr().out)["format"] == "gguf q8_0"
    assert cli.main(["inspect", str(tmp_path / "m.gguf")]) == 0
    said = capsys.readouterr().out
    assert "llama.attention.head_count_kv: 1" in said
    assert "blk.0.attn_q.weight" in said
    assert cli.main(["inspect", str(tmp_path / "m.onnx"), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["graph"]["inputs"]["tokens"][1:] == ["batch", "length"]


def test_what_is_there_is_kept(run: Path, tmp_path: Path) -> None:
    """Nothing is overwritten unasked, and a folder of other things never."""
    (tmp_path / "m.onnx").write_text("mine")
    with pytest.raises(Mistake, match=r"m\.onnx exists; give --replace"):
        descend.export(run, "onnx", tmp_path / "m.onnx")
    (tmp_path / "photos").mkdir()
    (tmp_path / "photos/a.jpg").write_text("mine")
    with pytest.raises(Mistake, match="holds other files than a model's, so it is not replaced"):
        descend.export(run, "safetensors", tmp_path / "photos", replace=True)
    with pytest.raises(Mistake, match="is no model folder, so it is not replaced"):
        descend.export(run, "safetensors", run, replace=True)
    assert (tmp_path / "m.onnx").read_text() == (tmp_path / "photos/a.jpg").read_text() == "mine"


def test_wishes_that_cannot_be(run: Path, tmp_path: Path) -> None:
    with pytest.raises(Mistake, match=r"--to onx: choose safetensors, onnx, gguf\. Did you mean 'onnx'"):
        descend.export(run, "onx", tmp_path / "m")
    with pytest.raises(Mistake, match="--type f16 is for --to gguf"):
        descend.export(run, "safetensors", tmp_path / "m", type="f16")
    with pytest.raises(Mistake, match=r"m\.gguf|\.gguf"):
        descend.export(run, "gguf", tmp_path / "m.onnx")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("value", "said"), [("/home/me/data.txt", "data.txt"), ("../x/y.csv", "y.csv"), ("a / b", "a / b"), (3, "3")]
)
def test_paths_are_told_by_their_last_name(value: object, said: str) -> None:
    assert hide_path(value) == said
