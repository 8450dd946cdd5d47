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
    parameters=138_950,
    takes="8 min",
    model=CycleGANConfig(width=16, halvings=1, blocks=3),
    patches=PatchGANConfig(width=32, depth=2, norm="instance"),
    data=ScenePairs(source="recolour", side=16),
    optim=Players(d=Adam(lr=1e-3, betas=(0.5, 0.999)), g=Adam(lr=1e-3, betas=(0.5, 0.999))),
    schedule=Linear(),
    loop=Loop(steps=3000, batch=16, eval_every=250, save_every=500, watch="max recovered"),
)
