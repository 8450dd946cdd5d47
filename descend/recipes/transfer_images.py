"""transfer-images: your own images, a few of each class, with what a network has learned from others.

descend train transfer-images --data.path FOLDER --start.path RUN_OR_FOLDER                    all layers, at a tenth
descend train transfer-images --data.path FOLDER --start.path RUN_OR_FOLDER --start.compare    and from scratch
descend train transfer-images --data.path FOLDER --start.path RUN_OR_FOLDER --start.freeze all the head alone

The images get the size, colours and scale that the network was trained on; --data.size asks for another.
"""

from descend.data.images.source import ImageSource
from descend.engine.loop import Loop
from descend.kinds.images import ClassifyImages
from descend.models.resnet import ResNetConfig
from descend.optim.rules import AdamW
from descend.optim.schedules import Cosine

RECIPE = ClassifyImages(
    about="your own images (--data.path FOLDER) from a trained network (--start.path RUN or public folder)",
    parameters=1_231_782,
    takes="30 s",
    model=ResNetConfig(stem=32, widths=(32, 64, 128, 256), depths=(1, 1, 1, 1), block="basic"),
    data=ImageSource(augment="photographs"),
    optim=AdamW(lr=2e-3, weight_decay=0.05),
    schedule=Cosine(warmup=20, floor=0.01),
    loop=Loop(steps=200, batch=32, eval_every=50, save_every=100, watch="max accuracy"),
)
