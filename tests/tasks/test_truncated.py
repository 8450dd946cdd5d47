"""Truncated BPTT as a task: the state is carried on, the gradient is not, and a resume is exact."""

from __future__ import annotations

import pytest
import torch

from descend.data.text.tracks import Tracks
from descend.models.lstm_lm import RecurrentLM, RecurrentLMConfig
from descend.tasks.truncated import TruncatedLanguage
from tests.close import close

TEXT = torch.randint(11, (700,), generator=torch.Generator().manual_seed(0))


def task(context: int = 6, tracks: int = 3) -> TruncatedLanguage:
    torch.manual_seed(0)
    return TruncatedLanguage(RecurrentLM(RecurrentLMConfig(11, context, 8)), tracks)


@pytest.mark.system("truncated-bptt")
@pytest.mark.system("truncated-bptt", "cut")
def test_windows_are_one_text_with_cut_gradients() -> None:
    one, stream = task(), Tracks(TEXT, 6, 3, seed=0)
    batches, losses = [next(stream) for _ in range(3)], []
    for batch in batches:
        for _, loss, _ in one.moves(batch):
            losses.append(loss())
            losses[-1].backward()
    ours = {name: p.grad.clone() for name, p in one.model.named_parameters()}
    one.zero_grad()
    whole = one.model(torch.cat([b["x"] for b in batches], dim=1))
    y = torch.cat([b["y"] for b in batches], dim=1)
    close(torch.stack(losses).mean(), torch.nn.functional.cross_entropy(whole.flatten(0, 1), y.flatten()))
    state = None  # the same gradients by autograd, with the state as a constant between windows
    for batch in batches:
        logits, state = one.model.carry(batch["x"], state)
        torch.nn.functional.cross_entropy(logits.flatten(0, 1), batch["y"].flatten()).backward()
        state = state.detach()
    for name, p in one.model.named_parameters():
        close(ours[name], p.grad)


@pytest.mark.system("truncated-bptt")
@pytest.mark.system("truncated-bptt", "full")
def test_one_window_is_full_bptt_and_fresh_tracks_start_at_0() -> None:
    one, stream = task(12), Tracks(TEXT, 12, 3, seed=0)
    batch = next(stream)
    one.state += 5  # left over from another epoch
    for _, loss, _ in one.moves(batch):
        value = loss()
    full = torch.nn.functional.cross_entropy(one.model(batch["x"]).flatten(0, 1), batch["y"].flatten())
    close(value, full)
    assert "state" in one.state_dict()
    assert one.score(batch)["loss"].shape == (36,)
