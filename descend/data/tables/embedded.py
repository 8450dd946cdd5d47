"""Tables inside the package, as text like a user's file: scikit-learn's, points in the plane, and homes.

    homes    log price = 7.2 + 0.9 log(area) + district + 0.08 balcony − 0.004 age + 0.0001 days + noise
             noise: normal, width 0.1; with gaps, categories, truth values and dates

Homes are made up by this law, so the best that any model can do is known: half of the prices
lie more than 6.7% off the law.
"""

from __future__ import annotations

from datetime import date, timedelta

import numpy as np

from descend.data.tables.records import Records
from descend.data.toys import plane

SKLEARN = {"wine": "cultivar", "breast-cancer": "diagnosis", "iris": "species", "diabetes": "progression"}
PLANE: dict[str, tuple[plane.Cloud, float]] = {
    "moons": (plane.moons, 0.2),
    "circles": (plane.circles, 0.1),
    "xor": (plane.xor, 0.15),
    "factory": (plane.factory, 0.15),
}
POINTS = 1000
HOMES = 2000
NOISE = 0.1
DISTRICTS = {"Harbour": 0.35, "Old town": 0.3, "University": 0.15, "Gardens": 0.1, "Station": -0.1, "Mills": -0.25}


def table(name: str) -> Records:
    """An embedded table; its last column is the one to predict."""
    if name in SKLEARN:
        return from_sklearn(name)
    if name in PLANE:
        cloud, noise = PLANE[name]
        x, y = cloud(POINTS, noise, 0)
        columns = {"x1": texts(x[:, 0].numpy()), "x2": texts(x[:, 1].numpy()), "class": [str(c) for c in y.tolist()]}
    else:
        columns = homes()
    return Records(columns, list(range(2, 2 + len(next(iter(columns.values()))))), f"the embedded table {name}")


def texts(values: np.ndarray) -> list[str]:
    return [repr(float(v)) for v in values]


def from_sklearn(name: str) -> Records:
    """One of scikit-learn's tables."""
    from sklearn import datasets  # here, since it takes a second to import

    if name == "diabetes":
        bunch = datasets.load_diabetes(scaled=False)
        y = texts(bunch.target)
    else:
        bunch = getattr(datasets, f"load_{name.replace('-', '_')}")()
        y = [str(bunch.target_names[c]) for c in bunch.target]
    columns = {str(f): texts(bunch.data[:, j]) for j, f in enumerate(bunch.feature_names)}
    return Records({**columns, SKLEARN[name]: y}, list(range(2, 2 + len(y))), f"the embedded table {name}")


def homes(n: int = HOMES, seed: int = 0) -> dict[str, list[str]]:
    """Homes and their prices, with the faults of real tables: gaps in numbers and in names."""
    random = np.random.default_rng(seed)
    area = np.exp(random.normal(4.3, 0.35, n))
    names = list(DISTRICTS)
    district = random.choice(len(names), n, p=[0.1, 0.15, 0.2, 0.25, 0.18, 0.12])
    balcony, age = random.random(n) < 0.4, random.integers(0, 90, n)
    days = random.integers(0, 1460, n)
    effect = np.array([DISTRICTS[name] for name in names])[district]
    law = 7.2 + 0.9 * np.log(area) + effect + 0.08 * balcony - 0.004 * age + 0.0001 * days
    price = np.exp(law + NOISE * random.normal(size=n))
    sold = [(date(2020, 1, 1) + timedelta(days=int(d))).isoformat() for d in days]
    gap = random.random((2, n)) < 0.06
    return {
        "area": [f"{a:.1f}" for a in area],
        "district": ["" if gone else names[d] for d, gone in zip(district, gap[0], strict=True)],
        "balcony": ["yes" if b else "no" for b in balcony],
        "age": ["" if gone else str(a) for a, gone in zip(age, gap[1], strict=True)],
        "sold": sold,
        "price": [f"{p:.0f}" for p in price],
    }
