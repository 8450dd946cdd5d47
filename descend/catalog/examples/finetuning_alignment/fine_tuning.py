"""Worked examples of full fine-tuning: storage, and the data beside those of pre-training."""

from __future__ import annotations

from descend.catalog.examples import Compute, Inputs
from descend.theory.fine_tuning import GIGA, TERA, data_ratio, storage, tokens_for_ratio


def copies(i: Inputs) -> Inputs:
    one, all_tasks = (storage(i["params"], 8 * i["bytes"], n) for n in (1, i["tasks"]))
    return {"GB": one / GIGA, "TB_ten_tasks": all_tasks / TERA}


def ratio(i: Inputs) -> Inputs:
    tokens, examples = i["pretrain_tokens"], i["examples"]
    return {
        "tokens_per_example_needed_for_ratio_100_and_10000": [
            tokens_for_ratio(tokens, examples, r) for r in (1e2, 1e4)
        ],
        "ratio_at_1000_tokens_per_example": data_ratio(tokens, examples, 1000),
    }


EXAMPLES: dict[str, Compute] = {"VOM-13.6.1-data-ratio": ratio, "VOM-13.6.3-storage": copies}

SET_ASIDE: dict[str, str] = {}
