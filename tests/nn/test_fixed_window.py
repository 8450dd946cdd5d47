"""Fixed windows: the table is the one-hot product, and what it cannot know or carry over."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from descend.nn.fixed_window import EmbeddedWindow, FlatClassifier, PlaceTable, WindowPredictor, input_size
from descend.nn.recurrent.heads import LastState
from descend.nn.recurrent.layers import Recurrent
from descend.ops.sequences import flat_one_hot
from tests.close import close


def fit(net: nn.Module, x: torch.Tensor, y: torch.Tensor, steps: int = 60) -> None:
    optimizer = torch.optim.Adam(net.parameters(), 0.03)
    for _ in range(steps):
        optimizer.zero_grad()
        nn.functional.cross_entropy(net(x), y).backward()
        optimizer.step()


@pytest.mark.system("fixed-window-models")
def test_the_table_is_the_one_hot_product() -> None:
    torch.manual_seed(0)
    table = PlaceTable(4, 7, 3)
    words = torch.randint(-1, 7, (5, 4))
    close(table(words), flat_one_hot(words, 7).float() @ table.weight + table.bias)
    assert input_size(100, 10_000) == 1_000_000


@pytest.mark.system("fixed-window-models")
@pytest.mark.parametrize("net", [lambda n: WindowPredictor(n, 6, 16), lambda n: EmbeddedWindow(n, 6, 4, 16)])
def test_what_is_outside_the_window_is_not_known(net: object) -> None:
    """Word 0 decides the answer, three words later: a window of 2 stays at chance, one of 4 learns it."""
    torch.manual_seed(0)
    x = torch.randint(2, 6, (400, 4))
    x[:, 0] = torch.arange(400) % 2
    y = x[:, 0]
    right = {}
    for n in (2, 4):
        model = net(n)  # type: ignore[operator]
        fit(model, x, y)
        right[n] = float((model(x).argmax(-1) == y).float().mean())
    assert right[2] < 0.65
    assert right[4] == 1
    assert torch.equal(model(x), model(x[:, -4:]))


@pytest.mark.system("fixed-window-models")
def test_no_transfer_between_positions() -> None:
    """A word seen in place 1 only is not recognised in place 2; a recurrent net knows it anywhere."""
    torch.manual_seed(0)
    good, bad, filler = 0, 1, 2
    x = torch.full((40, 4), filler)
    x[:, 0] = torch.arange(40) % 2
    y = x[:, 0].clone()
    moved = torch.full((2, 4), filler)
    moved[:, 1] = torch.tensor([good, bad])
    flat = FlatClassifier(4, 3, 16, 2)
    second_place = slice(3 + good, 3 + bad + 1)
    before = flat.table.weight.detach()[second_place].clone()
    fit(flat, x, y)
    assert torch.equal(flat(x).argmax(-1), y)
    assert torch.equal(flat.table.weight[second_place], before)  # what it says there is as it was drawn

    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.embed, self.layers, self.head = nn.Embedding(3, 8), Recurrent("gru", 8, 16), LastState(16, 2)

        def forward(self, words: torch.Tensor) -> torch.Tensor:
            h, state = self.layers(self.embed(words))
            out: torch.Tensor = self.head(h, state[0, -1], torch.full((len(words),), words.shape[1]))
            return out

    net = Net()
    fit(net, x, y)
    assert net(moved).argmax(-1).tolist() == [good, bad]


@pytest.mark.system("fixed-window-models", "rnn-unfolding")
def test_parameters_grow_with_the_window_only() -> None:
    def count(net: nn.Module) -> int:
        return sum(p.numel() for p in net.parameters())

    sizes = [count(WindowPredictor(n, 10, 8)) for n in (1, 2, 3)]
    assert sizes[2] - sizes[1] == sizes[1] - sizes[0] == 80
    net = Recurrent("rnn", 10, 8)
    before = count(net)
    assert net(torch.randn(1, 100, 10))[0].shape == (1, 100, 8)
    assert net(torch.randn(1, 1000, 10))[0].shape == (1, 1000, 8)
    assert count(net) == before


def test_a_short_text_is_refused() -> None:
    with pytest.raises(ValueError, match="1 words, but the window has 2"):
        WindowPredictor(2, 5, 4)(torch.zeros(1, 1, dtype=torch.long))
