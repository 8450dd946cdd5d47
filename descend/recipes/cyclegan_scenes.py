"""cyclegan-scenes: scenes change the colour of their object; no pair is ever shown, and the true map is known."""

from descend.engine.loop import Loop
from descend.kinds.game import Players
from descend.kinds.translate_images import ScenePairs, TranslateSceneDomains
from descend.models.cyclegan import CycleGANConfig
from descend.models.patchgan import PatchGANConfig
from descend.optim.rules import Adam
from descend.optim.schedules import Linear

RECIPE = TranslateSceneDomains(
    about="CycleGAN on two domains of scenes: the colours of shapes are translated without pairs",
    parameters=64_966,
    takes="2 min",
    model=CycleGANConfig(width=16, halvings=1, blocks=1),
    patches=PatchGANConfig(width=16, depth=2, norm="instance"),
    data=ScenePairs(source="recolour", side=16),
    optim=Players(d=Adam(lr=2e-3, betas=(0.5, 0.99)), g=Adam(lr=2e-3, betas=(0.5, 0.99))),
    schedule=Linear(),
    cycle=5.0,
    loop=Loop(steps=1500, batch=8, eval_every=150, save_every=500, watch="max recovered"),
)
