"""The table of generators: what it says of figures that are known, and of predictions that fail."""

from __future__ import annotations

from typing import Any

from proofs.generators import ROWS, format_page, judge_predictions


def figures(fids: tuple[float, ...]) -> list[dict[str, Any]]:
    real = {"real_fid": 2.0, "real_kid": 0.0, "real_precision": 0.9, "real_recall": 0.9}
    shown = {"n": 500, "network": "lenet 0123", "kid": 0.1, "precision": 0.5, "recall": 0.4, "seconds": 3.0, **real}
    return [
        {**shown, "row": row.name, "run": row.run, "fid": value, "fid_ratio": value / 2}
        for row, value in zip(ROWS, fids, strict=False)
    ]


def test_predictions_are_judged_by_the_figures() -> None:
    good = judge_predictions(figures((10, 20, 12, 30, 40, 50, 9.5)))
    assert [holds for _, holds in good] == [True] * 4
    bad = judge_predictions(figures((20, 10, 30, 12, 15, 50, 9.5)))
    assert [holds for _, holds in bad] == [False] * 4


def test_the_page_has_every_row_and_says_what_is_small_about_it() -> None:
    training = dict.fromkeys(("ddpm", "flow", "vae", "dcgan"), 60.0)
    record = {"side": 16, "date": "today", "machine": "a core", "reader": 0.98, "training": training}
    page = format_page({**record, "rows": figures((10, 20, 12, 30, 40, 50, 9.5))})
    for row in ROWS:
        assert f"| {row.name} |" in page
    assert "| VAE | 40 | 20 |" in page
    assert "small table" in page
    assert "NO" not in page
    begun = format_page({**record, "side": 28, "rows": figures((10,))})
    assert "small table" not in begun
    assert "Predicted" not in begun
