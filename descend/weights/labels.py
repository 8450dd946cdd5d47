"""The names of the classes, as config.json has them: {"id2label": {"0": "negative", "1": "positive"}}."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self


@dataclass(frozen=True)
class Labels:
    """Class k is called names[k]; two unnamed classes unless a file says otherwise."""

    names: tuple[str, ...] = ("LABEL_0", "LABEL_1")

    def __len__(self) -> int:
        return len(self.names)

    @classmethod
    def read(cls, values: dict[str, str]) -> Self:
        """From `id2label`; its numbers must be 0 .. k−1."""
        by_number = {int(number): str(name) for number, name in values.items()}
        if sorted(by_number) != list(range(len(by_number))):
            raise ValueError(f"id2label has the numbers {sorted(by_number)}, which are not 0..{len(by_number) - 1}")
        return cls(tuple(by_number[k] for k in range(len(by_number))))

    def write(self) -> dict[str, Any]:
        """As `id2label`."""
        return {str(k): name for k, name in enumerate(self.names)}


def label_numbers(id2label: dict[str, str]) -> dict[str, int]:
    """`label2id`, the other way round."""
    return {name: int(number) for number, name in id2label.items()}
