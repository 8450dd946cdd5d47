"""pix2pix-scenes: flat label images become shaded scenes, learned from pairs; the true colours are known."""

from descend.engine.loop import Loop
from descend.kinds.game import Players
from descend.kinds.translate_images import ScenePairs, TranslateScenes
from descend.models.patchgan import PatchGANConfig
from descend.models.pix2pix import Pix2PixConfig
from descend.optim.rules import Adam
from descend.optim.schedules import Linear

RECIPE = TranslateScenes(
    about="pix2pix on scenes: label images to shaded images, with a PatchGAN of 34 pixels",
    parameters=387_747,
    takes="1 min",
    model=Pix2PixConfig(width=16, depth=4),
    patches=PatchGANConfig(width=16, depth=2),
    data=ScenePairs(source="labels", side=32),
    optim=Players(d=Adam(lr=2e-4, betas=(0.5, 0.999)), g=Adam(lr=1e-3, betas=(0.5, 0.999))),
    schedule=Linear(),
    loop=Loop(steps=800, batch=16, eval_every=100, save_every=400, watch="min l1"),
)
