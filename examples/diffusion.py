"""Train a diffusion model, sample it with two samplers.

Points in the plane take a minute; for images, `ddpm-digits` or your own with `{"data.path": "photos/"}`.
"""

import torch

import descend

STEPS, COUNT, WIDTH, DEPTH = 1500, 500, 128, 4  # in the tests: 3, 8, 2, 1

run, result = descend.train(
    "ddpm-moons", {"steps": STEPS, "model.width": WIDTH, "model.depth": DEPTH}, out="runs/moons", quiet=True
)
print("the samples of each evaluation are in", run.folder / "samples")

points = descend.sample("runs/moons", COUNT, seed=1)  # ancestral sampling, all steps
quick = descend.sample("runs/moons", COUNT, seed=1, method="ddim", steps=40)
print("mean and spread of all steps:    ", points.mean(0).tolist(), points.std(0).tolist())
print("mean and spread of a fifth of them:", quick.mean(0).tolist(), quick.std(0).tolist())

again = descend.sample("runs/moons", 1, seed=1, first=3)  # one of them, made again by its number
print("the same point:", torch.allclose(again[0], points[3], atol=1e-5))
