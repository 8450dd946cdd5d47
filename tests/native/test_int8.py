"""Products with codes of 8 bits: their equation in whole numbers, a row alone, and a model that decodes with them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch
from torch import Tensor, nn

from descend.models.llama import Llama, LlamaConfig
from descend.native.build import library
from descend.native.decoding import CodedMap, Map, NativeStep, Norm, Weights
from descend.nn.decoding.cached import CachedDecoder, read_map
from descend.nn.quantized import QuantizedLinear, quantize
from descend.ops.quantization import signed_codes
from descend.sampling.generate import generate
from tests.close import close

pytestmark = pytest.mark.skipif(library() is None, reason="there is no C++ compiler here")
SLUG = "post-training-quantization"


@pytest.fixture(params=[1, 3])
def threads(request: pytest.FixtureRequest) -> Iterator[int]:
    before = torch.get_num_threads()
    torch.set_num_threads(request.param)
    yield request.param
    torch.set_num_threads(before)


def draw(seed: int, *shape: int) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


def make_map(out: int, inputs: int, bias: bool, group: int = 32) -> tuple[CodedMap, QuantizedLinear]:
    torch.manual_seed(out + inputs)
    layer = QuantizedLinear.of(nn.Linear(inputs, out, bias), 8, group)
    made = read_map(layer)
    assert isinstance(made, CodedMap)
    return made, layer


def round_rows(x: Tensor) -> Tensor:
    """x̂: every 32 numbers as codes −127..127 times their step, ties to even."""
    codes, steps = signed_codes(x, 8, 32)
    return (codes.unflatten(1, (-1, 32)).double() * steps[..., None].double()).flatten(1)


def step_through(maps: list[Map], x: Tensor) -> Tensor:
    """The logits of one step of a block in which nothing but these maps does anything: U norm(x + …)."""
    q, k, v, out, up, down, head = maps
    norm = Norm(torch.ones(64), None, 0.0)
    step = NativeStep([Weights(norm, norm, q, k, v, out, None, up, down)], norm, head, 8, "relu")
    cache = torch.zeros(1, 2, len(x), 8, 16, 8)
    return step.step(x.clone(), cache, 0)


@pytest.mark.system(SLUG, "models")
@pytest.mark.parametrize("rows", [1, 3, 4, 9])
def test_the_product_is_its_equation(rows: int, threads: int) -> None:
    """Outputs that no panel divides, with a bias and without; a token alone attends to itself, so a = v."""
    sizes = [(64, 64), (64, 64), (64, 64), (64, 64), (96, 64), (64, 96), (43, 64)]
    maps, layers = zip(*(make_map(*size, bias=i % 2 == 1) for i, size in enumerate(sizes)), strict=True)
    x = draw(1, rows, 64)
    found = step_through(list(maps), x)

    for layer in layers:
        layer.scales.data = layer.scales.half().float()  # as the compiled code keeps them

    def apply(i: int, a: Tensor) -> Tensor:
        y = round_rows(a.float()) @ layers[i].weight.double().T
        return y if layers[i].bias is None else y + layers[i].bias.double()

    norm = lambda a: a / a.square().mean(-1, keepdim=True).sqrt()
    h = x.double()
    h = h + apply(3, apply(2, norm(h)))
    h = h + apply(5, apply(4, norm(h)).relu())
    close(found, apply(6, norm(h)), loosen=100)  # a number near a half may be rounded to the other side


def test_a_row_does_not_depend_on_the_others(threads: int) -> None:
    maps = [make_map(*size, bias=True)[0] for size in [(64, 64)] * 4 + [(96, 64), (64, 96), (50, 64)]]
    x = draw(2, 7, 64)
    together = step_through(list(maps), x)
    for row in range(7):
        assert torch.equal(step_through(list(maps), x[row : row + 1])[0], together[row])


def test_zeros_and_groups_of_a_whole_row() -> None:
    """A row of zeros has the step 0; a step for a whole row counts for all of its groups."""
    maps = [make_map(*size, bias=False, group=0)[0] for size in [(64, 64)] * 4 + [(96, 64), (64, 96), (50, 64)]]
    for one in maps:
        one.codes[:] = 128
    assert step_through(list(maps), draw(3, 2, 64)).abs().max() == 0
    assert maps[5].steps.shape == (4, 3, 16)
    assert torch.equal(maps[5].steps[:, 0], maps[5].steps[:, 2])


@pytest.mark.parametrize(("bits", "group", "size"), [(4, 32, 1.0), (8, 20, 1.0), (8, 32, 1e-6), (8, 32, 1e8)])
def test_other_codes_are_written_out(bits: int, group: int, size: float) -> None:
    """Other bits and groups, and steps that half precision does not hold."""
    linear = nn.Linear(64, 20)
    linear.weight.data *= size
    layer = QuantizedLinear.of(linear, bits, group)
    found = read_map(layer)
    assert not isinstance(found, CodedMap)
    assert torch.equal(found.w, layer.weight)


@pytest.mark.system(SLUG, "models")
def test_a_model_decodes_with_its_codes() -> None:
    """Within 2% of the logits' spread of the model that computes with the same weights and rounds nothing else."""
    torch.manual_seed(0)
    model = Llama(LlamaConfig(61, 32, width=64, depth=2, heads=4, kv_heads=2, hidden=96)).eval()
    nn.init.normal_(model.embed.weight)
    quantize(model, 8, 32)
    decoder = model.decoder()
    assert isinstance(decoder, CachedDecoder)
    assert decoder.native is not None
    assert isinstance(decoder.native.kept[2], CodedMap)
    tokens = torch.randint(61, (3, 12), generator=torch.Generator().manual_seed(1))
    decoder.start(tokens[:, :4], torch.zeros(3, dtype=torch.long), 12)
    with torch.no_grad():
        expected = model(tokens)
    for t in range(4, 12):
        apart = decoder.step(tokens[:, t]) - expected[:, t]
        assert 0 < float(apart.std() / expected[:, t].std()) < 0.02
    alone = generate(model.decoder(), tokens[:1, :4], 8)
    assert generate(model.decoder(), tokens[:, :4], 8)[0] == alone[0]
