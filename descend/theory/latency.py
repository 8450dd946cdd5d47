"""The latency of a control loop: stages one after another, so their times add up.

    L = Σ_k l_k          f_max = 1 / L          slack at f Hz: 1/f − L

MF 30.5: 5 + 15 + 2 + 20 + 10 + 5 = 57 ms, 17.5 Hz (printed as about 17); at 10 Hz 43 ms are left. The six numbers are
given to the stages of the chain in its order: camera, detection, localisation, policy, kinematics, transmission.

    batches    latency = batch / throughput

MF 28.4.4 heads this column ms/img, an erratum: it is how long a whole batch takes, and every image of it waits so long.
The time for each image, 1 / throughput, falls with the batch (100 to 5 ms) while the latency rises (100 to 320 ms).

Systems: perception-control-pipeline, inference-optimization
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from descend.errors import Mistake

BOOK = MappingProxyType(
    {"camera": 5.0, "detection": 15.0, "localisation": 2.0, "policy": 20.0, "kinematics": 10.0, "transmission": 5.0}
)
"""Milliseconds of each stage in MF 30.5."""


@dataclass(frozen=True)
class Budget:
    """Milliseconds of each stage."""

    stages: Mapping[str, float]

    def __post_init__(self) -> None:
        if not self.stages:
            raise Mistake("a latency budget needs at least one stage")
        for name, took in self.stages.items():
            if not took >= 0:
                raise Mistake(f"stage {name}: {took} ms; a time cannot be below 0")

    @property
    def total(self) -> float:
        """L, in ms."""
        return sum(self.stages.values())

    @property
    def hertz(self) -> float:
        """The most that the loop can run in a second, if a step begins when the last one has ended."""
        return 1000 / self.total if self.total else float("inf")

    def slack(self, hertz: float) -> float:
        """Milliseconds that are left of a step at this frequency; below 0: it cannot be kept."""
        return 1000 / hertz - self.total

    def over(self, allowed: Mapping[str, float]) -> dict[str, float]:
        """By how many ms each stage is beyond what it is allowed."""
        return {name: took - allowed[name] for name, took in self.stages.items() if took > allowed.get(name, took)}


def batch_latency(batch: int, throughput: float) -> float:
    """Seconds that every input of a batch waits for its answer: batch / throughput."""
    if batch < 1 or not throughput > 0:
        raise Mistake(f"a batch of {batch} at {throughput} a second has no latency; both must be above 0")
    return batch / throughput


def throughput_gain(throughputs: Sequence[float]) -> list[float]:
    """How many times the first throughput each is."""
    return [rate / throughputs[0] for rate in throughputs]
