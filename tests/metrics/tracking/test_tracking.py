"""MOTA, MOTP, IDF1 and HOTA against py-motmetrics and TrackEval: on the TUD videos of motmetrics, and at random."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from descend.data.video.mot_files import read_mot
from descend.errors import Mistake
from descend.metrics.tracking.clear import FOREVER, score_clear
from descend.metrics.tracking.hota import score_hota
from descend.metrics.tracking.identity import score_identity
from descend.metrics.tracking.sequence import ComparedVideo, Trajectories, compare_trajectories
from descend.metrics.tracking.summary import score_tracks
from tests.close import close

motmetrics = pytest.importorskip("motmetrics")

Pair = tuple[Trajectories, Trajectories]
VIDEOS = ("TUD-Campus", "TUD-Stadtmitte")
TRACKEVAL = {
    "TUD-Campus": {"hota": 0.3913974378451139, "deta": 0.418047030142763, "assa": 0.36912068120832836,
                   "loca": 0.770052227022172, "mota": 0.5264623955431755, "motp": 0.7227989153605385,
                   "idf1": 0.5576592082616179, "idp": 0.7297297297297297, "idr": 0.45125348189415043},
    "TUD-Stadtmitte": {"hota": 0.3978490169927877, "deta": 0.3922675723693166, "assa": 0.4088407518112996,
                       "loca": 0.737521177178062, "mota": 0.5640138408304498, "motp": 0.6540957044559912,
                       "idf1": 0.6446194225721785, "idp": 0.8197596795727636, "idr": 0.5311418685121108},
}  # fmt: skip
"""What TrackEval 1.3.0 gives, which is not installed with the tests."""


def tud(name: str) -> Pair:
    folder = Path(motmetrics.__file__).parent / "data" / name
    truth, found = read_mot(folder / "gt.txt").of_score(1), read_mot(folder / "test.txt")
    return truth.trajectories(), found.trajectories()


def at_random(seed: int) -> Pair:
    """Five objects on random walks; tracks that stray, stop, change their names and come from nowhere."""
    random = np.random.default_rng(seed)
    rows: list[list[list[float]]] = [[], []]
    names = {i: i for i in range(5)}
    centre = random.uniform(0, 120, (5, 2))
    for frame in range(1, 41):
        centre += random.normal(0, 4, (5, 2))
        for i in range(5):
            if random.random() < 0.9:
                rows[0].append([frame, i, *centre[i], *(centre[i] + 30)])
            if random.random() < 0.05:
                names[i] = 10 * frame + i
            if random.random() < 0.85:
                low = centre[i] + random.normal(0, 3, 2)
                rows[1].append([frame, names[i], *low, *(low + 30)])
        if random.random() < 0.2:
            low = random.uniform(0, 120, 2)
            rows[1].append([frame, 1000 + frame, *low, *(low + 30)])
    x = [torch.tensor(side, dtype=torch.float64) for side in rows]
    truth, found = (Trajectories(side[:, 0].long(), side[:, 1].long(), side[:, 2:]) for side in x)
    return truth, found


def overlap(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """IoU, written once more."""
    wide = np.minimum(a[:, None, 2], b[None, :, 2]) - np.maximum(a[:, None, 0], b[None, :, 0])
    high = np.minimum(a[:, None, 3], b[None, :, 3]) - np.maximum(a[:, None, 1], b[None, :, 1])
    both = wide.clip(0) * high.clip(0)
    areas = [(x[:, 2] - x[:, 0]) * (x[:, 3] - x[:, 1]) for x in (a, b)]
    return both / (areas[0][:, None] + areas[1][None] - both)


def by_motmetrics(pair: Pair) -> dict[str, float]:
    """Fed frame by frame: its own reader and distances need numpy 1."""
    events = motmetrics.MOTAccumulator()
    (f, i, b), (g, j, c) = ((part.numpy() for part in side) for side in pair)
    for frame in np.unique(np.concatenate([f, g])):
        there, seen = f == frame, g == frame
        distance = 1 - overlap(b[there], c[seen])
        events.update(i[there], j[seen], np.where(distance > 0.5, np.nan, distance), frame)
    names = {
        "mota": "mota", "motp": "motp", "idf1": "idf1", "idp": "idp", "idr": "idr", "precision": "precision",
        "recall": "recall", "switches": "num_switches", "fragmentations": "num_fragmentations",
        "misses": "num_misses", "false_positives": "num_false_positives", "mostly_tracked": "mostly_tracked",
        "partly_tracked": "partially_tracked", "mostly_lost": "mostly_lost",
    }  # fmt: skip
    found = motmetrics.metrics.create().compute(events, metrics=list(names.values())).iloc[0]
    return {ours: float(found[theirs]) for ours, theirs in names.items()}


def for_trackeval(video: ComparedVideo) -> dict[str, Any]:
    return {
        "num_tracker_dets": int(video.found.sum()),
        "num_gt_dets": int(video.truth.sum()),
        "num_gt_ids": len(video.truth),
        "num_tracker_ids": len(video.found),
        "num_timesteps": len(video.frames),
        "gt_ids": [f.truth.numpy() for f in video.frames],
        "tracker_ids": [f.found.numpy() for f in video.frames],
        "similarity_scores": [f.iou.numpy() for f in video.frames],
    }


def agree_with_motmetrics(pair: Pair) -> None:
    ours, theirs = score_tracks([pair]), by_motmetrics(pair)
    theirs["motp"] = 1 - theirs["motp"]  # a distance there
    for name, value in theirs.items():
        assert abs(ours[name] - value) < 1e-9, f"{name}: {ours[name]} against {value}"


@pytest.mark.system("multi-object-tracking")
@pytest.mark.system("multi-object-tracking", "scores")
@pytest.mark.parametrize("name", VIDEOS)
def test_tud_as_motmetrics(name: str) -> None:
    agree_with_motmetrics(tud(name))


@pytest.mark.system("multi-object-tracking", "scores")
@pytest.mark.parametrize("seed", range(3))
def test_random_videos_as_motmetrics(seed: int) -> None:
    agree_with_motmetrics(at_random(seed))


@pytest.mark.system("multi-object-tracking", "scores")
@pytest.mark.parametrize("name", VIDEOS)
def test_tud_as_trackeval(name: str) -> None:
    """HOTA over its α, and the others: what TrackEval told."""
    ours = score_tracks([tud(name)])
    for score, value in TRACKEVAL[name].items():
        assert abs(ours[score] - value) < 1e-9, score


@pytest.mark.system("multi-object-tracking", "scores")
def test_every_alpha_as_trackeval() -> None:
    """At every α, on TUD and on random videos, where TrackEval is there; CLEAR with its memory of one frame."""
    trackeval = pytest.importorskip("trackeval")
    for pair in (*map(tud, VIDEOS), at_random(0), at_random(1)):
        video = compare_trajectories(*pair)
        data = for_trackeval(video)
        theirs, ours = trackeval.metrics.HOTA().eval_sequence(data), score_hota(video)
        for a, b in {"hota": "HOTA", "deta": "DetA", "assa": "AssA", "loca": "LocA", "assre": "AssRe",
                     "asspr": "AssPr"}.items():  # fmt: skip
            close(getattr(ours, a), torch.as_tensor(theirs[b]))
        quiet = {"PRINT_CONFIG": False}
        clear, counts = score_clear(video, memory=1), trackeval.metrics.CLEAR(quiet).eval_sequence(data)
        assert (clear.matches, clear.switches) == (counts["CLR_TP"], counts["IDSW"])
        assert abs(clear.mota - counts["MOTA"]) < 1e-9
        assert abs(clear.motp - counts["MOTP"]) < 1e-9
        identity = trackeval.metrics.Identity(quiet).eval_sequence(data)
        assert abs(score_identity(video).f1 - identity["IDF1"]) < 1e-9


def straight(ids: list[int], frames: int = 10) -> Trajectories:
    """Two objects far from each other; their identities in the first and in the second half."""
    f = torch.arange(frames).repeat(2) + 1
    low = torch.stack([f.double() * 5, torch.repeat_interleave(torch.tensor([0.0, 200.0]), frames).double()], 1)
    half = frames // 2
    names = torch.tensor([*ids[:1] * half, *ids[1:2] * half, *ids[2:3] * half, *ids[3:] * half])
    return Trajectories(f, names, torch.cat([low, low + 20], 1))


@pytest.mark.system("multi-object-tracking", "scores")
def test_by_hand() -> None:
    """Two objects of 10 frames that exchange their names in the middle: 2 switches of 20 boxes, half the names right,
    and every box shares half of its trajectory with each of two tracks: A = 5 / (10 + 10 − 5)."""
    truth, swapped = straight([1, 1, 2, 2]), straight([7, 8, 8, 7])
    perfect, found = score_tracks([(truth, truth)]), score_tracks([(truth, swapped)])
    assert all(perfect[name] == 1 for name in ("mota", "motp", "idf1", "hota", "deta", "assa", "loca"))
    assert found["switches"] == 2
    close(torch.tensor([found["mota"], found["idf1"], found["deta"]]), torch.tensor([0.9, 0.5, 1.0]))
    close(torch.tensor([found["assa"], found["hota"]]), torch.tensor([1 / 3, (1 / 3) ** 0.5]))


def test_several_videos_are_one() -> None:
    """Counts add up: two videos score as one whose frames and identities do not meet."""
    (a, b), (c, d) = tud(VIDEOS[0]), tud(VIDEOS[1])
    later = lambda x, y: Trajectories(*(torch.cat(p) for p in zip(x, (y[0] + 1000, y[1] + 1000, y[2]), strict=True)))
    joined, apart = score_tracks([(later(a, c), later(b, d))]), score_tracks([(a, b), (c, d)])
    for name, value in apart.items():
        assert abs(value - joined[name]) < 1e-9, name


def test_nothing_there() -> None:
    """A video without truth, without tracks, and without either."""
    empty = Trajectories(torch.zeros(0, dtype=torch.long), torch.zeros(0, dtype=torch.long), torch.zeros(0, 4))
    truth = straight([1, 1, 2, 2])
    assert score_tracks([(truth, empty)])["mota"] == 0
    assert score_tracks([(truth, empty)])["hota"] == 0
    assert score_tracks([(empty, truth)])["mota"] == 0
    assert score_tracks([(empty, truth)])["false_positives"] == 20
    assert score_tracks([(empty, empty)])["mota"] == 1


def test_a_name_twice_in_a_frame_is_refused() -> None:
    truth = straight([1, 1, 2, 2])
    twice = Trajectories(truth.frames, torch.ones_like(truth.ids), truth.boxes)
    with pytest.raises(Mistake, match="frame 1: the found identity 1 is there more than once"):
        score_tracks([(truth, twice)])


def test_how_long_a_pair_is_remembered() -> None:
    """An object that two tracks cover: after a frame in which its track was away, the better one takes it over, unless
    the old pair is remembered."""
    frames = torch.tensor([1, 2, 3])
    box = torch.tensor([[0.0, 0.0, 10.0, 10.0]])
    truth = Trajectories(frames, torch.ones(3, dtype=torch.long), box.expand(3, 4))
    found = Trajectories(
        torch.tensor([1, 2, 3, 3]), torch.tensor([5, 9, 5, 6]), torch.cat([box, box + 100, box + 1, box + 0.5])
    )
    video = compare_trajectories(truth, found)
    assert score_clear(video, memory=FOREVER).switches == 0
    assert score_clear(video, memory=1).switches == 1
