"""cnn-images: your own images, one folder per class: --data.path FOLDER. Else generated scenes, by shape."""

from descend.data.images.source import ImageSource
from descend.engine.loop import Loop
from descend.kinds.images import ClassifyImages
from descend.models.resnet import ResNetConfig
from descend.optim.rules import AdamW
from descend.optim.schedules import Cosine

RECIPE = ClassifyImages(
    about="a small residual network on your own images (--data.path FOLDER of class folders)",
    parameters=1_231_782,
    takes="3 min",
    model=ResNetConfig(stem=32, widths=(32, 64, 128, 256), depths=(1, 1, 1, 1), block="basic"),
    data=ImageSource(size=64, augment="photographs"),
    optim=AdamW(lr=2e-3, weight_decay=0.05),
    schedule=Cosine(warmup=100, floor=0.01),
    loop=Loop(steps=800, batch=64, ema=0.99, eval_every=100, save_every=400, watch="max accuracy"),
)
