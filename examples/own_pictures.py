"""Your own pictures: a folder for each class.

The script draws a few hundred to have something; put the path of your folder in the place of "pictures".
Broken files, copies and odd sizes are told by name before training begins.
"""

from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw

import descend

COUNT, STEPS = 100, 150  # in the tests: 12, 3

random = np.random.default_rng(0)
for shape in ("disc", "square"):
    folder = Path("pictures", shape)
    folder.mkdir(parents=True, exist_ok=True)
    for k in range(COUNT):
        image = Image.fromarray(random.integers(0, 120, (32, 32, 3), dtype=np.uint8))
        x, y, r = random.integers(8, 24), random.integers(8, 24), random.integers(4, 8)
        draw = ImageDraw.Draw(image)
        paint = draw.ellipse if shape == "disc" else draw.rectangle
        paint([x - r, y - r, x + r, y + r], tuple(random.integers(100, 256, 3)))
        image.save(folder / f"{k:04}.png")

values = {
    "data.path": "pictures",
    "data.size": 32,
    "steps": STEPS,
    "batch": 16,
    "model.stem": 8,
    "model.widths": (8, 16),
    "model.depths": (1, 1),
}
print(descend.plan("cnn-images", values)["data"])  # what was read, what is wrong with it, what it will cost

run, result = descend.train("cnn-images", values, out="runs/pictures", quiet=True)
print("test", descend.evaluate("runs/pictures")["test"])

for answer in descend.predict("runs/pictures", "pictures/disc/0000.png", "pictures/square/0001.png", heat="heat.png"):
    print(answer["input"], answer["answers"][0])
print("where the network looked: heat.png")
