"""skip-gram-pydoc: word vectors by skip-gram with negative sampling, from the text that ships with Python."""

from descend.engine.loop import Loop
from descend.kinds.words import LearnWords
from descend.models.word_vectors import WordVectorsConfig
from descend.optim.rules import Adam
from descend.optim.schedules import Linear

RECIPE = LearnWords(
    about="skip-gram word vectors of the Python documentation (or any text: --data.path FILE)",
    parameters=176_256,
    takes="10 s",
    model=WordVectorsConfig(width=64),
    optim=Adam(lr=5e-3),
    schedule=Linear(),
    loop=Loop(steps=400, batch=4096, eval_every=50, save_every=200),
)
