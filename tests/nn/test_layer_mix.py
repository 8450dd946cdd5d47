"""Six ways to take features from a frozen BERT, and a BiLSTM tagger that learns on each."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from torch import nn

from descend.metrics.spans import thing_f1
from descend.models.bert import TINY, Bert, BertConfig
from descend.nn.layer_mix import STRATEGIES, FeatureTagger, WeightedSum
from tests.close import close

LAYERS = [torch.full((1, 2, 3), float(i)) for i in range(13)]


@pytest.mark.system("bert-feature-extraction")
@pytest.mark.system("bert-feature-extraction", "six")
@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("embeddings", [0.0]),
        ("second-to-last", [11.0]),
        ("last", [12.0]),
        ("weighted sum, last four", [10.5]),
        ("concat, last four", [9.0, 10.0, 11.0, 12.0]),
        ("weighted sum, all", [6.5]),
    ],
)
def test_strategies(name: str, expected: list[float]) -> None:
    with torch.no_grad():
        found = STRATEGIES[name](12)(LAYERS)
    close(found[0, 0], torch.tensor(expected).repeat_interleave(3))


@pytest.mark.system("bert-feature-extraction")
@pytest.mark.system("bert-feature-extraction", "six")
def test_the_weights_of_a_sum_are_a_distribution() -> None:
    mix = WeightedSum(4)
    with torch.no_grad():
        mix.weight.copy_(torch.tensor([0.0, 1.0, 2.0, 3.0]))
        w = mix.weight.softmax(0)
        close(mix(LAYERS)[0, 0, 0], (w * torch.arange(9.0, 13.0)).sum())
    mix(LAYERS).sum().backward()
    assert mix.weight.grad is not None


@pytest.mark.system("bert", "layers")
@pytest.mark.system("bert-feature-extraction")
@pytest.mark.system("bert-feature-extraction", "width")
def test_concatenation_of_bert_base_is_3072_wide() -> None:
    base = BertConfig()
    small = Bert(replace(base, vocab=9, context=4, depth=4, hidden=8)).eval()
    with torch.no_grad():
        layers = small.layers(torch.zeros(1, 3, dtype=torch.long))
    assert len(layers) == 5
    assert STRATEGIES["concat, last four"](base.depth)(layers).shape == (1, 3, 3072)


@pytest.mark.system("bert-feature-extraction")
@pytest.mark.system("bert-feature-extraction", "frozen", "tagger")
@pytest.mark.parametrize("name", list(STRATEGIES))
def test_a_tagger_learns_on_frozen_features(name: str) -> None:
    """Tag 1 where the token is above 30 and so is the one before it: needs context, which the BiLSTM adds."""
    torch.manual_seed(0)
    bert = Bert(replace(TINY, depth=4, dropout=0.1))
    before = {k: v.clone() for k, v in bert.state_dict().items()}
    mix = STRATEGIES[name](4)
    tagger = FeatureTagger(bert, mix, 32 * (4 if name.startswith("concat") else 1), 24, 2).train()
    assert not bert.training
    x = torch.randint(61, (24, 6), generator=torch.Generator().manual_seed(1))
    big = x > 30
    y = (big & torch.cat([torch.zeros(24, 1, dtype=torch.bool), big[:, :-1]], 1)).long()
    optim = torch.optim.Adam([p for p in tagger.parameters() if p.requires_grad], lr=0.03)
    for _ in range(30):
        optim.zero_grad()
        nn.functional.cross_entropy(tagger(x).flatten(0, 1), y.flatten()).backward()
        optim.step()
    assert all(p.grad is None for p in bert.parameters())
    assert all(torch.equal(v, before[k]) for k, v in bert.state_dict().items())
    with torch.no_grad():
        spelled = [[["O", "B-X"][k] for k in row] for row in tagger.eval()(x).argmax(-1).tolist()]
    assert thing_f1(spelled, [[["O", "B-X"][k] for k in row] for row in y.tolist()]) > 0.9
