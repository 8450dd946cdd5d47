"""glove-pydoc: GloVe word vectors, from the table of which words stand together in the text that ships with Python."""

from descend.engine.loop import Loop
from descend.kinds.words import LearnWords
from descend.models.word_vectors import WordVectorsConfig
from descend.optim.rules import Adam
from descend.optim.schedules import Linear

RECIPE = LearnWords(
    about="GloVe word vectors of the Python documentation (or any text: --data.path FILE)",
    parameters=179_010,
    takes="5 s",
    model=WordVectorsConfig(width=64),
    method="glove",
    optim=Adam(lr=5e-3),
    schedule=Linear(),
    loop=Loop(steps=400, batch=4096, eval_every=50, save_every=200),
)
