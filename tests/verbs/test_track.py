"""descend track: videos and folders in; identities, files, scores and drawn frames out; mistakes in one line."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
import torch

import descend
from descend.cli import main
from descend.data.detection.framing import Letterbox
from descend.data.detection.prepare import DetectionPreprocessing
from descend.data.video.frames import open_video
from descend.data.video.mot_files import read_mot, write_mot
from descend.data.video.writing import write_video
from descend.inference.detector import Detected, Detection, Detector
from descend.metrics.tracking.sequence import Trajectories
from descend.models.yolo_v8 import TINY, YoloV8
from descend.verbs import track as verb

av = pytest.importorskip("av")
COLOURS = {"red": (230, 30, 30), "blue": (30, 30, 230)}


class Reads:
    """A detector that finds the rectangle of each colour, exactly, but for frames in which it is blind."""

    labels = tuple(COLOURS)

    def __init__(self, blind: Sequence[int] = ()):
        self.blind, self.frame = set(blind), 0

    def detect(self, images: Sequence[np.ndarray], least: float | None = None) -> list[Detected]:
        (pixels,) = images
        self.frame += 1
        objects = []
        for label, colour in COLOURS.items():
            ys, xs = np.nonzero(np.abs(pixels.astype(int) - colour).sum(axis=2) < 160)
            if len(ys) and self.frame not in self.blind:
                box = (float(xs.min()), float(ys.min()), float(xs.max() + 1), float(ys.max() + 1))
                objects.append(Detection(label, 0.9, box))
        return [Detected("0", pixels.shape[:2], tuple(objects))]


FRAMES = 14


def boxes(t: int) -> dict[str, list[int]]:
    return {"red": [4 * t, 8, 4 * t + 24, 32], "blue": [90 - 3 * t, 40, 114 - 3 * t, 60]}


def film(path: Path, frames: int = FRAMES) -> Path:
    with write_video(path, 10.0) as sink:
        for t in range(frames):
            pixels = np.full((64, 128, 3), 120, np.uint8)
            for label, (x0, y0, x1, y1) in boxes(t).items():
                pixels[y0:y1, x0:x1] = COLOURS[label]
            sink.write(pixels)
    return path


def write_truth(path: Path) -> Path:
    rows = [(t + 1, k + 1, box) for t in range(FRAMES) for k, box in enumerate(boxes(t).values())]
    frames, ids, found = zip(*rows, strict=True)
    write_mot(path, Trajectories(torch.tensor(frames), torch.tensor(ids), torch.tensor(found, dtype=torch.float64)))
    return path


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(verb, "open_detector", lambda run, checkpoint, labels: Reads())


@pytest.mark.system("multi-object-tracking", "video")
@pytest.mark.usefixtures("reads")
@pytest.mark.parametrize("kind", ["a.mp4", "frames"])
def test_a_video_and_a_folder(kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Tracks, a file of them, a drawn video, and scores: from the third frame on every box is there."""
    video, out, tracks = film(tmp_path / kind), tmp_path / f"out-{kind}", tmp_path / "tracks.txt"
    truth = write_truth(tmp_path / "gt.txt")
    assert main(["track", "RUN", str(video), "--out", str(out), "--tracks", str(tracks), "--truth", str(truth)]) == 0
    said = capsys.readouterr().out
    assert "14 frames, 2 objects" in said
    assert f"written {out}" in said
    assert "idf1 0.9231" in said  # 24 of 28 boxes, all right: 2 · 24 / (24 + 28)
    found = read_mot(tracks)
    assert sorted(set(found.ids.tolist())) == [1, 2]
    assert found.frames.min() == 3
    red = found.boxes[found.ids == found.ids[0]]
    assert (red[-1] - torch.tensor(boxes(FRAMES - 1)["red"])).abs().max() < 3
    drawn = list(open_video(out))
    assert len(drawn) == FRAMES
    plain = list(open_video(video))
    assert np.abs(drawn[0].astype(int) - plain[0]).mean() < 6  # nobody has a name yet
    assert np.abs(drawn[-1].astype(int) - plain[-1]).mean() > 3


@pytest.mark.system("multi-object-tracking", "video")
@pytest.mark.usefixtures("reads")
def test_json_comes_frame_by_frame(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    film(tmp_path / "frames")
    lines = tmp_path / "tracks.jsonl"
    assert main(["track", "RUN", str(tmp_path / "frames"), "--json", "--tracks", str(lines)]) == 0
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [row["frame"] for row in rows] == list(range(1, FRAMES + 1))
    assert [len(row["objects"]) for row in rows] == [0, 0, *[2] * (FRAMES - 2)]
    assert {o["label"] for o in rows[-1]["objects"]} == {"red", "blue"}
    assert [json.loads(line) for line in lines.read_text().splitlines()] == [o for row in rows for o in row["objects"]]


def test_missed_frames(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two frames without a detection are bridged by prediction, a third is not told; the names stay."""
    monkeypatch.setattr(verb, "open_detector", lambda run, checkpoint, labels: Reads(blind=(8, 9, 10)))
    found = descend.track("RUN", film(tmp_path / "frames"))
    seen = {t: [o for o in found if o["frame"] == t] for t in range(1, FRAMES + 1)}
    assert [len(seen[t]) for t in (7, 8, 9, 10, 11)] == [2, 2, 2, 0, 2]
    assert not any(o["seen"] for o in seen[8])
    assert {o["id"] for o in seen[7]} == {o["id"] for o in seen[11]}
    assert all(abs(o["box"][0] - boxes(8)[o["label"]][0]) < 4 for o in seen[9])


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A detector that has learned nothing."""
    torch.manual_seed(0)
    model = YoloV8(TINY)
    model.save_pretrained(tmp_path / "run")
    DetectionPreprocessing(Letterbox(64), labels=("a", "b", "c")).save(tmp_path / "run")
    return tmp_path / "run"


def test_a_run_is_opened(folder: Path, tmp_path: Path) -> None:
    """The detector of a folder, on frames of any size: nothing is certain enough to have a name."""
    assert isinstance(verb.open_detector(str(folder)), Detector)
    assert main(["track", str(folder), str(film(tmp_path / "frames", 4))]) == 0
    assert descend.track(folder, tmp_path / "frames", threshold=0.9) == []


def tell(args: Sequence[str | Path], capsys: pytest.CaptureFixture[str]) -> str:
    assert main(["track", *map(str, args)]) == 2
    err = capsys.readouterr().err
    assert err.count("\n") == 1
    return err


@pytest.mark.system("multi-object-tracking", "video")
def test_mistakes_are_one_line(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A truncated video, one without frames, other videos' truth, places that cannot be written, bad numbers."""
    video = film(tmp_path / "a.mp4")
    out = tmp_path / "out.mp4"
    content = video.read_bytes()
    (tmp_path / "cut.mp4").write_bytes(content[: len(content) // 2])
    (tmp_path / "empty.mp4").write_bytes(b"")
    (tmp_path / "no").mkdir()
    assert "truncated" in tell([folder, tmp_path / "cut.mp4", "--out", out], capsys)
    assert "empty.mp4" in tell([folder, tmp_path / "empty.mp4"], capsys)
    assert "no images" in tell([folder, tmp_path / "no"], capsys)
    assert "gone.mp4" in tell([folder, tmp_path / "gone.mp4"], capsys)
    assert "ends in" in tell([folder, video, "--out", tmp_path / "a.gif"], capsys)
    assert "give --replace" in tell([folder, video, "--out", video], capsys)
    assert "--confident 2.0" in tell([folder, video, "--threshold", "2"], capsys)
    assert "must be" in tell([folder, video, "--hits", "0"], capsys)
    truth = write_truth(tmp_path / "gt.txt")
    film(tmp_path / "short", 5)
    assert "of another video" in tell([folder, tmp_path / "short", "--truth", truth], capsys)
    assert not out.exists()
    assert not [path.name for path in tmp_path.iterdir() if path.name.startswith(".")]
