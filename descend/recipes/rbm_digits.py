"""rbm-digits: a restricted Boltzmann machine of binary digits, trained by persistent chains of Gibbs sampling."""

from descend.data.images.digits import Digits
from descend.engine.loop import Loop
from descend.kinds.boltzmann import BitChains, BoltzmannImages
from descend.models.rbm import RBMConfig
from descend.optim.rules import SGD
from descend.optim.schedules import Linear

RECIPE = BoltzmannImages(
    about="a restricted Boltzmann machine of digits as bits, by persistent contrastive divergence",
    parameters=8_384,
    takes="20 s",
    model=RBMConfig(),
    data=Digits(),
    gibbs=BitChains(),
    optim=SGD(lr=0.2, momentum=0.5),
    schedule=Linear(),
    loop=Loop(steps=4000, batch=64, eval_every=500, save_every=1000, watch="max pseudo_likelihood"),
)
