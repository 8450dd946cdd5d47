"""Fixed windows: the table is the one-hot product, and what it cannot know or carry over."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from descend.nn.fixed_window import EmbeddedWindow, FlatClassifier, PlaceTable, WindowPredictor, input_size
from descend.nn.recurrent.heads import LastState
from descend.nn.recurrent.layers import Recurrent
from descend.ops.sequences import flat_one_hot, windows
from tests.close import close


def fit(net: nn.Module, x: torch.Tensor, y: torch.Tensor, steps: int = 60) -> None:
    optimizer = torch.optim.Adam(net.parameters(), 0.03)
    for _ in range(steps):
        optimizer.zero_grad()
        nn.functional.cross_entropy(net(x), y).backward()
        optimizer.step()


class Reader(nn.Module):
    """Words (b, t) -> logits, from the last state of a GRU."""

    def __init__(self, vocab: int, width: int, classes: int) -> None:
        super().__init__()
        self.embed, self.layers = nn.Embedding(vocab, 8), Recurrent("gru", 8, width)
        self.head = LastState(width, classes)

    def forward(self, words: torch.Tensor) -> torch.Tensor:
        h, state = self.layers(self.embed(words))
        out: torch.Tensor = self.head(h, state[0, -1], torch.full((len(words),), words.shape[1]))
        return out


@pytest.mark.system("fixed-window-models")
@pytest.mark.system("fixed-window-models", "one-hot", "flat")
def test_the_table_is_the_one_hot_product() -> None:
    torch.manual_seed(0)
    table = PlaceTable(4, 7, 3)
    words = torch.randint(-1, 7, (5, 4))
    close(table(words), flat_one_hot(words, 7).float() @ table.weight + table.bias)
    assert input_size(100, 10_000) == 1_000_000


@pytest.mark.system("fixed-window-models")
@pytest.mark.system("fixed-window-models", "beyond")
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
@pytest.mark.system("fixed-window-models", "no-transfer")
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

    net = Reader(3, 16, 2)
    fit(net, x, y)
    assert net(moved).argmax(-1).tolist() == [good, bad]


@pytest.mark.system("fixed-window-models")
@pytest.mark.system("fixed-window-models", "growth")
@pytest.mark.system("rnn-unfolding")
@pytest.mark.system("rnn-unfolding", "lengths")
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


@pytest.mark.system("fixed-window-models", "text")
def test_the_next_word_of_a_text() -> None:
    """Two words decide the third in this sentence; one word does not ("a" comes before "cat" and before "walk")."""
    text = ["a", "cat", "took", "me", "for", "a", "walk", "and", "a", "dog", "took", "my", "cat", "for", "a", "swim"]
    names = sorted(set(text))
    ids = torch.tensor([names.index(word) for word in text])
    right = {}
    for n in (1, 3):
        torch.manual_seed(0)
        x, y = windows(ids, n)
        net = WindowPredictor(n, len(names), 32)
        fit(net, x, y, 80)
        right[n] = float((net(x).argmax(-1) == y).float().mean())
    assert right[3] == 1
    assert right[1] < 0.8


@pytest.mark.system("fixed-window-models", "transfer-gap")
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_a_pattern_at_a_new_place(seed: int) -> None:
    """Two letters in a row are one of four patterns, in places 0 to 6 when training and 8 to 14 when tested."""
    torch.manual_seed(seed)
    patterns = torch.tensor([[0, 1], [1, 0], [2, 3], [3, 2]])

    def draw(n: int, first: int, last: int) -> tuple[torch.Tensor, torch.Tensor]:
        x, y = torch.full((n, 16), 4), torch.randint(4, (n,))
        at = torch.randint(first, last + 1, (n,))
        for k in range(2):
            x[torch.arange(n), at + k] = patterns[y, k]
        return x, y

    right = {}
    for name, net in (("window", FlatClassifier(16, 5, 32, 4)), ("recurrent", Reader(5, 16, 4))):
        fit(net, *draw(200, 0, 6), 100)
        x, y = draw(400, 8, 14)
        right[name] = float((net(x).argmax(-1) == y).float().mean())
    assert right["window"] < 0.55
    assert right["recurrent"] > 0.9
