"""Checks on training whose loss need not fall: policies (PPO) and adversaries (GAN), from what the task measured.

approximate KL      E[r − 1 − log r],  r = π(a|s) / π_old(a|s):  how far the policy moved on one rollout
clip fraction       share of r outside 1 ± ε, whose gradient is cut to 0
explained variance  1 − Var(G − V) / Var(G):  1 is a perfect critic, 0 is the mean return, below is worse
D(x), D(G(z))       scores of real and generated examples, which meet at ½ when D cannot tell them apart
"""

from __future__ import annotations

from statistics import median

from descend.diagnosis.signs import Curve, Finding, Signs

FAR = 0.03  # KL of one rollout; 0.01 to 0.02 is usual
CUT = 0.3  # share of clipped ratios; 0.05 to 0.2 is usual
GONE = 0.05  # of the first entropy is left
SURE = 0.95  # D(x) above this and D(G(z)) below 1 − this: the discriminator has won
GROWN = 2.0  # times its start, the generator's loss at the end
FEW = 8  # values below which a series says nothing


def last_part(curve: Curve, share: float) -> float | None:
    """The median of the last share of a series; None for a short one."""
    if len(curve) < FEW:
        return None
    return median(value for _, value in curve[-max(2, round(share * len(curve))) :])


def find_series(signs: Signs, *names: str) -> Curve:
    """The first of the measured series that is there."""
    return next((signs.measured[name] for name in names if name in signs.measured), ())


def fewer_epochs(signs: Signs) -> str:
    """Half the passes over a rollout, where the recipe says how many."""
    epochs = signs.value("ppo.epochs")
    return f" or --ppo.epochs {max(1, round(epochs / 2))}" if epochs and epochs > 1 else ""


def detect_large_kl(signs: Signs) -> Finding | None:
    """The policy moves too far on each rollout, for half the run."""
    kl = last_part(find_series(signs, "approximate_kl", "kl"), 0.5)
    if kl is None or kl <= FAR:
        return None
    return Finding(
        "kl-too-large",
        "warning",
        f"the approximate KL of a rollout has median {kl:.3g} over the last half of the run (0.01 to 0.02 is usual)",
        "J(π) ≈ E_old[r A] holds only where KL(π_old ‖ π) is small; beyond it a better surrogate may be a worse policy",
        f"{signs.lower('optim.lr', 0.3)}{fewer_epochs(signs)}",
    )


def detect_clipping(signs: Signs) -> Finding | None:
    """Too many of the ratios are clipped: most of each rollout teaches nothing."""
    share = last_part(find_series(signs, "clip_fraction"), 0.5)
    if share is None or share <= CUT:
        return None
    return Finding(
        "clip-fraction-too-large",
        "warning",
        f"{share:.0%} of the probability ratios are clipped over the last half of the run (5% to 20% is usual)",
        "min(r A, clip(r, 1 − ε, 1 + ε) A): ∂/∂θ = 0 where the clip binds",
        f"{signs.lower('optim.lr', 0.3)}{fewer_epochs(signs)}",
    )


def detect_blind_critic(signs: Signs) -> Finding | None:
    """Late in training the critic predicts returns no better than their mean."""
    explained = last_part(find_series(signs, "explained_variance"), 0.25)
    if explained is None or explained > 0:
        return None
    weight = signs.value("ppo.value")
    larger = f"--ppo.value {2 * weight:g}" if weight else "a larger weight of the value loss"
    return Finding(
        "critic-explains-nothing",
        "warning",
        f"the explained variance has median {explained:.3g} over the last quarter of the run (a good critic has above "
        "0.5)",
        "1 − Var(G − V) / Var(G) ≤ 0: V predicts the return G no better than its mean, so A = G − V is mostly noise",
        f"{larger}, a longer --data.length, or {signs.lower('optim.lr', 0.3)}",
    )


def detect_entropy_collapse(signs: Signs) -> Finding | None:
    """The policy stopped exploring in the first half of the run."""
    entropy = find_series(signs, "entropy")
    if len(entropy) < FEW or min(value for _, value in entropy) < 0:  # a density's entropy has no zero to fall to
        return None
    first, middle = entropy[0][1], median(value for _, value in entropy[len(entropy) // 2 - 2 : len(entropy) // 2 + 2])
    end = last_part(entropy, 0.25) or 0.0
    if not (first > 0 and middle < GONE * first and end < GONE * first):
        return None
    bonus = signs.value("ppo.entropy")
    more = f"--ppo.entropy {max(0.01, 3 * (bonus or 0.0)):g}" if "ppo.entropy" in signs.values else "an entropy bonus"
    return Finding(
        "entropy-collapse",
        "warning",
        f"the policy's entropy fell from {first:.3g} to {middle:.2g} by the middle of the run and ended at {end:.2g}",
        "H(π) = −Σ_a π(a|s) log π(a|s) → 0: one action is left, and actions that are not tried are not learned about",
        f"{more}, or {signs.lower('optim.lr', 0.3)}",
    )


def detect_strong_discriminator(signs: Signs) -> Finding | None:
    """The discriminator tells real from generated without doubt, and the generator's loss grows."""
    real, fake = (last_part(find_series(signs, name), 0.25) for name in ("real_score", "fake_score"))
    losses = signs.players.get("g", ())
    end = last_part(losses, 0.25)
    if real is None or fake is None or end is None or real < SURE or fake > 1 - SURE:
        return None
    first = median(loss for _, loss in losses[: max(2, len(losses) // 10)])
    if end < GROWN * first:
        return None
    moves = signs.value("game.d_moves") or 1
    fewer = f", --game.d-moves {moves - 1:.0f}" if moves > 1 else ""
    return Finding(
        "discriminator-wins",
        "fault",
        f"D scores real examples {real:.2f} and generated ones {fake:.2g} over the last quarter of the run; the "
        f"generator's loss grew from {first:.3g} to {end:.3g}",
        "∂ log(1 − D(G(z))) / ∂θ_G = −D'/(1 − D) → 0 as D(G(z)) → 0: a discriminator that is certain gives no gradient",
        f"{signs.lower('optim.d.lr', 0.3)}{fewer}, or a larger generator",
    )


GAMES = (detect_large_kl, detect_clipping, detect_blind_critic, detect_entropy_collapse, detect_strong_discriminator)
