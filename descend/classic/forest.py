"""Random forest: bagged decision trees, each of whose splits sees only a random part of the features.

    f(x) = (1/m) Σ_i tree_i(x)        tree_i grown on a bootstrap sample; √d features tried at a split (d for numbers)

The trees are scikit-learn's (`DecisionTreeClassifier`, `DecisionTreeRegressor`), the bagging and the out-of-bag
estimate ours. For big data use scikit-learn's `RandomForestClassifier`, which does the same on all cores. DLN only
names the forest; the random features are Breiman's (2001).

Systems: random-forest
"""

from __future__ import annotations

from itertools import count

import torch
from torch import Tensor

from descend.classic.ensembles import Bagged, Predictor, bag


def classifying_forest(x: Tensor, y: Tensor, trees: int = 100, seed: int = 0) -> Bagged:
    """Probabilities (n, k) from features x (n, d) and classes y (n)."""
    from sklearn.tree import DecisionTreeClassifier  # here, since it takes a second to import

    classes, states = int(y.max()) + 1, count(seed)

    def learn(x: Tensor, y: Tensor) -> Predictor:
        tree = DecisionTreeClassifier(max_features="sqrt", random_state=next(states)).fit(x.numpy(), y.numpy())
        seen = torch.from_numpy(tree.classes_)  # a bootstrap sample may lack a class

        def predict(x: Tensor) -> Tensor:
            p = torch.zeros(len(x), classes, dtype=torch.float64)
            p[:, seen] = torch.from_numpy(tree.predict_proba(x.numpy()))
            return p

        return predict

    return bag(learn, x, y, trees, seed)


def regressing_forest(x: Tensor, y: Tensor, trees: int = 100, seed: int = 0) -> Bagged:
    """Numbers (n) from features x (n, d) and numbers y (n)."""
    from sklearn.tree import DecisionTreeRegressor

    states = count(seed)

    def learn(x: Tensor, y: Tensor) -> Predictor:
        tree = DecisionTreeRegressor(random_state=next(states)).fit(x.numpy(), y.numpy())
        return lambda x: torch.from_numpy(tree.predict(x.numpy()))

    return bag(learn, x, y, trees, seed)
