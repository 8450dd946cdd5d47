"""Every core in the place of full attention: one interface, the same weights, dropout, batches."""

from __future__ import annotations

from importlib import import_module
from inspect import signature
from typing import Any

import pytest
import torch
from torch import Tensor

from descend.contracts import Boxes
from descend.losses.detection.set_prediction import SetPrediction
from descend.models import detr, model_class
from descend.nn.attention import multi_head
from descend.nn.attention.big_bird import BigBirdAttention
from descend.nn.attention.linear import LinearAttention
from descend.nn.attention.linformer import LinformerAttention
from descend.nn.attention.multi_head import Attention
from descend.nn.attention.performer import PerformerAttention
from descend.nn.attention.self_attention import SelfAttention
from descend.nn.attention.sliding_window import GlobalWindow, SeparateGlobalWindow, WindowAttention
from descend.nn.attention.strided import FixedAttention, StridedAttention
from descend.nn.detection import set_queries
from descend.nn.detection.set_queries import PlacedAttention
from descend.nn.encoder import Encoder, EncoderBlock
from descend.ops.attention.dot_product import attention as equation
from tests.close import close

MODULES = {
    "full": lambda drop: SelfAttention(16, 4, dropout=drop),
    "window": lambda drop: WindowAttention(16, 4, radius=3, dropout=drop),
    "dilated": lambda drop: WindowAttention(16, 4, radius=3, stride=2, dropout=drop),
    "global": lambda drop: GlobalWindow(16, 4, radius=3, dropout=drop),
    "separate": lambda drop: SeparateGlobalWindow(16, 4, radius=3, dropout=drop),
    "big_bird": lambda drop: BigBirdAttention(16, 4, size=4, count=1, dropout=drop),
    "strided": lambda drop: StridedAttention(16, 4, stride=5, dropout=drop),
    "fixed": lambda drop: FixedAttention(16, 4, stride=5, dropout=drop),
    "linformer": lambda drop: LinformerAttention(16, 4, context=30, projected=6, dropout=drop),
}
WITHOUT_DROPOUT = {
    "linear": lambda _: LinearAttention(16, 4),
    "performer": lambda _: PerformerAttention(16, 4, features=8),
}


@pytest.mark.system("shared-attention-core")
def test_full_attention_is_attention() -> None:
    torch.manual_seed(0)
    ours, known = SelfAttention(16, 4), Attention(16, 4)
    ours.load_state_dict(known.state_dict())
    x, mask = torch.randn(2, 9, 16), (torch.arange(9) < 7).expand(2, 1, 1, 9)
    close(ours(x), known(x))
    close(ours(x, mask, causal=True), known(x, mask=mask, causal=True))


@pytest.mark.system("shared-attention-core", "other-cores")
@pytest.mark.system("shared-attention-core")
@pytest.mark.parametrize("name", [*MODULES, *WITHOUT_DROPOUT])
def test_each_stands_in_an_encoder(name: str) -> None:
    """Batched equals single, padding changes nothing, every parameter has a gradient."""
    torch.manual_seed(0)
    blocks = [EncoderBlock(16, 4, 32, torch.nn.GELU()) for _ in range(2)]
    for block in blocks:
        block.attn = (MODULES | WITHOUT_DROPOUT)[name](0.0)
    encoder = Encoder(blocks).double()
    x = torch.randn(3, 29, 16, dtype=torch.float64)
    y = encoder(x)
    close(y[1:2], encoder(x[1:2]))
    lengths = torch.tensor([29, 21, 25])
    found = encoder(x, lengths)
    close(found[0], y[0])
    if name != "big_bird":  # there the padded text is longer, so its last block and its random ones are others
        close(found[1, :21], encoder(x[1:2, :21])[0])
    y.square().sum().backward()
    missing = {key.split(".")[3] for key, p in encoder.named_parameters() if p.grad is None}
    assert missing == ({"q_global", "k_global", "v_global"} if name == "separate" else set())


@pytest.mark.parametrize("name", MODULES)
def test_dropout_is_for_training_alone(name: str) -> None:
    torch.manual_seed(0)
    attn = MODULES[name](0.5)
    x = torch.randn(1, 28, 16)
    assert not torch.equal(attn(x), attn(x))
    attn.eval()
    assert torch.equal(attn(x), attn(x))


@pytest.mark.system("shared-attention-core", "models")
@pytest.mark.parametrize(
    ("name", "causal", "cross"),
    [("bert", False, False), ("vit", False, False), ("llama", True, False), ("t5", True, True)],
)
def test_encoders_and_decoders_are_built_of_one_module(name: str, causal: bool, cross: bool) -> None:
    """Every product of queries and keys in these models is made by `Attention`; mask and source differ."""
    file = import_module(f"descend.models.{name}")
    torch.manual_seed(0)
    model: Any = model_class(name)(file.TINY).eval()
    layers = [m for m in model.modules() if isinstance(m, Attention)]
    seen: list[dict[str, Any]] = []
    for layer in layers:
        assert type(layer).forward is Attention.forward
        layer.register_forward_pre_hook(
            lambda m, args, kwargs: seen.append(signature(Attention.forward).bind(m, *args, **kwargs).arguments),
            with_kwargs=True,
        )
    tokens = torch.randint(3, 20, (1, 6))
    given = {"vit": getattr(file, "TINY_INPUT", lambda: None)(), "t5": (tokens, tokens)}.get(name, tokens)
    with torch.no_grad():
        model(*given) if isinstance(given, tuple) else model(given)
    assert len(seen) == len(layers) >= 2
    assert any(s.get("causal", False) for s in seen) == causal
    looks_elsewhere = [s["source"].data_ptr() != s["x"].data_ptr() for s in seen if s.get("source") is not None]
    assert any(looks_elsewhere) == cross


@pytest.mark.system("shared-attention-core", "detr")
def test_detr_attends_with_the_same_core() -> None:
    """Its attention without places is `Attention` with the same parameters, and every product of queries and keys of
    DETR under its set loss is made by the core that the others use: the equation in its place gives the same loss and
    gradients."""
    torch.manual_seed(0)
    ours, known = PlacedAttention(16, 4), Attention(16, 4)
    ours.load_state_dict(known.state_dict())
    x, source, mask = torch.randn(2, 5, 16), torch.randn(2, 9, 16), (torch.arange(9) < 7).expand(2, 1, 1, 9)
    close(ours(x, x, x), known(x))
    close(ours(x, source, source, mask), known(x, source, mask=mask))
    model = detr.Detr(detr.TINY).double()
    image = detr.TINY_INPUT().double()
    truth = Boxes(
        torch.tensor([[[5.0, 5.0, 40.0, 60.0]], [[30.0, 10.0, 90.0, 50.0]]], dtype=torch.float64),
        torch.tensor([[1], [2]]), torch.ones(2, 1, dtype=torch.float64),
    )  # fmt: skip
    calls = []

    def written_out(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None, dropout: float = 0.0) -> Tensor:
        assert mask is None
        assert dropout == 0
        calls.append(q.shape[1])
        return equation(q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2))[0].transpose(1, 2)

    def differentiate() -> list[Tensor]:
        loss = torch.stack(list(SetPrediction()(model(image), truth, torch.empty(0)).terms.values())).sum()
        layers = [m for m in model.modules() if isinstance(m, PlacedAttention)]
        return [loss, *torch.autograd.grad(loss, [p for layer in layers for p in layer.parameters()])]

    model.eval()
    with_core = differentiate()
    assert vars(set_queries)["attend"] is multi_head.attend
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(set_queries, "attend", written_out)
        for a, b in zip(with_core, differentiate(), strict=True):
            close(a, b, loosen=100)  # gradients of keys' biases are 0 but for rounding
    assert len(calls) == detr.TINY.depth + 2 * detr.TINY.decoder_depth
