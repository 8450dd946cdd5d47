"""GPT-2 against transformers' own, both ways, and by its properties."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

import descend
from descend.errors import Mistake
from descend.losses.language import token_losses
from descend.metrics.language import perplexity
from descend.models.gpt2 import GPT2, LAYOUT, PARAMETERS, SIZES, TINY, GPT2Config
from descend.sampling.filters import TokenSampler
from descend.sampling.generate import generate
from tests.close import close

transformers = pytest.importorskip("transformers")


@pytest.fixture(scope="module")
def theirs() -> nn.Module:
    """A transformers GPT-2 with random weights."""
    torch.manual_seed(0)
    config = transformers.GPT2Config(
        vocab_size=61, n_positions=24, n_embd=32, n_layer=2, n_head=4, bos_token_id=0, eos_token_id=0
    )
    model: nn.Module = transformers.GPT2LMHeadModel(config).eval()
    for p in model.parameters():  # the released ones have no zero biases either
        nn.init.normal_(p, std=0.2)
    return model


@pytest.fixture(scope="module")
def folder(theirs: nn.Module, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("theirs")
    theirs.save_pretrained(path)
    return path


@pytest.fixture
def tokens() -> Tensor:
    return torch.randint(61, (3, 11), generator=torch.Generator().manual_seed(1))


@pytest.mark.system("gpt")
@pytest.mark.system("gpt", "pre-norm")
@pytest.mark.system("gpt-2")
@pytest.mark.system("gpt-2", "model")
@pytest.mark.system("lm-weight-tying")
@pytest.mark.system("lm-weight-tying", "storage")
def test_logits_are_those_of_transformers(theirs: nn.Module, folder: Path, tokens: Tensor) -> None:
    ours = descend.load(folder)
    assert isinstance(ours, GPT2)
    with torch.no_grad():
        close(ours(tokens), theirs(tokens).logits)


@pytest.mark.system("gpt-2")
@pytest.mark.system("gpt-2", "model")
def test_gradients_are_those_of_transformers(theirs: nn.Module, folder: Path, tokens: Tensor) -> None:
    ours = descend.load(folder)
    ours(tokens).square().mean().backward()
    theirs.zero_grad()
    theirs(tokens).logits.square().mean().backward()
    close(ours.wte.weight.grad, theirs.transformer.wte.weight.grad)
    close(ours.h[0].attn.qkv.weight.grad, theirs.transformer.h[0].attn.c_attn.weight.grad.T)


@pytest.mark.system("gpt-2")
@pytest.mark.system("gpt-2", "model")
def test_what_we_save_opens_in_transformers(folder: Path, tmp_path: Path, theirs: nn.Module, tokens: Tensor) -> None:
    descend.load(folder).save_pretrained(tmp_path)
    again = transformers.GPT2LMHeadModel.from_pretrained(tmp_path).eval()
    with torch.no_grad():
        assert torch.equal(again(tokens).logits, theirs(tokens).logits)


def test_sharded_both_ways(folder: Path, tmp_path: Path, theirs: nn.Module, tokens: Tensor) -> None:
    theirs.save_pretrained(tmp_path / "a", max_shard_size="20KB")
    assert (tmp_path / "a" / "model.safetensors.index.json").exists()
    ours = descend.load(tmp_path / "a")
    ours.save_pretrained(tmp_path / "b", shard_bytes=20_000)
    assert len(list((tmp_path / "b").glob("*.safetensors"))) > 1
    again = transformers.GPT2LMHeadModel.from_pretrained(tmp_path / "b").eval()
    with torch.no_grad():
        assert torch.equal(again(tokens).logits, theirs(tokens).logits)


def test_the_bare_models_keys_open_too(theirs: nn.Module, tmp_path: Path, tokens: Tensor) -> None:
    """The published gpt2 folder has the keys of the bare model, and its mask buffers."""
    theirs.transformer.save_pretrained(tmp_path)
    state = load_file(tmp_path / "model.safetensors")
    assert "wte.weight" in state
    state["h.0.attn.bias"] = torch.ones(1, 1, 24, 24)
    save_file(state, tmp_path / "model.safetensors")
    with torch.no_grad():
        close(descend.load(tmp_path)(tokens), theirs(tokens).logits)


def altered(folder: Path, to: Path, change: object) -> Path:
    """A copy of the folder with changed weights."""
    state = load_file(folder / "model.safetensors")
    change(state)  # type: ignore[operator]
    save_file(state, to / "model.safetensors")
    (to / "config.json").write_text((folder / "config.json").read_text())
    return to


BIAS = "transformer.h.1.mlp.c_fc.bias"
BROKEN = {
    "missing": (lambda s: s.pop(BIAS), f"missing key '{BIAS}'"),
    "unknown": (lambda s: s.update({"transformer.h.1.mlp.c_fc.gain": torch.ones(1)}), "unknown key .*c_fc.gain"),
    "mis-shaped": (lambda s: s.update({BIAS: torch.ones(3)}), rf"'{BIAS}' has shape \(3,\), .*\(128,\)"),
    "too deep": (lambda s: s.update({BIAS.replace("1", "9"): torch.ones(128)}), "does not exist in this GPT2"),
    "untied": (lambda s: s.update({"lm_head.weight": torch.ones(61, 32)}), "ties the two"),
}


@pytest.mark.parametrize("kind", BROKEN)
def test_a_wrong_key_is_named(kind: str, folder: Path, tmp_path: Path) -> None:
    change, message = BROKEN[kind]
    with pytest.raises(Mistake, match=message):
        descend.load(altered(folder, tmp_path, change))


@pytest.mark.system("lm-weight-tying")
@pytest.mark.system("lm-weight-tying", "storage")
def test_an_equal_output_matrix_is_accepted(folder: Path, tmp_path: Path, tokens: Tensor) -> None:
    add = lambda s: s.update({"lm_head.weight": s["transformer.wte.weight"].clone()})
    with torch.no_grad():
        assert torch.equal(descend.load(altered(folder, tmp_path, add))(tokens), descend.load(folder)(tokens))


def test_a_pickle_is_refused_with_the_way_to_convert_it(folder: Path, tmp_path: Path, tokens: Tensor) -> None:
    state = load_file(folder / "model.safetensors")
    torch.save(state, tmp_path / "pytorch_model.bin")
    (tmp_path / "config.json").write_text((folder / "config.json").read_text())
    with pytest.raises(Mistake, match="is a pickle") as refused:
        descend.load(tmp_path)
    command = str(refused.value).partition('python -c "')[2].rstrip('"')
    exec(compile(command, "convert", "exec"), {})  # the advice works as printed
    with torch.no_grad():
        assert torch.equal(descend.load(tmp_path)(tokens), descend.load(folder)(tokens))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"activation_function": "relu"}, "activation_function = 'relu' is not supported"),
        ({"scale_attn_by_inverse_layer_idx": True}, "scale_attn_by_inverse_layer_idx"),
        ({"model_type": "gpt22"}, "Did you mean 'gpt2'"),
        ({"n_head": 5}, "not a multiple"),
    ],
)
def test_a_config_that_we_do_not_compute_is_refused(
    change: dict[str, object], message: str, folder: Path, tmp_path: Path
) -> None:
    altered(folder, tmp_path, lambda _: None)
    config = json.loads((folder / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps(config | change))
    with pytest.raises(Mistake, match=message):
        descend.load(tmp_path)


def test_our_defaults_are_those_of_transformers() -> None:
    """A field that config.json leaves out must mean the same on both sides."""
    defaults = transformers.GPT2Config()
    for ours, names in LAYOUT.fields.items():
        first = names if isinstance(names, str) else names[0]
        assert asdict(GPT2Config())[ours] == getattr(defaults, first)
    for name, value in LAYOUT.fixed.items():
        assert getattr(defaults, name) == value


@pytest.mark.system("gpt")
@pytest.mark.system("gpt", "causal")
def test_causality(tokens: Tensor) -> None:
    model = GPT2(TINY).eval()
    changed = tokens.clone()
    changed[:, 6:] = 0
    assert torch.equal(model(tokens)[:, :6], model(changed)[:, :6])
    assert not torch.equal(model(tokens)[:, 6:], model(changed)[:, 6:])


@pytest.mark.system("gpt")
def test_batched_is_single_with_padding_on_the_right(tokens: Tensor) -> None:
    model = GPT2(TINY).double().eval()
    padded = tokens.clone()
    padded[0, 5:] = 0
    close(model(padded)[0, :5], model(tokens[:1, :5])[0])


@pytest.mark.system("gpt-2")
@pytest.mark.system("gpt-2", "residual-init")
@pytest.mark.system("residual-depth-init")
def test_initial_values() -> None:
    torch.manual_seed(0)
    model = GPT2(GPT2Config(vocab=8000, context=64, width=128, depth=8, heads=4))
    close(model.wte.weight.std(), torch.tensor(0.02), loosen=100)  # of a million numbers: the spread is 0.07%
    out = torch.cat([block.mlp.down.weight.flatten() for block in model.h])
    close(out.std(), torch.tensor(0.02 / 4), loosen=100)  # √(2·8) = 4
    assert all((block.attn.qkv.bias == 0).all() for block in model.h)


@pytest.mark.system("gpt-2")
@pytest.mark.system("gpt-2", "pre-norm")
def test_a_block_with_zeroed_outputs_is_the_identity() -> None:
    block = GPT2(TINY).h[0]
    for out in (block.attn.out, block.mlp.down):
        nn.init.zeros_(out.weight)
        nn.init.zeros_(out.bias)
    x = torch.randn(2, 5, 32)
    assert torch.equal(block(x), x)


@pytest.mark.system("lm-weight-tying")
@pytest.mark.system("lm-weight-tying", "gradient")
def test_the_tied_gradient_is_the_sum_of_both_uses(tokens: Tensor) -> None:
    model = GPT2(TINY).double()
    model(tokens).square().mean().backward()
    both = model.wte.weight.grad.clone()
    parts = []
    for use in ("input", "output"):
        table, head = model.wte.weight.detach().clone(), model.wte.weight.detach().clone()
        (table if use == "input" else head).requires_grad_()
        x = nn.functional.embedding(tokens, table) + model.wpe.weight[: tokens.shape[1]]
        for block in model.h:
            x = block(x)
        (model.ln_f(x) @ head.T).square().mean().backward()
        parts.append((table if use == "input" else head).grad)
    close(parts[0] + parts[1], both)


@pytest.mark.system("gpt", "positions")
@pytest.mark.system("learned-position-embeddings", "limit")
@pytest.mark.system("learned-position-embeddings")
def test_positions_end_with_the_table(tokens: Tensor) -> None:
    model = GPT2(replace(TINY, context=8))
    assert model(tokens[:, :8]).shape == (3, 8, 61)
    with pytest.raises(ValueError, match="positions for 8"):
        model(tokens[:, :9])
    with torch.no_grad():
        moved = model(tokens[:, :8])
        model.wpe.weight[5:] += 1.0
        after = model(tokens[:, :8])
    assert torch.equal(moved[:, :5], after[:, :5])


@pytest.mark.system("gpt")
def test_gradcheck() -> None:
    torch.manual_seed(0)
    model = GPT2(GPT2Config(vocab=5, context=3, width=4, depth=1, heads=2, dropout=0.0)).double()
    x = torch.tensor([[1, 4, 2]])
    names, values = zip(*model.named_parameters(), strict=True)

    def logits(*parameters: Tensor) -> Tensor:
        return torch.func.functional_call(model, dict(zip(names, parameters, strict=True)), (x,))

    assert torch.autograd.gradcheck(logits, tuple(v.detach().requires_grad_() for v in values))


@pytest.mark.system("gpt")
@pytest.mark.system("gpt", "trained")
def test_overfits_one_batch(tokens: Tensor) -> None:
    torch.manual_seed(0)
    model = GPT2(TINY)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    for _ in range(60):
        loss = nn.functional.cross_entropy(model(tokens[:, :-1]).flatten(0, 1), tokens[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    assert loss < 0.1


@pytest.mark.system("gpt-3")
@pytest.mark.system("gpt-3", "counts", "heads")
def test_the_sizes_of_gpt_3_are_the_same_function() -> None:
    """Counts by the formula of GPT-2 with 2048 positions; the two rows that do not fit have heads of 128 here."""
    sizes = {name: config for name, config in SIZES.items() if name.startswith("gpt3-")}
    assert len(sizes) == 8
    for name, c in sizes.items():
        d = c.width
        assert PARAMETERS[name] == (c.vocab + c.context) * d + c.depth * (12 * d * d + 13 * d) + 2 * d
        assert c.context == 2048
        assert d % c.heads == 0
    assert [sizes[f"gpt3-{n}"].width // sizes[f"gpt3-{n}"].heads for n in ("xl", "13b")] == [128, 128]


@pytest.mark.system("gpt-3")
@pytest.mark.system("gpt-3", "trained")
def test_a_gpt_3_in_small_learns_and_is_causal() -> None:
    torch.manual_seed(0)
    model = GPT2(replace(SIZES["gpt3-small"], vocab=61, context=24, width=32, depth=2, heads=4, dropout=0.0))
    x = torch.randint(61, (2, 17), generator=torch.Generator().manual_seed(0))
    changed = x.clone()
    changed[:, 9:] = (x[:, 9:] + 1) % 61
    with torch.no_grad():
        assert torch.equal(model(x)[:, :9], model(changed)[:, :9])
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    for _ in range(40):
        loss = torch.nn.functional.cross_entropy(model(x[:, :-1]).flatten(0, 1), x[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    assert loss < 0.5


@pytest.mark.system("gpt", "trained")
@pytest.mark.system("gpt-2", "top-k")
def test_a_trained_small_one_writes_with_top_k() -> None:
    """A digit is followed by itself or by the next one: with the two likeliest tokens it never errs."""
    torch.manual_seed(0)
    model, random = GPT2(replace(TINY, vocab=10)), torch.Generator().manual_seed(0)

    def text(n: int) -> Tensor:
        return (
            torch.randint(10, (n, 1), generator=random) + torch.randint(2, (n, 16), generator=random).cumsum(1)
        ) % 10

    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    for _ in range(60):
        x = text(32)
        loss = nn.functional.cross_entropy(model(x[:, :-1]).flatten(0, 1), x[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    valid = text(64)
    with torch.no_grad():
        losses = token_losses(model.eval()(valid[:, :-1]), valid[:, 1:])
    assert 1.9 < perplexity(losses) < 2.3  # undecided between two tokens
    rows = torch.tensor(generate(model.decoder(), torch.zeros(40, 1).long(), 12, TokenSampler(top_k=2), seed=1))
    steps = torch.cat([torch.zeros(40, 1).long(), rows], 1).diff(dim=1) % 10
    assert (steps <= 1).all()
    assert 0.35 < steps.float().mean() < 0.65  # drawn, not always the likeliest
