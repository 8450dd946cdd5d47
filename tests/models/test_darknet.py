"""Darknet's files against OpenCV's dnn module, which reads them by itself: random weights, the same outputs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch

from descend.errors import Mistake
from descend.models._darknet_layouts import (
    describe_tiny_v3,
    describe_tiny_v4,
    describe_yolo_v2,
    fill_from_darknet,
    to_darknet,
)
from descend.models.darknet import TINY, Darknet, DarknetConfig, read_darknet, write_darknet
from descend.models.yolo_v3 import SIZES as V3
from descend.models.yolo_v3 import YoloV3, YoloV3Config
from descend.models.yolo_v4 import SIZES as V4
from descend.models.yolo_v4 import YoloV4, YoloV4Config
from descend.ops.boxes import to_centre
from descend.weights.darknet import format_cfg, parse_cfg
from descend.weights.labels import Labels
from tests.close import close
from tests.nn.convolution.test_folding import stir

cv2 = pytest.importorskip("cv2")
NAMES = Labels(("a", "b", "c"))
PAIRS = (10.0, 14.0, 23.0, 27.0, 37.0, 58.0, 40.0, 40.0, 60.0, 30.0, 50.0, 60.0)
SIX = {"anchors": PAIRS, "labels": NAMES}
SMALL3 = YoloV3Config(stem=4, widths=(4, 6, 8, 12, 16), depths=(1, 2, 1, 1, 1), **SIX)  # type: ignore[arg-type]
SMALL4 = YoloV4Config(stem=4, widths=(4, 6, 8, 12, 16), depths=(1, 2, 1, 1, 1), **SIX)  # type: ignore[arg-type]


def sections(describe: Callable[..., list], anchors: tuple[float, ...]) -> Darknet:  # type: ignore[type-arg]
    return Darknet(DarknetConfig(format_cfg(describe(64, 3, anchors, 1 / 16))))


NETWORKS: dict[str, Callable[[], Darknet]] = {
    "yolo-v2": lambda: sections(describe_yolo_v2, (0.6, 0.7, 1.9, 2.1, 1.3, 2.5)),
    "yolo-v3": lambda: to_darknet(YoloV3(SMALL3), 64),
    "yolo-v3-tiny": lambda: sections(describe_tiny_v3, PAIRS),
    "yolo-v4": lambda: to_darknet(YoloV4(SMALL4), 64),
    "yolo-v4-tiny": lambda: sections(describe_tiny_v4, PAIRS),
}
PROVES = {"yolo-v3": [("yolo-v3", "darknet-files")], "yolo-v4": [("yolo-v4-v5", "darknet-files")]}
PROVES["yolo-v4"].append(("csp-block-and-darknet", "published"))
CASES = [pytest.param(name, marks=[pytest.mark.system(*pair) for pair in PROVES.get(name, [])]) for name in NETWORKS]


def run_opencv(cfg: Path, weights: Path, x: torch.Tensor) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """The maps before each head and the rows behind it: x, y, w, h as shares, objectness, scores."""
    net = cv2.dnn.readNetFromDarknet(str(cfg), str(weights))
    net.setPreferableBackend(cv2.dnn.DNN_BACKEND_OPENCV)
    names = list(net.getLayerNames())
    heads = [name for name in names if name.startswith(("yolo_", "detection_out"))] or [names[-1]]
    before = [f"conv_{int(name.rpartition('_')[2]) - 1}" for name in heads if name.startswith("yolo_")]
    before = before or [[name for name in names if name.startswith("conv_")][-1]]
    net.setInput(x.numpy())
    found = net.forward([*before, *heads])
    return list(found[: len(before)]), list(found[len(before) :])


@pytest.mark.parametrize("name", CASES)
def test_equal_to_opencv(name: str, tmp_path: Path) -> None:
    """Random weights written, read by OpenCV: the maps before the heads, the boxes and the scores to 1e-4."""
    torch.manual_seed(0)
    model = stir(NETWORKS[name]())
    assert isinstance(model, Darknet)
    for layer in model.modules():
        if isinstance(layer, torch.nn.Conv2d) and layer.bias is not None:
            torch.nn.init.normal_(layer.weight, std=0.3)  # heads begin near 0, and would say nothing
            torch.nn.init.normal_(layer.bias, std=0.5)
    x = torch.rand(1, 3, 64, 64)
    cfg, weights = write_darknet(model, tmp_path)
    maps, rows = run_opencv(cfg, weights, x)
    with torch.no_grad():
        outputs, found = model.outputs(x), model(x)
    for ours, theirs in zip([outputs[i] for i in model.heads], maps, strict=True):
        close(ours, torch.from_numpy(theirs), loosen=5)  # 1e-4
    theirs = torch.from_numpy(np.concatenate([row.reshape(-1, 8) for row in rows]))
    close(to_centre(found.boxes[0]) / 64, theirs[:, :4], loosen=5)
    close(found.objectness[0].sigmoid(), theirs[:, 4], loosen=5)
    scores = found.objectness[0].sigmoid()[:, None] * model.probabilities(found.logits[0])
    told = theirs[:, 5:] > 0  # OpenCV leaves out scores below its threshold
    assert int(told.sum()) > 10
    close(scores[told], theirs[:, 5:][told], loosen=5)
    again = read_darknet(cfg, weights)
    assert all(torch.equal(a, b) for a, b in zip(again.tensors(), model.tensors(), strict=True))
    for a, b in zip(again(x), found, strict=True):
        assert torch.equal(a, b)


@pytest.mark.system("yolo-v3", "darknet-files")
@pytest.mark.system("yolo-v4-v5", "darknet-files")
@pytest.mark.parametrize(("kind", "config"), [(YoloV3, SMALL3), (YoloV4, SMALL4)])
def test_the_readable_model_is_the_network_of_the_files(kind: type, config: object, tmp_path: Path) -> None:
    """Written and read back into a new model: the same numbers; and what it finds is what the network finds."""
    torch.manual_seed(0)
    model = stir(kind(config))
    network = to_darknet(model, 64).eval()
    x = torch.rand(2, 3, 64, 64)
    with torch.no_grad():
        ours = sorted(model(x).boxes.sum(dim=-1).flatten().tolist())
        theirs = sorted(network(x).boxes.sum(dim=-1).flatten().tolist())
    close(ours, theirs, loosen=10)  # ε of the batch norms: 1e-5 here, 1e-6 there
    fresh = kind(config)
    fill_from_darknet(fresh, read_darknet(*write_darknet(network, tmp_path)))
    for (name, a), b in zip(model.state_dict().items(), fresh.state_dict().values(), strict=True):
        if not name.endswith("num_batches_tracked"):
            assert torch.equal(a, b), name


@pytest.mark.parametrize(
    ("make", "count"),
    [
        (lambda: to_darknet(YoloV3(V3["yolo-v3"])), 61_949_149),
        (lambda: to_darknet(YoloV4(V4["yolo-v4"])), 64_363_101),
        (lambda: Darknet(DarknetConfig(format_cfg(describe_yolo_v2(416, 80, (1.0,) * 10)))), 50_962_889),
        (lambda: Darknet(DarknetConfig(format_cfg(describe_tiny_v3(416, 80, (1.0,) * 12)))), 8_852_366),
        (lambda: Darknet(DarknetConfig(format_cfg(describe_tiny_v4(416, 80, (1.0,) * 12)))), 6_056_606),
    ],
    ids=["v3", "v4", "v2", "v3-tiny", "v4-tiny"],
)
def test_published_layouts(make: Callable[[], Darknet], count: int) -> None:
    with torch.device("meta"):
        assert sum(p.numel() for p in make().parameters()) == count


def test_old_headers_and_counts(tmp_path: Path) -> None:
    torch.manual_seed(0)
    model = Darknet(TINY)
    cfg, weights = write_darknet(model, tmp_path, seen=12345)
    data = weights.read_bytes()
    old = np.array([0, 1, 0, 77], "<i4").tobytes() + data[20:]
    weights.write_bytes(old)
    again = read_darknet(cfg, weights)
    assert all(torch.equal(a, b) for a, b in zip(again.tensors(), model.tensors(), strict=True))


def test_text_both_ways() -> None:
    text = "# a comment\n[net]\nwidth = 32 ; another\n\n[yolo]\nanchors = 1,2, 3,4\nmask=0\n"
    first, second = parse_cfg(text)
    assert first.number("width") == 32
    assert second.reals("anchors") == [1, 2, 3, 4]
    assert parse_cfg(format_cfg([first, second])) == [first, second]


BROKEN = {
    "": "begins with",
    "[yolo]\n": "begins with",
    "[net\n": "line 1",
    "[net]\nwidth\n": "line 2",
    "[net]\n[convolutional]\nfilters=4\n": "no detector",
    "[net]\n[crnn]\n[yolo]\n": r"\[crnn\] is not supported",
    "[net]\n[route]\nlayers=-5\n[yolo]\n": "not before it",
    "[net]\n[convolutional]\nfilters=x\n[yolo]\n": "could not convert",
    "[net]\n[convolutional]\nactivation=selu\n[yolo]\n": "activation=selu",
    "[net]\n[yolo]\nnew_coords=1\n": "new_coords",
}


@pytest.mark.parametrize(("text", "words"), BROKEN.items())
def test_broken_files_are_told(text: str, words: str, tmp_path: Path) -> None:
    path = tmp_path / "a.cfg"
    path.write_text(text)
    with pytest.raises(Mistake, match=words):
        read_darknet(path)


def test_weights_of_another_network_are_told(tmp_path: Path) -> None:
    cfg, weights = write_darknet(Darknet(TINY), tmp_path)
    weights.write_bytes(weights.read_bytes()[:-8])
    with pytest.raises(Mistake, match="needs"):
        read_darknet(cfg, weights)
    weights.write_bytes(b"short")
    with pytest.raises(Mistake, match="no Darknet weights"):
        read_darknet(cfg, weights)
    with pytest.raises(Mistake, match=r"none\.weights"):
        read_darknet(cfg, tmp_path / "none.weights")
    with pytest.raises(Mistake, match="are not those"):
        fill_from_darknet(YoloV3(SMALL3), Darknet(TINY))
