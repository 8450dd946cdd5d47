"""What is measured of the examples, against scipy and scikit-learn."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy.stats import entropy
from sklearn.neighbors import KNeighborsClassifier

from descend.data.streams.arrays import InOrder, Shuffled
from descend.diagnosis import examples as data
from descend.diagnosis.examples import Examples
from tests.close import close


def random(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def classes(n: int, seed: int = 0) -> Examples:
    x = torch.randn(n, 6, generator=random(seed))
    return Examples(x, (x[:, 0] + x[:, 1] > 0).long() + (x[:, 2] > 1).long(), torch.arange(n))


def test_an_epoch_is_drawn_and_the_stream_is_put_back() -> None:
    all_of_them = classes(50)
    stream = Shuffled({"x": all_of_them.x, "y": all_of_them.y}, batch=8, seed=1)
    next(stream)
    state = stream.state_dict()
    drawn = data.draw_epoch(stream)
    assert stream.state_dict() == state
    assert drawn is not None
    assert sorted(drawn.ids.tolist()) == list(range(50))
    order = drawn.ids.argsort()
    assert torch.equal(drawn.x[order], all_of_them.x)


def test_a_stream_without_x_and_y_is_left_alone() -> None:
    stream = Shuffled({"reward": torch.zeros(10)}, batch=5)
    assert data.draw_epoch(stream) is None
    assert data.take_valid(InOrder({"reward": torch.zeros(10)})) is None


def test_chance_is_the_entropy_of_the_classes() -> None:
    some = classes(200)
    close(data.loss_of_constant(some), entropy(np.bincount(some.y.numpy())))
    numbers = Examples(some.x, torch.randn(200, generator=random(1)), some.ids)
    close(data.loss_of_constant(numbers), numbers.y.double().var(correction=0))


def test_spoilt_examples_are_named() -> None:
    some = classes(10)
    some.x[3, 2], some.x[7, 0] = torch.nan, torch.inf
    assert data.find_spoilt(Examples(some.x, some.y, some.ids + 100)) == (103, 107)


@pytest.mark.parametrize("kind", ["numbers", "tokens"])
def test_shared_examples_are_counted(kind: str) -> None:
    if kind == "numbers":
        train, valid = classes(60), classes(20, seed=1)
    else:
        words = torch.randint(40, (80, 9), generator=random())
        train = Examples(words[:60, :-1], words[:60, 1:], torch.arange(60))
        valid = Examples(words[60:, :-1], words[60:, 1:], torch.arange(20))
    assert data.measure_overlap(train, valid) == (0.0, 0.0)
    copied = Examples(valid.x.clone(), valid.y.clone(), valid.ids)
    copied.x[:5], copied.y[:5] = train.x[30:35], train.y[30:35]
    close(data.measure_overlap(train, copied)[0], 0.25)
    twice = Examples(*(torch.cat([part, part[:6]]) for part in (train.x, train.y, train.ids)))
    close(data.measure_overlap(twice, valid)[1], 12 / 66)


def test_neighbours_are_those_of_scikit_learn() -> None:
    train, valid = classes(300), classes(80, seed=1)
    found = data.try_simple_method(train, valid, {"accuracy": 0.5, "loss": 1.0})
    oracle = KNeighborsClassifier(5).fit(train.x.numpy(), train.y.numpy())
    assert found is not None
    close(found.theirs, oracle.score(valid.x.numpy(), valid.y.numpy()))
    assert (found.score, found.ours) == ("accuracy", 0.5)


def test_pairs_of_tokens() -> None:
    """A chain in which each token has one successor is known from its pairs; at random they know nothing."""
    chain = torch.arange(400).remainder(10).view(20, 20)
    train = Examples(chain[:, :-1], chain[:, 1:], torch.arange(20))
    assert data.count_pairs(train, train) < 0.2
    noise = torch.randint(10, (200, 21), generator=random())
    halves = [Examples(part[:, :-1], part[:, 1:], torch.arange(100)) for part in noise.split(100)]
    assert 2.28 < data.count_pairs(*halves) < 2.40  # log 10 = 2.3026, and a little for counting only 2000 pairs


def test_a_column_that_tells_all() -> None:
    some = classes(200)
    x = torch.cat([some.x, some.y[:, None] * 2.0 - 0.3, torch.nn.functional.one_hot(some.y)], dim=1)
    columns = {**{f"c{j}": [j] for j in range(6)}, "answer": [6], "coded": [7, 8, 9]}
    shares = dict(data.rate_columns(Examples(x, some.y, some.ids), columns))
    close(shares.pop("answer"), 1.0)
    close(shares.pop("coded"), 1.0)
    assert max(shares.values()) < 0.9
    y = some.x[:, 0] ** 3
    shares = dict(data.rate_columns(Examples(some.x, y, some.ids), {f"c{j}": [j] for j in range(6)}))
    close(shares["c0"], 1.0)
    assert shares["c1"] < 0.2


def tokens_of(length: int, fields: tuple[str, ...] = ()) -> dict[str, torch.Tensor]:
    """A batch of two texts of this length, with a class each; their padding token is 7."""
    x = torch.arange(1, length + 1).repeat(2, 1)
    mask = torch.ones(2, length, dtype=torch.bool)
    mask[1, 2:], x[1, 2:] = False, 7
    return {"x": x, "mask": mask, "y": torch.tensor([0, 1]), "ids": torch.arange(2)} | dict.fromkeys(fields, x)


def test_batches_keep_their_fields_and_texts_of_any_length_are_compared() -> None:
    train, valid = (data.take_valid([tokens_of(n) for n in lengths]) for lengths in ((3, 6), (4, 3)))
    assert train is not None
    assert valid is not None
    assert train.x.shape == (4, 6)
    assert [set(batch) for batch in data.take_batches(train, 3)] == [{"x", "mask", "y", "ids"}] * 2
    assert len(list(data.take_batches(train, 2))) == 1
    # 1 2 3 is in both, and 1 2 with its padding; 1 2 3 4 only in the second.
    close(data.measure_overlap(train, valid)[0], 0.75)
    assert data.measure_overlap(train, replace(valid, y=1 - valid.y))[0] == 0


def test_only_places_that_are_judged_count() -> None:
    x, y = torch.tensor([[5, 6, 5, 6]]), torch.tensor([[0, 1, 2, 1]])
    at = torch.tensor([[False, True, False, True]])
    tagged = data.join([{"x": x, "y": y, "at": at}])
    assert tagged.tokens
    assert data.loss_of_constant(tagged) == 0  # only tag 1 is judged
    assert data.count_pairs(tagged, tagged) < data.count_pairs(replace(tagged, at=None), replace(tagged, at=None))


def test_a_loss_of_more_than_x_and_y_is_not_compared_with_chance() -> None:
    noisy = data.join([tokens_of(3, ("words",))])
    assert not noisy.classes
    assert data.loss_of_constant(noisy) is None
    assert data.loss_of_constant(data.join([tokens_of(3)])) is not None
