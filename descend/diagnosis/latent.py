"""Checks on models with latent codes: a posterior that says nothing, from what the task measured.

KL(q(z|x) ‖ p(z))   nats that the code holds about its image; 0: the code is noise, and the decoder ignores it
"""

from __future__ import annotations

from descend.diagnosis.games import find_series, last_part
from descend.diagnosis.signs import Finding, Signs

NOTHING = 0.1  # nats of all units together


def detect_posterior_collapse(signs: Signs) -> Finding | None:
    """The code holds nearly nothing over the last quarter of the run."""
    kl = last_part(find_series(signs, "posterior_kl"), 0.25)
    if kl is None or kl > NOTHING:
        return None
    beta, variance = signs.value("bound.beta") or 0.0, signs.value("model.variance")
    changes = [signs.lower("bound.beta", 0.25)] if beta > 1 else []
    if signs.values.get("model.decoder") == "gaussian" and variance:
        changes.append(f"--model.variance {variance / 4:.2g}")
    changes.append(f"--bound.warmup {max(200, signs.steps // 4)}")
    return Finding(
        "posterior-collapse",
        "fault",
        f"the KL of the posterior has median {kl:.2g} nats over the last quarter of the run: the code is ignored",
        "q(z|x) = p(z): KL = 0. In a linear VAE a direction of variance λ collapses when β s² ≥ λ",
        ", or ".join(changes),
    )


LATENT = (detect_posterior_collapse,)
