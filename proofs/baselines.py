"""What one would try without a neural network: HOG with a support vector machine, tf-idf with logistic regression, and
gradient boosting, each with scikit-learn's own defaults or a small search on the training part."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Classes = Sequence[int] | Sequence[str]
BINS, CELL = 9, 8  # orientations, pixels of a cell


def describe_gradients(images: Array) -> Array:
    """Histograms of oriented gradients of grey images (n, h, w): cells of 8 × 8 pixels with 9 orientations, votes
    shared by neighbouring orientations, blocks of 2 × 2 cells with L2-Hys normalization (Dalal and Triggs, 2005)."""
    dy, dx = np.gradient(images, axis=(1, 2))
    length, angle = np.hypot(dx, dy), np.arctan2(dy, dx) % np.pi * BINS / np.pi
    low = np.floor(angle).astype(int) % BINS
    share = angle - np.floor(angle)
    n, h, w = images.shape[0], images.shape[1] // CELL, images.shape[2] // CELL
    cells = np.zeros((n, h, w, BINS))
    for k in range(BINS):
        votes = length * ((low == k) * (1 - share) + ((low + 1) % BINS == k) * share)
        cells[..., k] = votes[:, : h * CELL, : w * CELL].reshape(n, h, CELL, w, CELL).sum(axis=(2, 4))
    parts = [cells[:, i : h - 1 + i, j : w - 1 + j] for i in (0, 1) for j in (0, 1)]
    blocks = np.concatenate(parts, axis=-1)
    for most in (0.2, 1.0):
        blocks = (blocks / np.sqrt((blocks**2).sum(-1, keepdims=True) + 1e-6)).clip(max=most)
    return blocks.reshape(n, -1)


def score_hog(train: Array, y: Classes, test: Array, truth: Classes) -> float:
    """Accuracy of an RBF support vector machine on HOG of images (n, h, w, 3); C chosen by cross-validation."""
    from sklearn.model_selection import GridSearchCV
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler
    from sklearn.svm import SVC

    model = GridSearchCV(make_pipeline(StandardScaler(), SVC(gamma="scale")), {"svc__C": [1, 3, 10]}, cv=3)
    model.fit(describe_gradients(train.mean(-1)), y)
    return float(model.score(describe_gradients(test.mean(-1)), truth))


def score_tf_idf(train: Sequence[str], y: Classes, test: Sequence[str], truth: Classes) -> float:
    """Accuracy of logistic regression on words and pairs of words; its penalty chosen by cross-validation."""
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import GridSearchCV
    from sklearn.pipeline import make_pipeline

    words = TfidfVectorizer(ngram_range=(1, 2), min_df=2, sublinear_tf=True)
    found = {"logisticregression__C": [1, 4, 16, 64]}
    model = GridSearchCV(make_pipeline(words, LogisticRegression(max_iter=1000)), found, cv=3)
    model.fit(train, y)
    return float(model.score(test, truth))


def score_boosting(train: Array, y: Array, test: Array, truth: Array) -> float:
    """R² of gradient boosted trees (histograms, as LightGBM); gaps and whole numbers for categories as they are."""
    from sklearn.ensemble import HistGradientBoostingRegressor

    model = HistGradientBoostingRegressor(max_iter=300, early_stopping=True, random_state=0)
    return float(model.fit(train, y).score(test, truth))
