"""descend merge: a plain folder that computes what base and adapter compute."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import nn

import descend
from descend.errors import Mistake
from descend.kinds.adapters import Lora, Prefix
from descend.models import make_model
from descend.models.gpt2 import TINY
from descend.verbs.merge import command
from tests.close import close


def adapter(folder: Path, choice: Lora | Prefix) -> Path:
    torch.manual_seed(0)
    make_model(TINY).save_pretrained(folder / "base")
    (folder / "base/tokenizer_config.json").write_text('{"eos_token": "<end>"}')
    model = choice.apply(descend.load(folder / "base"))
    for p in model.adapters.parameters():
        nn.init.normal_(p, std=0.1)
    model.save_pretrained(folder / "adapter")
    return folder / "adapter"


@pytest.mark.system("lora", "merge-with-scale")
def test_the_merged_folder_is_a_plain_model(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = adapter(tmp_path, Lora(3, 5.0))
    command(str(folder), str(tmp_path / "merged"))
    assert capsys.readouterr().out == f"4 matrices merged into a GPT2: {tmp_path / 'merged'}\n"
    tokens = torch.randint(61, (2, 9))
    close(descend.load(tmp_path / "merged")(tokens), descend.load(folder)(tokens))
    there = {path.name for path in (tmp_path / "merged").iterdir()}
    assert there == {"config.json", "model.safetensors", "tokenizer_config.json", "README.md"}
    assert (tmp_path / "merged" / "README.md").read_text().startswith("---\nlibrary_name: transformers\n")


def test_the_base_may_be_named(tmp_path: Path) -> None:
    folder = adapter(tmp_path, Lora(3))
    (folder / "base.json").unlink()
    (tmp_path / "base").rename(tmp_path / "moved")
    with pytest.raises(Mistake, match="is not a folder here"):
        descend.merge(folder, tmp_path / "merged")
    assert not (tmp_path / "merged").exists()
    assert descend.merge(folder, tmp_path / "merged", base=tmp_path / "moved")["matrices"] == 4


def test_what_cannot_be_merged_is_refused(tmp_path: Path) -> None:
    folder = adapter(tmp_path, Prefix(3))
    with pytest.raises(Mistake, match="a deep prefix cannot be merged"):
        descend.merge(folder, tmp_path / "merged")
    with pytest.raises(Mistake, match="holds a GPT2 without an adapter"):
        descend.merge(tmp_path / "base", tmp_path / "merged")
    with pytest.raises(Mistake, match="is not empty"):
        descend.merge(folder, tmp_path / "base")
