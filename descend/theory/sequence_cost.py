"""RNN, LSTM and attention side by side: paths, steps that wait for each other, and multiplications.

    between positions i and j     RNN, LSTM: |i − j| steps (n − 1 from first to last)       attention: 1
    steps in a row, length n      RNN, LSTM: n                                              attention: 1
    one layer, n positions        RNN: n d²     LSTM: 4 n d²                                attention: n² d
    RNN and attention cost the same at n = d; below it attention is the cheaper one
    with its four projections attention is n² d + 4 n d²;  a step with input d_x: d_h² + d_h d_x, LSTM four times that

Counted are multiplications of one direction; MF 21.4 leaves the input part d_h d_x out of its table. MF 15.6.4 says
O(log n) or O(1) steps for a transformer layer: matrix products are 1 step here, their sums inside would be log n on a
machine with a processor for every product. VOM's table has O(n) for the path of the RNN; it is n − 1.

Systems: sequence-architecture-comparison
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Architecture:
    """What a layer of n positions and width d costs, as coefficients of the laws above."""

    name: str
    recurrent: bool
    per_step: int  # multiples of d² for each position
    per_pair: int  # multiples of d for each pair of positions

    def path(self, start: int, end: int) -> int:
        """Steps that a signal takes from one position to another."""
        return abs(end - start) if self.recurrent else min(1, abs(end - start))

    def steps(self, n: int) -> int:
        """Steps that wait for each other."""
        return n if self.recurrent else 1

    def multiplications(self, n: int, width: int) -> int:
        """One layer's mixing of positions, in one pass forward."""
        return self.per_step * n * width**2 + self.per_pair * n**2 * width


RNN = Architecture("rnn", recurrent=True, per_step=1, per_pair=0)
LSTM = Architecture("lstm", recurrent=True, per_step=4, per_pair=0)
ATTENTION = Architecture("attention", recurrent=False, per_step=0, per_pair=1)


def crossover(width: int) -> int:
    """The length n at which n² d = n d²: n = d."""
    return width


def step_multiplications(inputs: int, hidden: int, gates: int = 1) -> int:
    """gates (d_h² + d_h d_x): one step of an RNN, or with 4 gates of an LSTM."""
    return gates * (recurrent_multiplications(hidden) + hidden * inputs)


def recurrent_multiplications(hidden: int) -> int:
    """d_h²: the recurrent part alone."""
    return hidden**2
