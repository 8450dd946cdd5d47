from __future__ import annotations

import pytest
import torch

from descend.data.images import few_images
from descend.data.images.few_images import FewImages, board
from descend.errors import Mistake


def test_the_halves_share_colours_and_shapes_but_no_class() -> None:
    first, second = board("first"), board("second")
    assert len(first) == len(second) == 24
    assert not set(first) & set(second)
    for k in (0, 1):
        assert {pair[k] for pair in first} == {pair[k] for pair in second}
    with pytest.raises(Mistake, match=r"--data\.half third"):
        board("third")


def test_few_of_each(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(few_images, "SCENES", 480)
    whole, few = FewImages(each=0, size=12).read(), FewImages(each=3, size=12).read()
    assert len(few.labels) == 24
    assert few.labels[0] == "green circle"
    assert torch.bincount(few.train.y).tolist() == [3] * 24
    assert torch.equal(few.test.x, whole.test.x)
    assert len(whole.train.y) > 300
    with pytest.raises(Mistake, match=r"--data\.each -1"):
        FewImages(each=-1, size=12).read()
