"""The closed form of the best policy near a reference, against search, limits and samples."""

from __future__ import annotations

import pytest
import torch

from descend.theory.regularised_policy import (
    best_policy,
    expect,
    implied_reward,
    kl_to_reference,
    log_partition,
    regularised_value,
    rlhf_loss,
    sampled_value,
)
from tests.close import close


def draw(seed: int = 0, prompts: int = 3, responses: int = 7) -> tuple[torch.Tensor, torch.Tensor]:
    random = torch.Generator().manual_seed(seed)
    log_ref = torch.randn(prompts, responses, generator=random, dtype=torch.float64).log_softmax(-1)
    return log_ref, torch.randn(prompts, responses, generator=random, dtype=torch.float64)


@pytest.mark.system("kl-regularised-objective")
@pytest.mark.parametrize("beta", [0.05, 0.7, 10.0])
def test_a_search_over_all_policies_finds_the_closed_form(beta: float) -> None:
    log_ref, r = draw()
    logits = torch.zeros_like(log_ref, requires_grad=True)
    search = torch.optim.LBFGS(
        [logits], max_iter=500, tolerance_grad=1e-12, tolerance_change=1e-16, line_search_fn="strong_wolfe"
    )

    def loss() -> torch.Tensor:
        search.zero_grad()
        value = -regularised_value(logits.log_softmax(-1), log_ref, r, beta).sum()
        value.backward()
        return value

    search.step(loss)
    found = logits.detach().log_softmax(-1)
    best = best_policy(log_ref, r, beta)
    assert float(kl_to_reference(found, best).max()) < 1e-7
    close(regularised_value(best, log_ref, r, beta), beta * log_partition(log_ref, r, beta))
    close(best.exp().sum(-1), torch.ones(3, dtype=torch.float64))


@pytest.mark.system("kl-regularised-objective", "optimum")
def test_every_policy_lies_below_the_optimum_by_beta_times_its_divergence() -> None:
    """J(π) = β log Z − β KL(π ‖ π*), which proves the optimum and that it is the only one."""
    log_ref, r = draw()
    for seed in range(20):
        pi = 3 * draw(seed + 1)[0].roll(1, 0)
        pi = pi.log_softmax(-1)
        expected = 0.4 * log_partition(log_ref, r, 0.4) - 0.4 * kl_to_reference(pi, best_policy(log_ref, r, 0.4))
        close(regularised_value(pi, log_ref, r, 0.4), expected)
    back = implied_reward(best_policy(log_ref, r, 0.4), log_ref, 0.4)
    close(back - back[:, :1], r - r[:, :1])


@pytest.mark.system("kl-regularised-objective", "weight-on-the-reward")
def test_lambda_on_the_reward_is_one_over_beta() -> None:
    log_ref, r = draw()
    pi = draw(5)[0]
    for lam in (0.2, 1.0, 30.0):
        close(rlhf_loss(pi, log_ref, r, lam), -lam * regularised_value(pi, log_ref, r, 1 / lam))
        best = best_policy(log_ref, r, 1 / lam)
        close(rlhf_loss(best, log_ref, r, lam), -log_partition(log_ref, r, 1 / lam))
    close(rlhf_loss(log_ref, log_ref, r, 0.0) + 1, torch.ones(3, dtype=torch.float64))
    tight, loose = (kl_to_reference(best_policy(log_ref, r, 1 / lam), log_ref) for lam in (0.5, 5.0))
    assert (loose > tight).all()  # a LARGER λ leaves the reference further


@pytest.mark.system("kl-regularised-objective", "limits")
def test_a_dear_reference_stays_and_a_cheap_one_is_left_for_the_best_responses() -> None:
    log_ref, r = draw()
    assert float((best_policy(log_ref, r, 1e7) - log_ref).abs().max()) < 1e-6
    close(1e4 * log_partition(log_ref, r, 1e4), expect(log_ref, r), loosen=1e6)  # up to Var_ref(r) / 2β
    r[:, 2] = r[:, 5] = 9.0  # two best responses share in the reference's proportions
    best = best_policy(log_ref, r, 1e-2).exp()
    close(best[:, [2, 5]], log_ref[:, [2, 5]].softmax(-1))
    close(regularised_value(best.log(), log_ref, r, 1e-6), torch.full((3,), 9.0, dtype=torch.float64), loosen=1e3)
    impossible = log_ref.clone()
    impossible[:, 2] = -torch.inf  # what the reference never says is never said
    assert bool((best_policy(impossible.log_softmax(-1), r, 1e-2)[:, 2] == -torch.inf).all())
    sweep = [float(kl_to_reference(best_policy(log_ref, r, beta), log_ref).sum()) for beta in (0.1, 0.3, 1.0, 3.0)]
    assert sweep == sorted(sweep, reverse=True)


@pytest.mark.system("kl-regularised-objective", "monte-carlo")
def test_samples_estimate_the_objective_and_the_divergence() -> None:
    log_ref, r = draw()
    pi, beta = draw(5)[0], 0.3
    drawn = torch.multinomial(pi.exp(), 100_000, replacement=True, generator=torch.Generator().manual_seed(0))
    ratio = (pi - log_ref).gather(1, drawn)
    value, kl = sampled_value(r.gather(1, drawn), ratio, beta)
    assert float((value - regularised_value(pi, log_ref, r, beta)).abs().max()) < 0.02
    assert float((kl - kl_to_reference(pi, log_ref)).abs().max()) < 0.02
