"""Closed forms of window attention and Swin against counting."""

from __future__ import annotations

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from descend.models.swin import SIZES, SwinForImageClassification
from descend.nn.attention.shifted_window import sees
from descend.theory.window_cost import attention_macs, stages, swin_macs, window_macs, window_pairs


@pytest.mark.system("window-attention")
@pytest.mark.system("window-attention", "erratum")
@pytest.mark.parametrize(("height", "width", "window"), [(8, 12, 4), (7, 10, 4), (6, 6, 6)])
def test_pairs_are_those_of_the_mask(height: int, width: int, window: int) -> None:
    """Each position has M² keys (MF's erratum compares them with N², the total), on a map padded to whole windows."""
    whole = [-(-n // window) * window for n in (height, width)]
    assert window_pairs(height, width, window) == int(sees(*whole, window, 0).sum())
    if [height, width] == whole:
        assert window_pairs(height, width, window) == height * width * window**2


@pytest.mark.system("window-attention")
@pytest.mark.system("window-attention", "erratum")
@pytest.mark.system("swin")
@pytest.mark.system("swin", "cost")
def test_windows_are_linear_in_the_size_of_the_map() -> None:
    assert window_macs(112, 56, 96, 7) == 2 * window_macs(56, 56, 96, 7)
    assert attention_macs(112, 56, 96) > 3.5 * attention_macs(56, 56, 96)
    assert window_macs(14, 14, 32, 14) == attention_macs(14, 14, 32)  # one window is global attention
    assert swin_macs(448, 448, 96, (2, 2, 6, 2), 7) == 4 * swin_macs(224, 224, 96, (2, 2, 6, 2), 7)


@pytest.mark.system("swin")
@pytest.mark.system("swin", "cost")
@pytest.mark.parametrize("size", [(224, 224), (224, 448)])
def test_multiplications_of_swin_t_are_those_of_the_model(size: tuple[int, int]) -> None:
    """4.49 GMACs at 224, counted by torch on the model itself. (With padding the model saves its output products.)"""
    with torch.device("meta"), FlopCounterMode(display=False) as counter:
        SwinForImageClassification(SIZES["swin-tiny"]).eval()(torch.empty(1, 3, *size))
    assert counter.get_total_flops() == 2 * (swin_macs(*size, 96, (2, 2, 6, 2), 7) + 768 * 1000)


@pytest.mark.system("swin")
@pytest.mark.system("swin", "stages")
def test_stages_of_swin_t() -> None:
    found = stages(224, 224, 96, (2, 2, 6, 2), 7)
    known = [(56, 96, 64), (28, 192, 16), (14, 384, 4), (7, 768, 1)]
    assert [(s.height, s.channels, s.windows) for s in found] == known
    assert [s.windows for s in stages(480, 640, 96, (2, 2, 6, 2), 7)] == [18 * 23, 9 * 12, 5 * 6, 3 * 3]
