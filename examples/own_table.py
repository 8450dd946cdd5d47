"""Your own table: a CSV with gaps, words and numbers.

Columns are read by their content; gaps are filled in by what the training part has. Put your file in the place of
"homes.csv", and name the column to predict.
"""

import csv
from pathlib import Path

import numpy as np

import descend

ROWS, STEPS = 600, 300  # in the tests: 120, 5

random = np.random.default_rng(0)
with Path("homes.csv").open("w", newline="", encoding="utf-8") as file:
    table = csv.writer(file)
    table.writerow(["area", "rooms", "town", "price"])
    for _ in range(ROWS):
        area, town = random.uniform(30, 200), random.choice(["Ulm", "Bonn", "Kiel"])
        price = 3000 * area * {"Ulm": 1.0, "Bonn": 1.3, "Kiel": 0.8}[town] * random.lognormal(0, 0.1)
        known = f"{area:.0f}" if random.random() > 0.05 else ""  # a gap
        table.writerow([known, 1 + int(area / 25), town, round(price)])

run, result = descend.train(
    "mlp-csv", {"data.path": "homes.csv", "data.target": "price", "steps": STEPS}, out="runs/homes", quiet=True
)
print("test", descend.evaluate("runs/homes")["test"])

Path("new.csv").write_text("area,rooms,town\n80,3,Bonn\n,2,Kiel\n", encoding="utf-8")
for answer in descend.predict("runs/homes", "new.csv", out="answers.csv", replace=True):
    print(answer)
