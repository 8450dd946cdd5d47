"""transfer-scenes: new classes from a few images each, with what was learned from many images of others.

descend train transfer-scenes --data.half first --data.each 0 --steps 600 --out runs/first
descend train transfer-scenes --start.path runs/first                                          all layers, at a tenth
descend train transfer-scenes --start.path runs/first --start.freeze all                       the head alone
"""

from descend.data.images.few_images import FewImages
from descend.engine.loop import Loop
from descend.kinds.images import ClassifyImages
from descend.models.resnet_cifar import ResNetCifarConfig
from descend.optim.rules import AdamW
from descend.optim.schedules import Cosine

RECIPE = ClassifyImages(
    about="a few images of new classes, from scratch or from --start.path RUN; your own: --data.path FOLDER",
    parameters=76_200,
    takes="20 s",
    model=ResNetCifarConfig(layers=8),
    data=FewImages(),
    optim=AdamW(lr=5e-3, weight_decay=0.05),
    schedule=Cosine(warmup=20, floor=0.01),
    loop=Loop(steps=200, batch=60, eval_every=50, save_every=100, watch="max accuracy"),
)
