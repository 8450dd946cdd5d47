"""verify-digits: a small DeepFace says of two handwritten digits whether they are the same."""

from descend.data.images.digits import Digits
from descend.data.images.warp import Warp
from descend.engine.loop import Loop
from descend.kinds.verify import VerifyPairs
from descend.models.deepface import DeepFaceConfig
from descend.optim.rules import AdamW
from descend.optim.schedules import Cosine

RECIPE = VerifyPairs(
    about="a locally connected network says whether two digits are the same (your faces: --data.path FOLDER)",
    parameters=63_386,
    takes="1 min",
    model=DeepFaceConfig(
        convs=(16, 16), kernels=(3, 3), pool=1, local=8, local_kernels=(3,), strides=(1,), width=64, dropout=0.2
    ),
    data=Digits(size=12, warp=Warp(shift=0.06, turn=10.0, zoom=0.1)),
    optim=AdamW(lr=2e-3, weight_decay=0.05),
    schedule=Cosine(warmup=50, floor=0.01),
    loop=Loop(steps=600, batch=64, eval_every=100, save_every=300, watch="max accuracy"),
)
