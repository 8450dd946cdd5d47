"""localise-scenes: a backbone with two heads says what the one object of a scene is, and draws its box."""

from descend.engine.loop import Loop
from descend.kinds.localise import LocaliseImages, OneObject
from descend.models.localiser import LocaliserConfig
from descend.optim.rules import AdamW
from descend.optim.schedules import Cosine

RECIPE = LocaliseImages(
    about="predict class and box of the single object in a generated scene (smooth L1 on the box)",
    parameters=40_474,
    takes="1 min",
    model=LocaliserConfig(),
    data=OneObject(),
    optim=AdamW(lr=5e-3, weight_decay=0.05),
    schedule=Cosine(warmup=50, floor=0.01),
    loop=Loop(steps=800, batch=64, eval_every=100, save_every=200, watch="max iou"),
)
