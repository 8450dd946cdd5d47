"""Fine-tuning in figures: what copies of a model take on disk, and how the data compare with those of pre-training.

    L_fine = − Σ_{(x,y) in D_task} log P_θ(y | x),   θ from θ_pre          the SUM over pairs (VOM 13.6.1)
    storage of n tasks       full: n P bytes;   adapters: P bytes + n A bytes          P parameters, A of an adapter
    ratio of the data        tokens of pre-training / (examples · tokens of an example)

70 billion parameters of 2 bytes are 140 GB, and ten tasks 1.4 TB. Erratum: VOM compares 1 trillion *tokens* with 10,000
*examples* and calls it 100 to 10,000 times less data. In one unit it takes examples of 10⁶ to 10⁴ tokens for that; at
1,000 tokens each the ratio is 100,000.

Systems: fine-tuning-objective
"""

from __future__ import annotations

GIGA, TERA = 10**9, 10**12


def storage(parameters: float, bits: float = 16, tasks: int = 1) -> float:
    """Bytes of a copy of the model for every task."""
    return parameters * bits / 8 * tasks


def adapter_storage(parameters: float, adapter: float, bits: float = 16, tasks: int = 1) -> float:
    """Bytes of one model, and an adapter of so many parameters for every task."""
    return storage(parameters, bits) + storage(adapter, bits, tasks)


def data_ratio(pretraining_tokens: float, examples: float, tokens_per_example: float) -> float:
    """How many times more tokens pre-training saw."""
    return pretraining_tokens / (examples * tokens_per_example)


def tokens_for_ratio(pretraining_tokens: float, examples: float, ratio: float) -> float:
    """Tokens that each example must have for this ratio."""
    return pretraining_tokens / (examples * ratio)
