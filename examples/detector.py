"""A detector on your own boxes, in COCO's or YOLO's form.

The script draws a small set in COCO's form. `data.path` takes a folder with annotations.json, a data.yaml,
or VOC's folders; the form is recognised.
"""

import json
from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw

import descend

COUNT, STEPS = 120, 300  # in the tests: 10, 2
SIDE = 64

random = np.random.default_rng(0)
folder = Path("boxes")
(folder / "images").mkdir(parents=True, exist_ok=True)
images, annotations = [], []
for k in range(COUNT):
    image = Image.new("RGB", (SIDE, SIDE), (40, 40, 60))
    for category in random.integers(1, 3, random.integers(1, 4)):
        w, h = random.integers(12, 28, 2)
        x, y = random.integers(0, SIDE - w), random.integers(0, SIDE - h)
        paint = ImageDraw.Draw(image).ellipse if category == 1 else ImageDraw.Draw(image).rectangle
        paint([x, y, x + w, y + h], tuple(random.integers(120, 256, 3)))
        annotations.append({
            "id": len(annotations) + 1, "image_id": k, "category_id": int(category), "iscrowd": 0,
            "bbox": [int(x), int(y), int(w), int(h)], "area": int(w * h),
        })  # fmt: skip
    image.save(folder / "images" / f"{k:04}.png")
    images.append({"id": k, "file_name": f"{k:04}.png", "width": SIDE, "height": SIDE})
categories = [{"id": 1, "name": "disc"}, {"id": 2, "name": "block"}]
coco = {"images": images, "annotations": annotations, "categories": categories}
(folder / "annotations.json").write_text(json.dumps(coco), encoding="utf-8")

run, result = descend.train(
    "yolo-scenes", {"data.path": "boxes", "data.size": SIDE, "steps": STEPS, "batch": 8}, out="runs/boxes", quiet=True
)
print("COCO's mAP on validation images:", result.best)

for answer in descend.predict("runs/boxes", "boxes/images/0000.png", threshold=0.3, heat="found.png"):
    print(answer["input"], answer["objects"])

print(descend.convert("boxes", "boxes-yolo", to="yolo"))  # the same set in another form
