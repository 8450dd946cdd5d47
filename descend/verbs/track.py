"""descend track: objects of a video, with an identity that stays from frame to frame."""

from __future__ import annotations

import json as json_module
import sys
from collections.abc import Generator, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from descend.data.video.frames import open_video
from descend.data.video.mot_files import MotFile, read_mot
from descend.data.video.writing import check_video_out, write_video
from descend.errors import Mistake
from descend.inference.saving import check_out
from descend.inference.track_files import KINDS, list_frame, write_tracks
from descend.inference.tracker import TrackedObject, as_trajectories, draw_tracks, follow, open_detector
from descend.metrics.tracking.summary import score_tracks
from descend.ops.tracking.tracker import Tracking
from descend.own_code import use_code
from descend.ranges import check
from descend.verbs.table import format_table

SHOWN = 40  # identities in the table
RULES = Tracking()


class Asked(NamedTuple):
    """What to do with a video."""

    run: str
    video: str
    out: str
    tracks: str
    replace: bool
    rules: Tracking
    labels: tuple[str, ...]
    checkpoint: str | int


def track(
    run: str | Path,
    video: str | Path,
    out: str | Path = "",
    tracks: str | Path = "",
    replace: bool = False,
    threshold: float = RULES.confident,
    patience: int = RULES.patience,
    hits: int = RULES.hits,
    labels: Sequence[str] = (),
    checkpoint: str | int = "best",
) -> list[dict[str, Any]]:
    """The objects of a video, frame by frame, each with an identity.

    Args:
        run: a run's folder, or a model folder of a detector.
        video: a video file, or a folder whose images are the frames.
        out: a video file (.mp4, .mkv, .mov, .avi) or a folder to write: the frames with their boxes.
        tracks: a file to write: .txt in MOTChallenge's form, or .jsonl.
        replace: write `out` and `tracks` anew where they exist.
        threshold: score of a detection that starts a track; weaker ones continue it.
        patience: frames that an object may be missed.
        hits: frames in which an object is seen before it has an identity.
        labels: for an open-vocabulary detector: what to look for.
        checkpoint: best, last or a step.

    Returns:
        {"frame", "id", "label", "score", "box", "seen"} of each object of each frame; `box` is x0, y0, x1, y1 in
        pixels, predicted where the object was not seen.
    """
    rules = make_rules(threshold, patience, hits)
    asked = Asked(str(run), str(video), str(out), str(tracks), replace, rules, tuple(labels), checkpoint)
    return [o._asdict() for objects in track_frames(asked) for o in objects]


def make_rules(threshold: float, patience: int, hits: int) -> Tracking:
    """What the flags say; the rest is as it is."""
    rules = Tracking(
        confident=threshold, least=min(RULES.least, threshold), patience=patience, hits=hits, motion=RULES.motion
    )
    check(rules)
    return rules


def track_frames(asked: Asked) -> Generator[list[TrackedObject]]:
    """The objects of each frame; files are written on the way, and are there when the video has come to its end."""
    if asked.out:
        check_video_out(Path(asked.out), asked.replace)
    if asked.tracks:
        check_out(Path(asked.tracks), asked.replace, KINDS)
    source = open_video(asked.video)
    detector = open_detector(asked.run, asked.checkpoint, asked.labels)
    with ExitStack() as files:
        write = files.enter_context(write_tracks(Path(asked.tracks))) if asked.tracks else None
        sink = files.enter_context(write_video(Path(asked.out), source.rate)) if asked.out else None
        for pixels, objects in follow(source, detector, asked.rules):
            if sink:
                sink.write(draw_tracks(pixels, objects))
            if write:
                write(objects)
            yield objects


@dataclass
class Roll:
    """What is remembered of a video: a line for each identity, not for each frame."""

    frames: int = 0
    rows: dict[int, list[Any]] = field(default_factory=dict)

    def add(self, objects: list[TrackedObject]) -> None:
        self.frames += 1
        for o in objects:
            row = self.rows.setdefault(o.id, [o.id, o.label, o.frame, o.frame, 0])
            row[3], row[4] = o.frame, row[4] + 1

    def show(self) -> None:
        print(f"{self.frames:,} frames, {len(self.rows):,} objects")
        if self.rows:
            shown = list(self.rows.values())[:SHOWN]
            print(format_table(["id", "label", "first frame", "last frame", "frames"], shown))
        if len(self.rows) > SHOWN:
            print(f"and {len(self.rows) - SHOWN:,} more")


def command(
    run: str,
    video: str,
    /,
    *,
    out: str = "",
    tracks: str = "",
    truth: str = "",
    replace: bool = False,
    threshold: float = RULES.confident,
    patience: int = RULES.patience,
    hits: int = RULES.hits,
    labels: str = "",
    checkpoint: str = "best",
    code: str = "",
    json: bool = False,
) -> None:
    """Follow the objects of a video: who is where in every frame, under a name that stays.

    Args:
        run: a run's folder, or a model folder of a detector.
        video: a video file, or a folder whose images are the frames.
        out: a video file (.mp4, .mkv, .mov, .avi) or a folder to write: the frames with their boxes.
        tracks: a file to write: .txt in MOTChallenge's form, or .jsonl.
        truth: a .txt file in MOTChallenge's form: score the tracks by it (MOTA, IDF1, HOTA).
        replace: write --out and --tracks anew where they exist.
        threshold: score of a detection that starts a track; weaker ones continue it.
        patience: frames that an object may be missed.
        hits: frames in which an object is seen before it has an identity.
        labels: for an open-vocabulary detector: what to look for, separated by commas.
        checkpoint: best, last or a step.
        code: the file of a recipe or model of your own, where it is not found by its name.
        json: print a line of JSON for each frame, while it is tracked.

    Examples:
        descend track runs/yolo-scenes street.mp4 --out tracked.mp4
        descend track runs/yolo-scenes frames/ --tracks tracks.txt --json
        descend track runs/yolo-scenes street.mp4 --truth gt.txt
    """
    use_code(code)
    named = tuple(name.strip() for name in labels.split(",") if name.strip())
    asked = Asked(run, video, out, tracks, replace, make_rules(threshold, patience, hits), named, checkpoint)
    true = read_mot(truth).of_score(1) if truth else None
    roll, kept = Roll(), []
    with closing(track_frames(asked)) as frames:
        for objects in frames:
            roll.add(objects)
            if true is not None:
                kept += objects
            if json:
                print(json_module.dumps(list_frame(roll.frames, objects)), flush=True)
    if not json:
        roll.show()
    stream = sys.stderr if json else sys.stdout  # what is printed for another program stays clean
    for place in filter(None, (out, tracks)):
        print(f"written {place}", file=stream)
    if true is not None:
        print(format_scores(true, truth, kept, roll.frames), file=stream)


def format_scores(true: MotFile, name: str, kept: Sequence[TrackedObject], frames: int) -> str:
    """mota 0.9500  motp 0.8800  idf1 0.9700  hota 0.8100"""
    if len(true.frames) == 0 or int(true.frames.max()) > frames:
        raise Mistake(f"--truth {name} is of another video: this one has {frames:,} frames")
    scores = score_tracks([(true.trajectories(), as_trajectories(kept))])
    return "  ".join(f"{name} {scores[name]:.4f}" for name in ("mota", "motp", "idf1", "hota"))
