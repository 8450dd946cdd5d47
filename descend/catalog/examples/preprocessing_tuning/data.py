"""Worked examples of the family preprocessing-tuning: encodings and scaling."""

from __future__ import annotations

import numpy as np
import torch

from descend.catalog.examples import Compute, Inputs, real
from descend.data.tables.encoding import from_signs, to_signs
from descend.data.tables.scaling import MinMax, Standardize, Whiten, error_surface


def labels(i: Inputs) -> Inputs:
    signs = to_signs(torch.tensor(i["y01"]))
    return {"y_pm1": signs, "back": from_signs(signs)}


def standardize_and_minmax(i: Inputs) -> Inputs:
    x = real(i["x"])[:, None]
    scale, squeeze = Standardize.fit(x, "train"), MinMax.fit(x, "train")
    return {"mean": scale.mean[0], "std": scale.std[0], "z": scale(x)[:, 0], "minmax": squeeze(x)[:, 0]}


def whitening(i: Inputs) -> Inputs:
    """Correlated rows of our own: the catalogue names its random stream, not its numbers."""
    random = np.random.default_rng(0)
    x = torch.from_numpy(random.normal(size=(i["samples"], i["dim"])) @ random.normal(size=(i["dim"], i["dim"])))
    white = Whiten.fit(x, "train")(x)
    return {"condition_after": torch.linalg.cond(error_surface(white))}


EXAMPLES: dict[str, Compute] = {
    "MF-N-labels": labels,
    "MF-14.1-standardize-minmax": standardize_and_minmax,
    "DLN-Whitening": whitening,
}

SET_ASIDE: dict[str, str] = {
    "DLN-Whitening:condition_before": "belongs to random rows whose numbers are not given",
    "DLN-Whitening:max_abs_cov_minus_I": "a rounding error of the last digit; a test bounds it",
}
