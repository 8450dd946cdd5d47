"""The map of words: every word a dot, names only where there is room."""

from __future__ import annotations

import pytest

from descend.report.words import draw_words, find_room


def test_every_word_is_a_dot_and_names_do_not_cover_each_other() -> None:
    html = draw_words({"words": ["cat", "<dog>", "cow"], "at": [[0, 0], [0.001, 0], [3, 3]]})
    assert html.count("<circle") == 3
    assert html.count("</text>") == 2
    assert "&lt;dog&gt;" in html
    assert find_room(["aa", "bb", "cc"], [(0, 0), (5, 3), (5, 40)]) == [True, False, True]
    with pytest.raises(ValueError, match="1 words at 2 places"):
        draw_words({"words": ["a"], "at": [[0, 0], [1, 1]]})
