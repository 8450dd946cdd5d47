"""Text to image: calls of the network, seeds, negative prompts, the frozen text encoder and its sizes."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

import descend
from descend.contracts import Wish
from descend.errors import Mistake
from descend.models import clip_text_model
from descend.models.clip_text_model import ClipTextModel, ClipTextModelWithProjection
from descend.models.stable_diffusion_pipeline import StableDiffusionPipeline
from descend.sampling.chance import PerExample
from tests.close import close
from tests.weights.test_pipeline import make_stable

pytest.importorskip("diffusers")
transformers = pytest.importorskip("transformers")


@pytest.fixture(scope="module")
def ours(tmp_path_factory: pytest.TempPathFactory) -> StableDiffusionPipeline:
    folder = tmp_path_factory.mktemp("stable") / "theirs"
    make_stable(folder)
    found = descend.load(folder)
    assert isinstance(found, StableDiffusionPipeline)
    return found


@pytest.mark.system("text-to-image-pipeline", "calls")
@pytest.mark.parametrize(("gamma", "rows"), [(1.0, 2), (3.0, 4), (0.0, 2)])
def test_two_predictions_a_step_in_one_call_unless_gamma_is_1(
    ours: StableDiffusionPipeline, gamma: float, rows: int
) -> None:
    seen: list[int] = []
    hook = ours.unet.register_forward_pre_hook(lambda _, args: seen.append(len(args[0])))
    with torch.no_grad():
        ours.generate(PerExample(0, 2), Wish(steps=4, guidance=gamma, prompts=("red", "cat")))
    hook.remove()
    assert seen == [rows] * 4


@pytest.mark.system("text-to-image-pipeline", "seed")
def test_the_same_seed_gives_the_same_image_alone_or_among_others(ours: StableDiffusionPipeline) -> None:
    wish = Wish(steps=4, guidance=2.0, prompts=("red", "cat", "red cat"))
    with torch.no_grad():
        three = ours.generate(PerExample(7, 3), wish)
        assert torch.equal(three, ours.generate(PerExample(7, 3), wish))
        alone = ours.generate(PerExample(7, 1, first=2), replace(wish, prompts=wish.prompts[2:]))
        close(alone[0], three[2], loosen=5)  # another batch size
        assert not torch.allclose(ours.generate(PerExample(8, 3), wish), three)


@pytest.mark.system("text-to-image-pipeline", "negative")
def test_the_unconditional_branch_is_the_empty_or_a_negative_prompt(ours: StableDiffusionPipeline) -> None:
    def make(negative: str, **more: Any) -> Tensor:
        with torch.no_grad():
            return ours.denoise(PerExample(1, 1), Wish(steps=3, **more), negative)

    red, nothing = make("", prompts=("red",), guidance=1.0), make("", prompts=("",), guidance=1.0)
    assert torch.equal(make("cat", prompts=("red",), guidance=1.0), red)  # γ = 1 does not look at it
    assert torch.equal(make("", prompts=("red",), guidance=0.0), nothing)
    assert torch.equal(make(""), nothing)  # without a prompt
    assert not torch.allclose(make("cat", prompts=("red",), guidance=3.0), make("", prompts=("red",), guidance=3.0))
    z, t = torch.randn(1, 4, 8, 8), torch.tensor([500])
    with torch.no_grad():
        guided = ours.predictor(1, Wish(prompts=("red",), guidance=3.0))(z, t)
        u, c = (ours.unet(z, t, ours.encode_prompts([text])) for text in ("", "red"))
    close(guided, u + 3 * (c - u))
    with pytest.raises(Mistake, match="guided by"):
        make("", guidance=2.0)


@pytest.mark.system("clip-text-encoder", "frozen")
def test_no_gradient_reaches_the_text_encoder(ours: StableDiffusionPipeline) -> None:
    ours.zero_grad()
    predict = ours.predictor(1, Wish(prompts=("red",), guidance=3.0))
    predict(torch.randn(1, 4, 8, 8), torch.tensor([5])).square().sum().backward()
    assert all(p.grad is None for p in ours.text_encoder.parameters())
    assert all(p.grad is not None for p in ours.unet.parameters())
    ours.zero_grad()


@pytest.mark.system("clip-text-encoder")
@pytest.mark.system("clip-text-encoder", "sequence")
def test_the_text_encoder_gives_a_vector_for_each_token(ours: StableDiffusionPipeline, tmp_path: Path) -> None:
    ours.text_encoder.save_pretrained(tmp_path)
    theirs = transformers.CLIPTextModel.from_pretrained(tmp_path).eval()
    tokens = ours.tokenize(["a red cat", ""])
    assert tokens.shape == (2, 12)
    with torch.no_grad():
        found = theirs(tokens, output_hidden_states=True)
        close(ours.encode_prompts(["a red cat", ""]), found.last_hidden_state)
        shorter = ClipTextModel(replace(ours.text_encoder.config, depth=1))
        state = {k: v for k, v in ours.text_encoder.state_dict().items() if ".blocks.1." not in k}
        shorter.load_state_dict(state)
        norm = theirs.get_submodule(
            "text_model.final_layer_norm" if hasattr(theirs, "text_model") else "final_layer_norm"
        )
        close(shorter(tokens).hidden, norm(found.hidden_states[-2]))  # version 2: the last layer but one


def count(width: int, depth: int, vocab: int = 49408, context: int = 77) -> int:
    """Embeddings, depth (12 d² + 13 d), and the last norm."""
    return (vocab + context) * width + depth * (12 * width**2 + 13 * width) + 2 * width


@pytest.mark.system("clip-text-encoder", "counts-v1", "counts-v2")
def test_the_sizes_of_the_text_encoders() -> None:
    with torch.device("meta"):
        large = ClipTextModel(clip_text_model.SIZES["clip-vit-large-patch14"])
        huge = ClipTextModelWithProjection(
            replace(clip_text_model.ClipTextConfig(), width=1024, depth=24, heads=16, hidden=4096, projected=1024)
        )
    sizes = [sum(p.numel() for p in model.parameters()) for model in (large, huge)]
    assert sizes == [123_060_480, 354_032_640]
    assert count(768, 12) == 123_060_480  # erratum: the book prints 63M
    assert count(1024, 24) + 1024**2 == 354_032_640
    assert count(512, 12) + 512 * 512 == 63_428_096  # the tower of the smaller CLIPs, which the book's 63M is
