"""Teacher forcing: one pass for all prefixes, padding, exact match; scheduled sampling: its rate and its two passes."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import pytest
import torch
from torch import Tensor, nn

from descend.data.text.spans import CorruptedWindows, SpanCorruption
from descend.models.t5 import T5, T5Config
from descend.models.transformer import Transformer, TransformerConfig
from descend.ops.teacher_forcing import ExponentialDecay, InverseSigmoidDecay, LinearDecay, mix_tokens, shift_right
from descend.sampling.generate import generate
from descend.tasks.sequence_to_sequence import ScheduledSampling, SequenceToSequence
from tests.close import close

PAD, START = 0, 0
FORCING, SAMPLING = "teacher-forcing", "scheduled-sampling"


def tiny(dropout: float = 0.0) -> Transformer:
    torch.manual_seed(0)
    return Transformer(TransformerConfig(vocab=20, width=16, depth=1, heads=2, hidden=32, dropout=dropout))


def batch(seed: int = 1, n: int = 6) -> dict[str, Tensor]:
    random = torch.Generator().manual_seed(seed)
    x, y = torch.randint(2, 20, (n, 7), generator=random), torch.randint(2, 20, (n, 6), generator=random)
    lengths = torch.randint(2, 7, (n, 1), generator=random)
    return {"x": x * (torch.arange(7) <= lengths), "y": y * (torch.arange(6) < lengths)}


def loss_of(task: SequenceToSequence, given: dict[str, Tensor]) -> Tensor:
    (_, loss, _), *_ = task.moves(given)
    return loss()


@pytest.mark.system(FORCING, "shift")
@pytest.mark.system(FORCING)
def test_the_target_moved_right() -> None:
    y = torch.tensor([[5, 6, 7, 1, 0, 0]])
    assert shift_right(y, 9).tolist() == [[9, 5, 6, 7, 1, 0]]
    assert mix_tokens(y, y + 10, 9, torch.tensor([[True, False, True, False, True, True]])).tolist() == [
        [9, 5, 16, 7, 11, 0]
    ]


@pytest.mark.system("padding-mask", "loss")
@pytest.mark.system(FORCING, "parallel")
@pytest.mark.system(FORCING)
@pytest.mark.system("span-corruption")
@pytest.mark.system("span-corruption", "sum")
def test_one_pass_is_a_pass_for_every_prefix() -> None:
    """The sum over the target, the mean over examples; padding counts for nothing."""
    model, given = tiny().double().eval(), batch()
    total = 0.0
    for x, y in zip(given["x"], given["y"], strict=True):
        x, y = x[x != PAD], y[y != PAD]
        for s in range(len(y)):
            prefix = torch.cat([torch.tensor([START]), y[:s]])
            total -= float(model(x[None], prefix[None])[0, -1].log_softmax(-1)[y[s]].detach())
    task = SequenceToSequence(model, PAD, START)
    close(loss_of(task, given), torch.tensor(total / len(given["y"]), dtype=torch.float64))


@pytest.mark.system("span-corruption")
@pytest.mark.system("span-corruption", "sum")
def test_the_gradient_at_the_logits_is_p_minus_one_hot() -> None:
    """MF 36.5.4: ∂L/∂z_s = p_s − onehot(y_s), here over the number of examples."""
    given = batch(n=2)
    logits = torch.randn(2, 6, 20, dtype=torch.float64, requires_grad=True)
    task = SequenceToSequence(Fixed(logits), PAD, START)
    loss_of(task, given).backward()
    real = (given["y"] != PAD)[..., None]
    one_hot = nn.functional.one_hot(given["y"], 20)
    close(logits.grad, (logits.softmax(-1) - one_hot) * real / 2)


class Fixed(nn.Module):
    """A model that says the same whatever it reads."""

    def __init__(self, logits: Tensor):
        super().__init__()
        self.say = logits

    def forward(self, x: Tensor, y: Tensor, mask: Tensor) -> Tensor:
        return self.say


@pytest.mark.system(FORCING)
def test_slices_of_a_batch_add_up() -> None:
    task, given = SequenceToSequence(tiny(), PAD, START, smoothing=0.1), batch()
    halves = [{k: v[part] for k, v in given.items()} for part in (slice(0, 3), slice(3, 6))]
    close(torch.stack([loss_of(task, half) for half in halves]).mean(), loss_of(task, given))


@pytest.mark.system(FORCING)
def test_exact_match_without_writing() -> None:
    """What a trained model would write greedily, and what the score says of it."""
    torch.manual_seed(0)
    model = T5(T5Config(20, 16, 1, 1, 2, 8, 32, dropout=0.0))
    task, given = SequenceToSequence(model, PAD, START), batch(n=12)
    given["y"] = nn.functional.pad(given["y"], (0, 1))
    ends = (given["y"] != PAD).sum(1)
    given["y"][torch.arange(12), ends] = 1
    optimizer = torch.optim.Adam(model.parameters(), 5e-3)
    for _ in range(45):
        optimizer.zero_grad()
        loss_of(task, given).backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        exact = task.score(given)["exact"].tolist()
    found = generate(model.decoder(given["x"], given["x"] != PAD), [[START]] * 12, 7, stop=[1])
    right = [row == y[: len(row)].tolist() and row[-1] == 1 for row, y in zip(found, given["y"], strict=True)]
    assert exact == [float(r) for r in right]
    assert 0 < sum(right) < 12


@pytest.mark.system(SAMPLING, "forcing")
@pytest.mark.system(SAMPLING)
def test_with_probability_one_it_is_teacher_forcing() -> None:
    model, given = tiny(), batch()
    always = ScheduledSampling(model, PAD, START, LinearDecay(steps=10, floor=1.0))
    assert torch.equal(loss_of(always, given), loss_of(SequenceToSequence(model, PAD, START), given))


@pytest.mark.system(SAMPLING, "rate")
@pytest.mark.system(SAMPLING)
def test_the_rate_follows_the_schedule() -> None:
    model, given = tiny().eval(), batch(n=3000)
    task = ScheduledSampling(model, PAD, START, LinearDecay(steps=4))
    with torch.no_grad():
        own = task.logits(given["x"], shift_right(given["y"], START)).argmax(-1)
    differ = shift_right(own, START) != shift_right(given["y"], START)
    for t in range(5):
        torch.manual_seed(t)
        assert int(task.step) == t
        read = task.mixture(given["x"], given["y"], task.forcing(t))
        replaced = (read != shift_right(given["y"], START))[differ].float().mean().item()
        assert replaced == pytest.approx(t / 4, abs=0.02)
        assert torch.equal(read[~differ], shift_right(given["y"], START)[~differ])
        for _ in task.moves(given):
            pass
    assert (read[:, 0] == START).all()


@pytest.mark.system(SAMPLING, "two-passes")
@pytest.mark.system(SAMPLING)
def test_the_words_of_the_first_pass_are_read_by_the_second() -> None:
    """Probability 0: every word is the model's own, without a gradient through the choice."""
    model, given = tiny().eval(), batch()
    task = ScheduledSampling(model, PAD, START, LinearDecay(steps=1))
    task.step.fill_(1)
    own = model(given["x"], shift_right(given["y"], START), given["x"] != PAD).argmax(-1)
    expected = task.loss(given, shift_right(own, START))
    close(loss_of(task, given), expected)
    assert task.state_dict()["step"] == 2  # saved with the task, so that a resume continues


@pytest.mark.system(SAMPLING, "schedules")
@pytest.mark.system(SAMPLING)
@pytest.mark.parametrize("forcing", [LinearDecay(100, 0.1), ExponentialDecay(0.97), InverseSigmoidDecay(20.0)])
def test_schedules_fall_from_one(forcing: Callable[[int], float]) -> None:
    p = [forcing(t) for t in range(0, 400, 5)]
    assert p[0] > 0.94
    assert all(a >= b for a, b in pairwise(p))
    assert 0 <= p[-1] <= 0.1
    assert InverseSigmoidDecay(1.0)(10**6) >= 0


@pytest.mark.system(SAMPLING, "trains")
@pytest.mark.system(SAMPLING)
def test_trains() -> None:
    model, given = tiny(), batch()
    task = ScheduledSampling(model, PAD, START, LinearDecay(steps=60, floor=0.2))
    optimizer, losses = torch.optim.Adam(model.parameters(), 1e-2), []
    for _ in range(60):
        for _, loss, _ in task.moves(given):
            value = loss()
            optimizer.zero_grad()
            value.backward()
            optimizer.step()
            losses.append(float(value.detach()))
    assert losses[-1] < 0.3 * losses[0]


@pytest.mark.system("span-corruption")
@pytest.mark.system("span-corruption", "pre-trained")
@pytest.mark.system("t5")
def test_a_t5_learns_from_raw_text() -> None:
    """The denoising loss of a repeating text falls."""
    torch.manual_seed(0)
    text = (torch.arange(2000) % 7) + 2
    stream = CorruptedWindows(text, 16, 16, seed=0, first=19, end=1, corruption=SpanCorruption(0.25, 2.0))
    task = SequenceToSequence(T5(T5Config(20, 32, 1, 1, 2, 16, 64, dropout=0.0)), PAD, START)
    optimizer, losses = torch.optim.Adam(task.parameters(), 5e-3), []
    for _ in range(50):
        loss = loss_of(task, next(stream))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(float(loss.detach()))
    assert sum(losses[-5:]) < 0.5 * sum(losses[:5])
