"""mlp-lbfgs-digits: a multilayer perceptron learns digits by a second-order method, every step on all the images."""

from descend.data.images.digits import Digits
from descend.engine.loop import Loop
from descend.kinds.images import ClassifyImages
from descend.models.mlp import MLPConfig
from descend.optim.rules import LBFGS
from descend.optim.schedules import Constant

RECIPE = ClassifyImages(
    about="a multilayer perceptron on handwritten digits, by full-batch L-BFGS",
    parameters=9_610,
    takes="2 s",
    model=MLPConfig(hidden=(128,), activations=("tanh",)),
    data=Digits(),
    optim=LBFGS(inner=5),
    schedule=Constant(),
    loop=Loop(steps=20, batch=0, eval_every=1, save_every=5, watch="max accuracy"),
)
