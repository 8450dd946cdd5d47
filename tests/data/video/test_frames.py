"""Videos: frames read as they were written, one at a time; damaged, empty and truncated files are named."""

from __future__ import annotations

import tracemalloc
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from descend.data.video.frames import by_number, is_video, open_video
from descend.data.video.writing import check_video_out, write_video
from descend.errors import Mistake

av = pytest.importorskip("av")


def moving(frames: int, height: int = 48, width: int = 64) -> list[np.ndarray]:
    """A bright square that moves, on a grey ground."""
    found = []
    for t in range(frames):
        pixels = np.full((height, width, 3), 90, np.uint8)
        pixels[10:26, 2 * t : 2 * t + 16] = (230, 40, 40)
        found.append(pixels)
    return found


def make(path: Path, frames: int = 12, rate: float = 10.0, height: int = 48, width: int = 64) -> list[np.ndarray]:
    shown = moving(frames, height, width)
    with write_video(path, rate) as sink:
        for pixels in shown:
            sink.write(pixels)
    return shown


@pytest.mark.parametrize("name", ["a.mp4", "a.mkv", "a.avi"])
def test_a_file(name: str, tmp_path: Path) -> None:
    shown = make(tmp_path / name)
    video = open_video(tmp_path / name)
    found = list(video)
    assert video.rate == 10
    assert len(found) == 12
    for a, b in zip(found, shown, strict=True):
        assert a.shape == (48, 64, 3)
        assert np.abs(a.astype(int) - b).mean() < 8  # the codec loses a little
    assert [path.name for path in tmp_path.iterdir()] == [name]


def test_odd_sides(tmp_path: Path) -> None:
    make(tmp_path / "a.mp4", 3, height=47, width=63)
    assert next(iter(open_video(tmp_path / "a.mp4"))).shape == (48, 64, 3)


def test_a_folder(tmp_path: Path) -> None:
    """Frame 10 comes after frame 9, and every pixel is as it was."""
    shown = make(tmp_path / "frames", 11)
    found = list(open_video(tmp_path / "frames"))
    assert all(np.array_equal(a, b) for a, b in zip(found, shown, strict=True))
    names = [Path("f10.png"), Path("f9.png"), Path("f1.png")]
    assert sorted(names, key=by_number) == names[::-1]


def truncate(path: Path, share: float) -> None:
    content = path.read_bytes()
    path.write_bytes(content[: int(len(content) * share)])


@pytest.mark.parametrize("name", ["a.mp4", "early.mp4"])
def test_truncated(name: str, tmp_path: Path) -> None:
    """Whether the table of contents is at the end of the file, which is gone, or at its beginning."""
    path = tmp_path / name
    random = np.random.default_rng(0)
    options = {"movflags": "faststart"} if name == "early.mp4" else {}
    with av.open(str(path), "w", options=options) as container:
        stream = container.add_stream("libx264" if "libx264" in av.codecs_available else "mpeg4", rate=10)
        stream.height, stream.width, stream.pix_fmt = 48, 64, "yuv420p"
        for _ in range(40):
            noise = random.integers(0, 255, (48, 64, 3), dtype=np.uint8)
            container.mux(stream.encode(av.VideoFrame.from_ndarray(noise, format="rgb24")))
        container.mux(stream.encode())
    assert len(list(open_video(path))) == 40
    truncate(path, 0.5)
    with pytest.raises(Mistake, match=r"truncated"):
        list(open_video(path))


def test_refused(tmp_path: Path) -> None:
    for name, content, told in (
        ("empty.mp4", b"", "empty.mp4"),
        ("text.mp4", b"no video at all " * 50, "cannot be read as a video"),
    ):
        (tmp_path / name).write_bytes(content)
        with pytest.raises(Mistake, match=told):
            list(open_video(tmp_path / name))
    with pytest.raises(Mistake, match="gone"):
        open_video(tmp_path / "gone.mp4")
    (tmp_path / "folder").mkdir()
    with pytest.raises(Mistake, match="has no images"):
        open_video(tmp_path / "folder")


def test_without_frames(tmp_path: Path) -> None:
    """A container with a video stream and nothing in it, and one with sound alone."""
    path = tmp_path / "none.mkv"
    with av.open(str(path), "w") as container:
        stream = container.add_stream("mpeg4", rate=10)
        stream.height, stream.width, stream.pix_fmt = 16, 16, "yuv420p"
        container.start_encoding()
    with pytest.raises(Mistake, match=r"has no frames|cannot be read as a video"):
        list(open_video(path))
    sound = tmp_path / "sound.mkv"
    with av.open(str(sound), "w") as container:
        stream = container.add_stream("pcm_s16le", rate=8000, layout="mono")
        frame = av.AudioFrame.from_ndarray(np.zeros((1, 800), np.int16), format="s16", layout="mono")
        frame.sample_rate = 8000
        container.mux(stream.encode(frame))
        container.mux(stream.encode())
    with pytest.raises(Mistake, match="has no video, only audio"):
        open_video(sound)


def test_what_cannot_be_written(tmp_path: Path) -> None:
    for name, told in (("a.txt", "ends in .mp4"), ("no/a.mp4", "does not exist")):
        with pytest.raises(Mistake, match=told):
            check_video_out(tmp_path / name, replace=False)
    (tmp_path / "there.mp4").touch()
    with pytest.raises(Mistake, match="give --replace"):
        check_video_out(tmp_path / "there.mp4", replace=False)
    check_video_out(tmp_path / "there.mp4", replace=True)
    with pytest.raises(Mistake, match="not an empty folder"):
        check_video_out(tmp_path, replace=False)


def test_a_failure_leaves_no_file(tmp_path: Path) -> None:
    path = tmp_path / "a.mp4"
    sizes = ((16, 16, 3), (16, 18, 3))
    with pytest.raises(Mistake, match="a video has one size"), write_video(path, 10) as sink:
        list(map(sink.write, (np.zeros(size, np.uint8) for size in sizes)))
    with pytest.raises(Mistake, match="no frame to write"), write_video(path, 10):
        pass
    assert not list(tmp_path.iterdir())


def test_one_frame_is_held(tmp_path: Path) -> None:
    """Eighty frames of 240 x 320 are 18 MB; what is held is a few of them."""
    for i in range(80):
        Image.fromarray(np.full((240, 320, 3), i, np.uint8)).save(tmp_path / f"{i}.png")
    tracemalloc.start()
    total = sum(int(pixels[0, 0, 0]) for pixels in open_video(tmp_path))
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert total == sum(range(80))
    assert most < 5e6


def test_names() -> None:
    assert is_video("a.MP4")
    assert not is_video("a.png")
