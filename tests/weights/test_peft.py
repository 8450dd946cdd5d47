"""Folders of adapters against peft itself: both ways, merged and not, on random tiny models of transformers."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

import descend
from descend.errors import Mistake
from descend.kinds.adapters import Bottleneck, Lora, Prefix, SoftPrompt
from descend.models import make_model
from descend.models._adapted import open_adapted
from descend.models.gpt2 import TINY as GPT2
from descend.models.llama import TINY as LLAMA
from descend.models.mistral import TINY as MISTRAL
from descend.weights.peft import name_targets
from tests.close import close

os.environ["HF_HUB_OFFLINE"] = "1"
peft = pytest.importorskip("peft")
transformers = pytest.importorskip("transformers")
CONFIGS = {"gpt2": GPT2, "llama": LLAMA, "mistral": MISTRAL}
TOKENS = torch.randint(61, (2, 9), generator=torch.Generator().manual_seed(4))
pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture(scope="module")
def bases(tmp_path_factory: Any) -> dict[str, Path]:
    """A random model of each family, as a folder that both sides open."""
    root = tmp_path_factory.mktemp("bases")
    for name, config in CONFIGS.items():
        torch.manual_seed(0)
        make_model(config).save_pretrained(root / name)
    return {name: root / name for name in CONFIGS}


@pytest.fixture(autouse=True)
def _no_gradients() -> Iterator[None]:
    with torch.no_grad():
        yield


def theirs(folder: Path) -> Any:
    return transformers.AutoModelForCausalLM.from_pretrained(folder).eval()


def logits(model: Any) -> torch.Tensor:
    """Of the text; peft shows those of a soft prompt too."""
    return model(input_ids=TOKENS).logits[:, -TOKENS.shape[1] :]


def moved(model: Any) -> Any:
    torch.manual_seed(1)
    for p in model.adapters.parameters():
        p.add_(torch.randn_like(p) * 0.1)
    return model.eval()


def choices(name: str) -> list[Any]:
    fused = name == "gpt2"
    targets = ("attn.qkv", "mlp.up", "out") if fused else ("q", "v", "out", "mlp.up")
    return [Lora(4, 6.0, targets=targets), Lora(2), SoftPrompt(3), Prefix(3)]


@pytest.mark.system("lora", "peft-folders")
@pytest.mark.system("prefix-tuning", "peft-folders", "deep")
@pytest.mark.parametrize("name", CONFIGS)
def test_what_is_saved_here_is_computed_by_peft(bases: dict[str, Path], tmp_path: Path, name: str) -> None:
    for i, choice in enumerate(choices(name)):
        ours = moved(choice.apply(descend.load(bases[name])))
        ours.save_pretrained(tmp_path / str(i))
        wrapped = peft.PeftModel.from_pretrained(theirs(bases[name]), tmp_path / str(i)).eval()
        close(ours(TOKENS), logits(wrapped))
        close(descend.load(tmp_path / str(i))(TOKENS), ours(TOKENS))
        if isinstance(choice, Lora):
            close(ours.merged()(TOKENS), logits(wrapped.merge_and_unload()))
            ours.merged().save_pretrained(tmp_path / f"{i}-merged")
            close(ours(TOKENS), logits(theirs(tmp_path / f"{i}-merged")))


@pytest.mark.system("lora", "peft-folders")
@pytest.mark.system("prefix-tuning", "peft-folders", "deep")
@pytest.mark.parametrize("name", CONFIGS)
def test_what_peft_saves_is_computed_here(bases: dict[str, Path], tmp_path: Path, name: str) -> None:
    torch.manual_seed(2)
    causal = "CAUSAL_LM"
    targets = ["c_attn", "c_proj"] if name == "gpt2" else "all-linear"
    prefix = {"prefix_projection": name == "llama", "encoder_hidden_size": 8}
    configs = [
        peft.LoraConfig(task_type=causal, r=3, lora_alpha=5, target_modules=targets, init_lora_weights=False),
        peft.LoraConfig(task_type=causal, r=4, lora_alpha=4, use_rslora=True, init_lora_weights=False),
        peft.PromptTuningConfig(task_type=causal, num_virtual_tokens=4),
        peft.PrefixTuningConfig(task_type=causal, num_virtual_tokens=4, **prefix),
    ]
    for i, config in enumerate(configs):
        wrapped = peft.get_peft_model(theirs(bases[name]), config).eval()
        wrapped.save_pretrained(tmp_path / str(i))
        ours = descend.load(tmp_path / str(i))
        close(ours(TOKENS), logits(wrapped))
        if i < 2:
            close(ours.merged()(TOKENS), logits(wrapped))


def small(bases: dict[str, Path], folder: Path, choice: Any = None, name: str = "gpt2") -> Path:
    moved((choice or Lora(2)).apply(descend.load(bases[name]))).save_pretrained(folder)
    return folder


def edit(path: Path, **values: Any) -> None:
    path.write_text(json.dumps({**json.loads(path.read_text()), **values}))


@pytest.mark.system("lora", "another-base")
@pytest.mark.parametrize("choice", [Lora(2), SoftPrompt(3), Prefix(3), Bottleneck(2)])
def test_another_base_is_refused_in_one_line(bases: dict[str, Path], tmp_path: Path, choice: Any) -> None:
    folder = small(bases, tmp_path / "adapter", choice)
    other = descend.load(bases["gpt2"])
    next(other.parameters()).view(-1)[0] += 1e-6
    other.save_pretrained(tmp_path / "other")
    edit(folder / "base.json", folder=str(tmp_path / "other"))
    with pytest.raises(Mistake, match=r"is not the base that the adapter in .* was trained on"):
        descend.load(folder)
    edit(folder / "base.json", folder=str(tmp_path / "gone"), relative="gone")
    with pytest.raises(Mistake, match=r"the base '.*gone' is not a folder here; write the folder of the base model"):
        descend.load(folder)


@pytest.mark.system("lora", "another-base")
def test_an_adapter_of_peft_that_does_not_fit_is_refused(bases: dict[str, Path], tmp_path: Path) -> None:
    folder = small(bases, tmp_path / "adapter")
    (folder / "base.json").unlink()
    edit(folder / "adapter_config.json", base_model_name_or_path=str(bases["llama"]))
    with pytest.raises(Mistake, match=r"'transformer.h.0.attn.c_attn' is not a matrix of this Llama.* another base\?"):
        descend.load(folder)
    folder = small(bases, tmp_path / "wide", Lora(2), "llama")
    (folder / "base.json").unlink()
    edit(folder / "adapter_config.json", base_model_name_or_path=str(bases["mistral"]), r=3)
    with pytest.raises(Mistake, match="r = 3 is not the rank of the tensors"):
        descend.load(folder)
    assert open_adapted(small(bases, tmp_path / "named"), bases["gpt2"]).base is not None


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"use_dora": True}, "use_dora = True is not supported"),
        ({"bias": "all"}, "bias = 'all' is not supported, only 'none'"),
        ({"modules_to_save": ["lm_head"]}, "modules_to_save"),
        ({"rank_pattern": {"q": 3}}, "rank_pattern"),
        ({"peft_type": "IA3"}, "peft_type 'IA3' is not supported, only LORA"),
        ({"base_model_name_or_path": "meta-llama/Llama-2-7b"}, "'meta-llama/Llama-2-7b' is not a folder here"),
    ],
)
def test_what_is_not_plain_lora_is_refused_by_name(
    bases: dict[str, Path], tmp_path: Path, values: dict[str, Any], said: str
) -> None:
    folder = small(bases, tmp_path / "adapter")
    (folder / "base.json").unlink()
    edit(folder / "adapter_config.json", **values)
    with pytest.raises(Mistake, match=said):
        descend.load(folder)


def test_a_pickle_is_not_read(bases: dict[str, Path], tmp_path: Path) -> None:
    folder = small(bases, tmp_path / "adapter")
    (folder / "adapter_model.safetensors").rename(folder / "adapter_model.bin")
    with pytest.raises(Mistake, match="is a pickle, which can run code"):
        descend.load(folder)


def test_targets_have_the_shortest_names_that_mean_them_and_no_others() -> None:
    known = ["h.0.attn.c_attn", "h.0.attn.c_proj", "h.0.mlp.c_proj", "h.1.attn.c_attn", "h.1.attn.c_proj"]
    assert name_targets(["h.0.attn.c_attn", "h.1.attn.c_attn"], known) == ["c_attn"]
    assert name_targets(["h.0.attn.c_proj", "h.1.attn.c_proj"], known) == ["attn.c_proj"]
    assert name_targets(["h.1.attn.c_attn"], known) == ["h.1.attn.c_attn"]
