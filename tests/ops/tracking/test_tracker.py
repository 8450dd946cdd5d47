"""Detections become identities: association, gates, ageing, and noisy videos."""

from __future__ import annotations

from itertools import permutations

import pytest
import torch
from scipy.optimize import linear_sum_assignment

from descend.data.toys.moving_boxes import MovingBoxes, move_boxes, see_boxes
from descend.metrics.tracking.sequence import Trajectories
from descend.metrics.tracking.summary import score_tracks
from descend.ops.tracking.association import association_cost, centre_distance, compare_boxes, match
from descend.ops.tracking.motion import Still
from descend.ops.tracking.tracker import Tracker, Tracking
from tests.close import close


def box(x: float, y: float, side: float = 20.0) -> list[float]:
    return [x, y, x + side, y + side]


def boxes(*rows: list[float]) -> torch.Tensor:
    return torch.tensor(rows, dtype=torch.float64).reshape(-1, 4)


@pytest.mark.system("multi-object-tracking")
@pytest.mark.system("multi-object-tracking", "cost")
def test_the_cost() -> None:
    """−IoU + λ d by hand: two boxes of side 20, 10 apart: IoU 1/3, 10 of 20√2 pixels."""
    iou, distance = compare_boxes(boxes(box(10, 0), box(200, 0)), boxes(box(0, 0)))
    close(iou[:, 0], torch.tensor([1 / 3, 0.0], dtype=torch.float64))
    close(distance[:, 0], torch.tensor([10.0, 200.0], dtype=torch.float64) / (20 * 2**0.5))
    close(centre_distance(boxes(box(10, 0)), boxes(box(7, 4))), torch.tensor([[5.0]]).double())
    close(association_cost(iou, distance, 2.0)[0, 0], torch.tensor(-1 / 3 + 2 / 8**0.5, dtype=torch.float64))


@pytest.mark.system("multi-object-tracking", "assignment")
@pytest.mark.parametrize("shape", [(4, 4), (5, 3), (2, 5), (1, 1)])
def test_the_least_cost_of_all_assignments(shape: tuple[int, int]) -> None:
    n, m = shape
    for seed in range(10):
        cost = torch.randn(shape, generator=torch.Generator().manual_seed(seed)).double()
        rows, columns = match(cost)
        wide = cost if n <= m else cost.T
        best = min(
            sum(float(wide[i, j]) for i, j in enumerate(chosen)) for chosen in permutations(range(max(n, m)), min(n, m))
        )
        close(cost[rows, columns].sum(), torch.tensor(best, dtype=torch.float64))


@pytest.mark.system("multi-object-tracking", "assignment")
def test_most_pairs_before_least_cost() -> None:
    """A pair that is not possible is never taken, and a cheap pair does not cost another one its partner."""
    cost = torch.tensor([[0.0, 5.0], [1.0, 0.0]])
    possible = torch.tensor([[True, True], [True, False]])
    rows, columns = match(cost, possible)
    assert sorted(zip(rows.tolist(), columns.tolist(), strict=True)) == [(0, 1), (1, 0)]
    assert len(match(cost, torch.zeros(2, 2, dtype=torch.bool))[0]) == 0
    assert len(match(torch.zeros(0, 3))[0]) == 0
    cost = torch.rand(6, 9, generator=torch.Generator().manual_seed(0))
    close(cost[match(cost)].sum(), torch.tensor(cost.numpy()[linear_sum_assignment(cost.numpy())].sum()))


@pytest.mark.system("multi-object-tracking", "identities")
@pytest.mark.parametrize("motion", ["velocity", "still"])
def test_no_switch_of_well_separated_objects(motion: str) -> None:
    """Straight paths, the detections of each frame in another order: every object keeps its name."""
    tracker = Tracker(Tracking(motion=Still()) if motion == "still" else Tracking())
    random = torch.Generator().manual_seed(0)
    names = []
    for t in range(40):
        objects = boxes(box(3 * t, 0), box(200 - 2 * t, 100), box(50, 400 - 4 * t, 30))
        order = torch.randperm(3, generator=random)
        ids = torch.zeros(3, dtype=torch.long)
        ids[order] = tracker.update(objects[order])
        names.append(ids)
    assert (torch.stack(names[:2]) == 0).all()  # not yet seen three times
    assert all(torch.equal(ids, names[2]) for ids in names[2:])
    assert sorted(names[2].tolist()) == [1, 2, 3]


@pytest.mark.system("multi-object-tracking", "motion")
def test_two_that_meet_keep_their_names_by_their_velocity() -> None:
    """Two objects run through each other, unseen while they meet. Where a box stays, they return under other names."""
    seen = lambda t: boxes(box(5 * t, 0), box(200 - 5 * t, 0))
    after = {}
    for name, rules in {"velocity": Tracking(), "still": Tracking(motion=Still(), reach=3.0)}.items():
        tracker = Tracker(rules)
        for t in range(41):
            ids = tracker.update(seen(t) if abs(t - 20) > 2 else boxes())
            if t == 10:
                before = ids
        after[name] = ids.tolist() == before.tolist()
    assert after == {"velocity": True, "still": False}


@pytest.mark.system("multi-object-tracking", "gating")
def test_the_gate() -> None:
    """Beyond reach it is another object; so too with an IoU below `overlap`, and with another class."""
    for rules, moved, same in (
        (Tracking(hits=1, reach=0.5), 14.0, True),  # 14 / (20 √2) = 0.495
        (Tracking(hits=1, reach=0.5), 15.0, False),
        (Tracking(hits=1, overlap=0.5), 6.0, True),  # IoU 14 / 26
        (Tracking(hits=1, overlap=0.5), 7.0, False),  # 13 / 27
    ):
        tracker = Tracker(rules)
        first = tracker.update(boxes(box(0, 0)))
        assert (tracker.update(boxes(box(moved, 0))) == first).item() is same
    tracker = Tracker(Tracking(hits=1))
    first = tracker.update(boxes(box(0, 0)), classes=torch.tensor([2]))
    assert tracker.update(boxes(box(0, 0)), classes=torch.tensor([3])) != first
    assert tracker.update(boxes(box(0, 0)), classes=torch.tensor([2])) == first


@pytest.mark.system("multi-object-tracking", "gating")
def test_weights_of_the_distance_decide() -> None:
    """Two detections near a track: one overlaps more, the other's centre is nearer."""
    tall, near = [0.0, -10.0, 20.0, 50.0], [8.0, 5.0, 18.0, 15.0]  # IoU 1/3 and 1/4; 10 and 3 pixels away
    for weight, winner in ((0.0, 0), (2.0, 1)):
        tracker = Tracker(Tracking(hits=1, weight=weight))
        tracker.update(boxes(box(0, 0)))
        assert tracker.update(boxes(tall, near)).tolist().index(1) == winner


@pytest.mark.system("multi-object-tracking", "ageing")
def test_ageing() -> None:
    """A name after `hits` frames in a row; kept over `patience` missed frames, not over one more."""
    for missed, same in ((4, True), (5, False)):
        tracker = Tracker(Tracking(hits=2, patience=4))
        assert tracker.update(boxes(box(0, 0))).tolist() == [0]
        assert tracker.update(boxes(box(0, 0))).tolist() == [1]
        for _ in range(missed):
            assert len(tracker.update(boxes())) == 0
        again = tracker.update(boxes(box(0, 0))).tolist()
        assert again == ([1] if same else [0])
    tracker = Tracker(Tracking(hits=3))
    for given in (boxes(box(0, 0)), boxes(), boxes(box(0, 0)), boxes(box(0, 0))):
        assert (tracker.update(given) == 0).all()  # one missed frame, and it begins anew
    assert tracker.update(boxes(box(0, 0))).tolist() == [1]


@pytest.mark.system("multi-object-tracking", "ageing")
def test_weak_detections_continue_and_never_start() -> None:
    tracker = Tracker(Tracking(hits=1))
    weak, none = torch.tensor([0.3]), torch.tensor([0.05])
    assert tracker.update(boxes(box(0, 0)), weak).tolist() == [0]
    assert len(tracker.tracks.ids) == 0
    assert tracker.update(boxes(box(0, 0))).tolist() == [1]
    assert tracker.update(boxes(box(1, 0)), weak).tolist() == [1]
    assert tracker.update(boxes(box(1, 0)), none).tolist() == [0]


@pytest.mark.system("multi-object-tracking", "ageing")
def test_a_track_that_is_missed_is_told_where_it_should_be() -> None:
    tracker = Tracker(Tracking(coast=2))
    for t in range(10):
        tracker.update(boxes(box(4 * t, 0)))
    for t, told in ((10, 1), (11, 1), (12, 0)):
        tracker.update(boxes())
        found = tracker.tell()
        assert len(found.ids) == told
        if told:
            assert not found.seen.any()
            assert (found.boxes - boxes(box(4 * t, 0))).abs().max() < 1.5


def follow(rules: Tracking, seed: int, video: MovingBoxes) -> dict[str, float]:
    """A noisy video, tracked and scored."""
    random = torch.Generator().manual_seed(seed)
    truth = move_boxes(video, random)
    seen = see_boxes(video, truth, random)
    tracker, rows = Tracker(rules), []
    for frame in range(1, video.frames + 1):
        now = seen.frames == frame
        tracker.update(seen.boxes[now], seen.scores[now])
        told = tracker.tell()
        rows.append((torch.full_like(told.ids, frame), told.ids, told.boxes))
    return score_tracks([(truth, Trajectories(*(torch.cat(part) for part in zip(*rows, strict=True))))])


@pytest.mark.system("multi-object-tracking", "noisy-video")
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_a_noisy_video(seed: int) -> None:
    """Noise, misses, weak scores and false detections."""
    found = follow(Tracking(), seed, MovingBoxes(frames=100))
    assert found["mota"] >= 0.93
    assert found["idf1"] >= 0.95


def test_memory_does_not_grow() -> None:
    """Nothing is kept of a frame but the tracks that live, however long the video; names go on."""
    tracker, random = Tracker(Tracking(patience=5)), torch.Generator().manual_seed(0)
    most = 0
    for t in range(400):
        low = torch.rand(6, 2, generator=random) * 500
        tracker.update(torch.cat([low, low + 20], 1) if t % 3 else boxes(box(t, t)))
        most = max(most, len(tracker.tracks.ids))
    assert most <= 6 * 7


def test_no_detections_at_all() -> None:
    tracker = Tracker()
    for _ in range(3):
        assert tracker.update(torch.zeros(0, 4)).shape == (0,)
    assert len(tracker.tell().ids) == 0
