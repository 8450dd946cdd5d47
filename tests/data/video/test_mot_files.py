"""MOTChallenge's files: read, written, and refused with the line."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from descend.data.video.mot_files import format_mot, read_mot, write_mot
from descend.errors import Mistake
from tests.close import close


@pytest.mark.system("multi-object-tracking", "files")
def test_round_trip(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("2,7,11,21,30,40,0.5,-1,-1,-1\n\n1,3, 1,1,5.25,6,1,2,0.75\n1 4 2 2 3 3\n")
    found = read_mot(path)
    assert found.frames.tolist() == [2, 1, 1]
    assert found.ids.tolist() == [7, 3, 4]
    close(found.boxes[0], torch.tensor([10.0, 20.0, 40.0, 60.0]).double())  # the first pixel is 1 there, 0 here
    assert found.scores.tolist() == [0.5, 1, 1]
    assert found.classes.tolist() == [-1, 2, -1]
    write_mot(tmp_path / "b.txt", found.trajectories(), found.scores)
    again = read_mot(tmp_path / "b.txt")
    assert again.ids.tolist() == [3, 4, 7]  # by frame and identity
    assert torch.equal(again.boxes, found.boxes[[1, 2, 0]])
    assert format_mot(again.trajectories(), again.scores) == (tmp_path / "b.txt").read_text()
    assert len(found.of_score(0.9).ids) == 2


@pytest.mark.system("multi-object-tracking", "files")
def test_as_motmetrics_reads_it(tmp_path: Path) -> None:
    motmetrics = pytest.importorskip("motmetrics")
    source = Path(motmetrics.__file__).parent / "data" / "TUD-Campus" / "test.txt"
    ours = read_mot(source)
    write_mot(tmp_path / "again.txt", ours.trajectories(), ours.scores)
    for path in (source, tmp_path / "again.txt"):
        theirs = motmetrics.io.loadtxt(path)
        x = torch.tensor(theirs[["X", "Y", "Width", "Height"]].to_numpy())
        order = sorted(range(len(ours.ids)), key=lambda i: (ours.frames[i], ours.ids[i]))
        places = [(int(f), int(i)) for f, i in theirs.index]
        assert sorted(places) == [(int(ours.frames[i]), int(ours.ids[i])) for i in order]
        by_place = dict(zip(places, x, strict=True))
        expected = torch.stack([by_place[int(ours.frames[i]), int(ours.ids[i])] for i in order])
        close(torch.cat([expected[:, :2], expected[:, :2] + expected[:, 2:]], 1), ours.boxes[order])


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "has no boxes"),
        ("1,2,3\n", "line 1: 3 numbers"),
        ("1,1,0,0,5,5\n1,x,0,0,5,5\n", "line 2: 'x' is not a number"),
        ("1,1,nan,0,5,5\n", "line 1: nan is out of range"),
        ("1.5,1,0,0,5,5\n", "must be whole numbers"),
        ("0,1,0,0,5,5\n", "the first frame is 1"),
        ("1,1,0,0,-5,5\n", "a box of -5 x 5"),
    ],
)
def test_refused(text: str, told: str, tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text(text)
    with pytest.raises(Mistake, match=told):
        read_mot(path)
