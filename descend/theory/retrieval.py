"""What a search costs: how often an encoder runs for Q queries and D documents.

    together    Q · D        a cross-encoder reads every pair
    apart       Q + D        a bi-encoder reads every text once; documents before any query is asked
    re-ranked   Q + D + Q m  a bi-encoder finds m candidates for each query, a cross-encoder ranks them

Systems: cross-and-bi-encoder
"""

from __future__ import annotations

from typing import NamedTuple


class EncoderRuns(NamedTuple):
    """Runs of the encoder."""

    together: int
    apart: int
    re_ranked: int

    @property
    def ratio(self) -> float:
        """How many times more the pairs cost."""
        return self.together / self.apart


def count_runs(queries: int, documents: int, candidates: int = 0) -> EncoderRuns:
    """Of Q queries and D documents, and of m candidates for each query."""
    apart = queries + documents
    return EncoderRuns(queries * documents, apart, apart + queries * candidates)
