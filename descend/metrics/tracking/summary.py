"""All scores of tracking at once, of one video or of several as one."""

from __future__ import annotations

from collections.abc import Sequence

from descend.metrics.tracking.clear import FOREVER, add_clear, score_clear
from descend.metrics.tracking.hota import add_hota, score_hota
from descend.metrics.tracking.identity import add_identity, score_identity
from descend.metrics.tracking.sequence import Trajectories, compare_trajectories


def score_tracks(
    videos: Sequence[tuple[Trajectories, Trajectories]], tau: float = 0.5, memory: int = FOREVER
) -> dict[str, float]:
    """Scores of (true, found) trajectories: mota, motp, idf1, idp, idr, hota, deta, assa, loca, and the counts."""
    compared = [compare_trajectories(truth, found) for truth, found in videos]
    clear = add_clear([score_clear(video, tau, memory) for video in compared])
    identity = add_identity([score_identity(video, tau) for video in compared])
    hota = add_hota([score_hota(video) for video in compared])
    averages = {name: float(getattr(hota, name).mean()) for name in ("hota", "deta", "assa", "loca")}
    return {
        "mota": clear.mota,
        "motp": clear.motp,
        "idf1": identity.f1,
        "idp": identity.precision,
        "idr": identity.recall,
        **averages,
        "precision": clear.precision,
        "recall": clear.recall,
        "switches": clear.switches,
        "fragmentations": clear.fragmentations,
        "misses": clear.misses,
        "false_positives": clear.false_positives,
        "mostly_tracked": clear.mostly_tracked,
        "partly_tracked": clear.partly_tracked,
        "mostly_lost": clear.mostly_lost,
    }
