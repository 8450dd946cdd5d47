"""T5 against transformers' own, both ways: v1.0 and v1.1, padded sources, cached greedy and beam decoding, sizes."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import descend
from descend.errors import Mistake
from descend.models.t5 import PARAMETERS, SIZES, T5, TINY, T5Config
from descend.sampling.beam import beam_search
from descend.sampling.decoder import Recompute
from descend.sampling.generate import generate
from tests.close import close
from tests.models.peers import check_both_ways, random_peer

transformers = pytest.importorskip("transformers")

LENGTHS = (9, 4, 7)


def peer(version: str = "1.0", std: float = 0.2, decoder_depth: int = 3) -> Any:
    values = {"1.0": {}, "1.1": {"feed_forward_proj": "gated-gelu", "tie_word_embeddings": False}}[version]
    config = transformers.T5Config(
        vocab_size=61, d_model=32, d_kv=6, d_ff=48, num_layers=2, num_decoder_layers=decoder_depth, num_heads=4,
        dropout_rate=0.0, relative_attention_num_buckets=8, relative_attention_max_distance=20,
        decoder_start_token_id=0, eos_token_id=1, **values,
    )  # fmt: skip
    model = random_peer(transformers.T5ForConditionalGeneration, config, std)
    if version == "1.1":  # transformers ties until a file says otherwise
        model.lm_head.weight = nn.Parameter(torch.randn(61, 32))
    return model


def sources() -> tuple[Tensor, Tensor]:
    """Padded on the right, as the tokenizer of T5 does."""
    x = torch.randint(2, 61, (3, 9), generator=torch.Generator().manual_seed(1))
    mask = torch.arange(9) < torch.tensor(LENGTHS)[:, None]
    return x * mask, mask


def targets() -> Tensor:
    return torch.randint(61, (3, 30), generator=torch.Generator().manual_seed(2))


@pytest.mark.system("t5")
@pytest.mark.system("t5", "model")
@pytest.mark.system("relative-position-bias")
@pytest.mark.system("cross-attention")
@pytest.mark.system("transformer-decoder-block")
@pytest.mark.parametrize("version", ["1.0", "1.1"])
def test_both_ways(version: str, tmp_path: Path) -> None:
    theirs, (x, mask), y = peer(version), sources(), targets()
    ours = check_both_ways(
        theirs,
        tmp_path,
        lambda m: m(x, y, mask),
        lambda m: m(input_ids=x, attention_mask=mask.long(), decoder_input_ids=y).logits,
    )
    with torch.no_grad():
        close(ours(x, y), theirs(input_ids=x, decoder_input_ids=y).logits)
    ours(x, y, mask).square().mean().backward()
    theirs(input_ids=x, attention_mask=mask.long(), decoder_input_ids=y).logits.square().mean().backward()
    peers = theirs.decoder.block[0].layer
    close(ours.decoder_bias.table.weight.grad, peers[0].SelfAttention.relative_attention_bias.weight.grad, loosen=5)
    close(ours.layers[0].cross.k.weight.grad, peers[1].EncDecAttention.k.weight.grad, loosen=5)


@pytest.mark.system("autoregressive-generation", "models")
@pytest.mark.system("relative-position-bias", "cache")
@pytest.mark.system("t5")
@pytest.mark.system("t5", "generation")
@pytest.mark.system("encoder-decoder-transformer")
@pytest.mark.system("relative-position-bias")
@pytest.mark.parametrize("version", ["1.0", "1.1"])
@pytest.mark.parametrize("padded", [False, True])
def test_greedy_generation(version: str, padded: bool, tmp_path: Path) -> None:
    theirs, (x, mask) = peer(version, decoder_depth=2), sources()  # their cache needs the encoder's depth
    theirs.save_pretrained(tmp_path)
    ours = descend.load(tmp_path)
    x, mask = (x, mask) if padded else (x[:1], mask[:1])
    expected = theirs.generate(x, attention_mask=mask.long(), max_new_tokens=24, do_sample=False, eos_token_id=None)
    found = generate(ours.decoder(x, mask if padded else None), [[ours.config.start]] * len(x), 24)
    assert found == expected[:, 1:].tolist()


@pytest.mark.system("t5")
@pytest.mark.system("t5", "generation")
@pytest.mark.system("encoder-decoder-transformer")
@pytest.mark.parametrize("alpha", [0.0, 1.0])
def test_beam_search(alpha: float, tmp_path: Path) -> None:
    """Until one of several end tokens, so that hypotheses of different lengths compete."""
    theirs, (x, mask), ends = peer("1.1", 0.1, decoder_depth=2), sources(), [5, 17, 33, 40]
    theirs.save_pretrained(tmp_path)
    ours = descend.load(tmp_path)
    expected = theirs.generate(
        x, attention_mask=mask.long(), max_new_tokens=12, num_beams=4, length_penalty=alpha, early_stopping="never",
        eos_token_id=ends, pad_token_id=0, do_sample=False,
    )  # fmt: skip
    found = beam_search(ours.decoder(x, mask), [[0]] * 3, beams=4, tokens=12, alpha=alpha, stop=ends)
    for row, best in zip(expected[:, 1:].tolist(), found, strict=True):
        assert best[0].tokens == row[: len(best[0].tokens)]
        assert not set(row[len(best[0].tokens) :]) - {5}  # they fill up with the first end token
    assert len({len(best[0].tokens) for best in found}) > 1


@pytest.mark.parametrize("training", [False, True])
def test_decoding_is_the_forward_pass(training: bool) -> None:
    """Also for beginnings of different lengths, for rows taken again, and while the model trains (dropout is off)."""
    torch.manual_seed(0)
    model, (x, mask), y = T5(replace(TINY, dropout=0.3)).train(training), sources(), targets()
    decoder = model.decoder(x, mask)
    pad = torch.tensor([0, 2, 1])
    beginning = torch.stack([torch.cat([y.new_zeros(p), row[: 4 - p]]) for row, p in zip(y, pad.tolist(), strict=True)])
    found = [decoder.start(beginning, pad, 12)]
    found += [
        decoder.step(torch.stack([row[i - p] for row, p in zip(y, pad.tolist(), strict=True)])) for i in range(4, 8)
    ]
    assert model.training == training
    expected = model.eval()(x, y, mask)
    close(torch.stack(found, 1), torch.stack([expected[b, 3 - p : 8 - p] for b, p in enumerate(pad.tolist())]))
    rows = torch.tensor([2, 2, 0, 1])
    decoder.reorder(rows)
    again = decoder.step(torch.tensor([7, 8, 9, 10]))
    for row, token, b in zip(again, (7, 8, 9, 10), rows.tolist(), strict=True):
        line = torch.cat([y[b, : 8 - int(pad[b])], torch.tensor([token])])
        close(row, model(x[b : b + 1], line[None], mask[b : b + 1])[0, -1])


def test_recomputing_gives_the_same_text(tmp_path: Path) -> None:
    """The reference decoder of `descend.sampling`, over the whole forward pass."""
    torch.manual_seed(0)
    model, (x, mask) = T5(TINY).eval(), sources()
    with torch.no_grad():
        slow = generate(Recompute(lambda y: model(x, y, mask), 99), [[0]] * 3, 12)
    assert generate(model.decoder(x, mask), [[0]] * 3, 12) == slow


@pytest.mark.system("t5")
@pytest.mark.system("t5", "causal")
def test_causal_in_the_target_and_blind_to_padding() -> None:
    torch.manual_seed(0)
    model, (x, mask), y = T5(TINY).eval(), sources(), targets()
    later, junk = y.clone(), x.clone()
    later[:, 11:] = 3
    junk[~mask] = 50
    close(model(x, later, mask)[:, :11], model(x, y, mask)[:, :11])
    close(model(junk, y, mask), model(x, y, mask))
    short = model(x[1:2, : LENGTHS[1]], y[1:2])
    close(model(x, y, mask)[1:2], short)


@pytest.mark.system("t5")
@pytest.mark.system("t5", "sizes")
def test_sizes() -> None:
    """MF 36.9.2, with Large at what its sizes give; built without memory."""
    millions = {name: round(count / 1e6, 1) for name, count in PARAMETERS.items()}
    assert [millions[f"t5-{name}"] for name in ("small", "base", "large", "3b", "11b")] == [
        60.5, 222.9, 737.7, 2851.6, 11307.3
    ]  # fmt: skip
    for name in ("t5-3b", "t5-11b"):
        assert SIZES[name].heads * SIZES[name].head_size != SIZES[name].width


@pytest.mark.system("t5", "cross-attention")
@pytest.mark.parametrize("version", ["1.0", "1.1"])
def test_where_the_target_looks_in_the_source(version: str, tmp_path: Path) -> None:
    """(T_y × T_x) for every layer and head, as transformers has them; nothing falls on padding."""
    theirs, (x, mask), y = peer(version), sources(), targets()
    theirs.save_pretrained(tmp_path)
    ours: Any = descend.load(tmp_path)
    theirs.set_attn_implementation("eager")
    found = ours.alignment(x, y, mask)
    assert found.shape == (3, 3, 4, 30, 9)
    with torch.no_grad():
        said = theirs(input_ids=x, attention_mask=mask.long(), decoder_input_ids=y, output_attentions=True)
    close(found, torch.stack(said.cross_attentions))
    assert not found[:, 1, :, :, LENGTHS[1] :].any()


def test_the_names_of_older_files(tmp_path: Path) -> None:
    """v1.1 as it was released: tie_word_embeddings says what is tied, num_decoder_layers may be empty."""
    theirs, (x, mask), y = peer("1.1"), sources(), targets()
    theirs.save_pretrained(tmp_path)
    values = json.loads((tmp_path / "config.json").read_text())
    del values["scale_decoder_outputs"]
    values["tie_word_embeddings"] = False
    (tmp_path / "config.json").write_text(json.dumps(values))
    model = descend.load(tmp_path)
    assert (model.config.tied, model.config.decoder_depth) == (False, 3)
    with torch.no_grad():
        close(model(x, y, mask), theirs(input_ids=x, attention_mask=mask.long(), decoder_input_ids=y).logits)
    assert T5.Config is T5Config


def test_mistakes(tmp_path: Path) -> None:
    peer().save_pretrained(tmp_path)
    values = json.loads((tmp_path / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps(values | {"feed_forward_proj": "gated-silu"}))
    with pytest.raises(Mistake, match="feed_forward_proj is 'gated-silu': choose relu"):
        descend.load(tmp_path)
    with pytest.raises(ValueError, match="2 beginnings for 3 sources"):
        generate(T5(TINY).decoder(*sources()), [[0]] * 2, 3)


@pytest.mark.system("t5")
@pytest.mark.system("t5", "trained")
@pytest.mark.system("text-to-text-framework")
def test_learns_a_few_pairs() -> None:
    torch.manual_seed(0)
    model, (x, mask) = T5(replace(TINY, dropout=0.0)), sources()
    y = torch.randint(2, 61, (3, 6), generator=torch.Generator().manual_seed(3))
    optimizer = torch.optim.Adam(model.parameters(), 1e-2)
    begun = nn.functional.pad(y[:, :-1], (1, 0))
    for _ in range(60):
        loss = nn.functional.cross_entropy(model(x, begun, mask).flatten(0, 1), y.flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    assert float(loss.detach()) < 0.05
    assert generate(model.decoder(x, mask), [[0]] * 3, 6) == y.tolist()
