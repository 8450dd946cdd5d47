"""A sample of `python -m proofs.fuzz_flags`: whatever is typed after a flag is accepted, or refused in one line."""

from __future__ import annotations

import pytest

from proofs.fuzz_flags import check_case, draw_cases

SEED = 1


@pytest.mark.parametrize("case", draw_cases(24, SEED), ids=lambda case: case[0])
def test_a_flag_is_accepted_or_refused_in_one_line(case: tuple[str, tuple[str, ...]]) -> None:
    found = check_case(case)
    assert found.kind != "fault", f"seed {SEED}: {case}: {found.said}"


@pytest.mark.parametrize(
    ("flag", "value"),
    [
        ("--ema", "2"), ("--clip", "nan"), ("--optim.lr", "inf"), ("--optim.weight-decay", "-1"),
        ("--schedule.floor", "nan"), ("--model.depth", "-1"), ("--patience", "-1"), ("--threads", "1000000"),
        ("--data.vocab", "1000000000000"), ("--model.width", "1000000000"), ("--model.depth", "1000000000"),
        ("--batch", "1000000000"), ("--steps", "1000000000000000000"), ("--optim.betas", "0.9 1"), ("--seed", "-1"),
        ("--model.hidden", "0"),
    ],
)  # fmt: skip
def test_nonsense_is_refused_by_its_name(flag: str, value: str) -> None:
    found = check_case(("gpt2-pydoc", (flag, *value.split())))
    assert found.kind == "refused"
    assert found.said.startswith(f"{flag} {value}: ")
