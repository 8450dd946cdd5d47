"""GPT-1's input transformations: every task becomes a row of tokens that ends in one and the same mark.

    classification   <s> text <e>
    entailment       <s> premise <$> hypothesis <e>
    similarity       <s> A <$> B <e>  and  <s> B <$> A <e>                both orders, read independently
    answers          <s> context question <$> answer_k <e>                one row for each answer k

The state of the last token <e> is what the task's layer reads (`descend.nn.finetuning`). DLN prints <$> alone; <s> and
<e> are the original paper's.

Systems: gpt-1
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

Tokens = Sequence[int]


@dataclass(frozen=True)
class Marks:
    """Three tokens that the vocabulary has for this purpose."""

    start: int
    between: int
    end: int

    def classification(self, text: Tokens) -> list[int]:
        return [self.start, *text, self.end]

    def entailment(self, premise: Tokens, hypothesis: Tokens) -> list[int]:
        return [self.start, *premise, self.between, *hypothesis, self.end]

    def similarity(self, a: Tokens, b: Tokens) -> tuple[list[int], list[int]]:
        """Both orders: the texts have none of their own."""
        return self.entailment(a, b), self.entailment(b, a)

    def answers(self, context: Tokens, question: Tokens, choices: Sequence[Tokens]) -> list[list[int]]:
        """One row for each answer."""
        return [self.entailment([*context, *question], choice) for choice in choices]
