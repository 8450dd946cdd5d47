"""The files of a run: metrics that damage does not stop, events that TensorBoard reads, errors that name their file."""

from __future__ import annotations

import errno
import fcntl
from pathlib import Path
from typing import Any

import pytest
from tensorboard.backend.event_processing.event_file_loader import EventFileLoader

from descend.engine.run import Run
from descend.errors import Mistake

RECIPE = {"name": "small", "descend": "0.1.0", "values": {}}


def test_damaged_lines_of_metrics_are_left_out(tmp_path: Path) -> None:
    run = Run.create(tmp_path / "run", RECIPE)
    good = [b'{"step": 1, "loss": 2.0}', b'{"step": 2, "loss": 1.0}']
    bad = [b'{"step"', b"\xff\xfe", b"\0\0\0", b"7", b"[1]", b'{"step": "x"}', b'{"step": true}', b"[" * 10**5]
    run.metrics_file.write_bytes(b"\n".join([good[0], *bad, good[1]]))
    assert [line["loss"] for line in run.lines()] == [2.0, 1.0]
    run.forget_after(1)
    assert run.metrics_file.read_bytes() == good[0] + b"\n"


def test_an_end_that_will_be_reached_again_is_forgotten(tmp_path: Path) -> None:
    run = Run.create(tmp_path / "run", RECIPE)
    for line in ({"step": 1, "event": "SIGTERM"}, {"step": 2, "loss": 1.0}, {"step": 2, "event": "finished"}):
        run.log(line)
    run.forget_after(2)
    run.close()
    assert [line.get("event") for line in run.lines()] == ["SIGTERM", None]


def test_the_test_scores_follow_the_end_whatever_was_lost(tmp_path: Path) -> None:
    run = Run.create(tmp_path / "run", RECIPE)
    looked = {"step": 1, "event": "test", "checkpoint": "step-000001"}  # descend evaluate, before the run went on
    lines: list[dict[str, Any]] = [{"step": 1, "loss": 2.0}, looked, {"step": 2, "loss": 1.0}]
    lines += [{"step": 2, "event": "finished"}, {"step": 2, "event": "test", "checkpoint": "step-000002"}]
    for line in lines:
        run.log(line)
    run.close()
    run.forget_after(2, ended="finished")  # nothing was lost
    assert run.lines() == lines
    run.log({"step": 1, "event": "test", "checkpoint": "step-000001"})
    run.forget_after(1)  # the last checkpoint was
    run.close()
    assert run.lines() == lines[:2], "what was scored after the end will be scored again after the new one"


def test_tensorboard_reads_the_events(tmp_path: Path) -> None:
    run = Run.create(tmp_path / "run", RECIPE)
    run.log({"step": 1, "time": 0.5, "loss": 2.5, "valid": {"accuracy": 0.25}, "said": "hello"})
    run.log({"step": 2, "time": 1.0, "loss": 1.5})
    run.close()
    (path,) = (run.folder / "tensorboard").iterdir()
    found = {}
    for event in EventFileLoader(str(path)).Load():
        found |= {(event.step, value.tag): value.tensor.float_val[0] for value in event.summary.value}
    assert found == {(1, "train/loss"): 2.5, (1, "valid/accuracy"): 0.25, (2, "train/loss"): 1.5}


def test_a_full_disk_names_the_file(tmp_path: Path) -> None:
    run = Run.create(tmp_path / "run", RECIPE)
    run.metrics_file = Path("/dev/full")
    with pytest.raises(OSError, match="No space left") as caught:
        run.log({"step": 1, "loss": 1.0})
    assert caught.value.filename == "/dev/full"


def test_an_error_of_the_writer_does_not_cost_the_events(tmp_path: Path) -> None:
    run = Run.create(tmp_path / "run", RECIPE)
    run.log({"step": 1, "loss": 1.0})

    def fail() -> None:
        raise Mistake("the disk is full")

    run.writer.start(fail)
    with pytest.raises(Mistake, match="the disk is full"):
        run.close()
    assert list((run.folder / "tensorboard").iterdir())


@pytest.mark.parametrize(("number", "held"), [(errno.ENOLCK, True), (errno.ENOTSUP, True), (errno.EIO, False)])
def test_a_file_system_without_locks(number: int, held: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = Run.create(tmp_path / "run", RECIPE)

    def refuse(file: object, operation: int) -> None:
        raise OSError(number, "no locks")

    monkeypatch.setattr(fcntl, "flock", refuse)
    if held:
        with run.locked():
            pass
    else:
        with pytest.raises(OSError, match="no locks"), run.locked():
            pass


def test_metrics_are_columns(tmp_path: Path) -> None:
    run = Run.create(tmp_path / "run", RECIPE)
    run.log({"step": 1, "time": 0.5, "loss": 2.0})
    run.log({"step": 2, "time": 1.0, "loss": 1.0})
    run.log({"step": 2, "time": 1.5, "valid": {"loss": 3.0, "accuracy": 0.25}})
    run.log({"step": 2, "event": "finished"})
    run.close()
    assert run.metrics() == {
        "step": [1, 2],
        "time": [0.5, 1.5],
        "loss": [2.0, 1.0],
        "valid.loss": [None, 3.0],
        "valid.accuracy": [None, 0.25],
    }
    assert repr(run) == f"<Run {run.folder}: small, step 2, finished, validation loss 3, validation accuracy 0.25>"
    assert "nothing there yet" in repr(Run(tmp_path / "none"))


def test_the_report_is_a_path_and_a_page(tmp_path: Path) -> None:
    run = Run.create(tmp_path / "run", RECIPE)
    assert "not yet written" in run.report._repr_html_()
    Path(run.report).write_text('<p class="x">é</p>', encoding="utf-8")
    assert run.report._repr_html_().startswith('<iframe srcdoc="&lt;p class=&quot;x&quot;&gt;é&lt;/p&gt;"')
    assert repr(run.report) == str(tmp_path / "run" / "report.html")
