"""Checks on energies that are trained by samples of their own, from what the task measured.

E(x₊), E(x₋)     mean energies of data and of samples; the loss E(x₊) − E(x₋) stays near 0 as long as the chains
                 follow the model. Where they do not, the gap grows without end: the energy of samples is pushed up
                 faster than they can leave, or they leave for where nothing holds them
"""

from __future__ import annotations

from statistics import median

from descend.diagnosis.games import find_series, last_part
from descend.diagnosis.signs import Finding, Signs

WIDE = 20.0  # nats between data and samples at the end; below 1 is usual
GROWN = 10.0  # times the gap of the first tenth


def detect_exploding_energies(signs: Signs) -> Finding | None:
    """The energies of data and samples part, and the gap grows."""
    data, samples = (dict(find_series(signs, name)) for name in ("data_energy", "sample_energy"))
    gaps = tuple((step, abs(samples[step] - value)) for step, value in data.items() if step in samples)
    end = last_part(gaps, 0.25)
    if end is None or end < WIDE:
        return None
    first = median(gap for _, gap in gaps[: max(2, len(gaps) // 10)])
    if end < GROWN * first:
        return None
    size = signs.value("divergence.size")
    hold = f", --divergence.size {max(0.001, 10 * size):g}" if size is not None else ""
    shorter = f", {signs.lower('divergence.eta', 0.5)}" if signs.value("divergence.eta") else ""
    return Finding(
        "exploding-energies",
        "fault",
        f"the energies of data and samples differ by {end:.3g} over the last quarter of the run ({first:.3g} at first; "
        "below 1 is usual)",
        "∂L/∂θ = ∂E(x₊)/∂θ − ∂E(x₋)/∂θ is the likelihood's gradient only while x₋ are samples of e^−E/Z; chains that "
        "cannot follow make it grow without bound",
        f"{signs.lower('optim.lr', 0.3)}{shorter}{hold}, and --clip 1",
    )


ENERGIES = (detect_exploding_energies,)
