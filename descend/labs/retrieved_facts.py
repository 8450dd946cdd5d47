"""A small language model that never learned a fact answers it from what a search finds, and not without.

    corpus      one sentence for each of 16 people: ".. likes .."; nobody of it is in the training data
    index       BM25 over the sentences; the question finds the 2 best passages
    prompt      Question: what does .. like ?  Context: Chunk 1: ..  Chunk 2: ..  Answer:        as DLN prints it
    y           the model's next word

In training every prompt has other facts, drawn at random, so that nothing but reading the context helps; a quarter of
the prompts have no context at all, with answers that nobody can know. Then the facts of the corpus are all changed, the
index is brought up to date, and the same model is asked again. It is not trained for that.

The sizes and the rate were chosen on seed 10.

Systems: rag
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Sequence
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from descend.inference.passage_index import PassageIndex, update_index
from descend.labs._evidence import AtLeast, AtMost
from descend.labs._panels import COLOURS, finish, make_panels
from descend.labs._train import train
from descend.models.llama import Llama, LlamaConfig
from descend.text.prompts import ground_prompt
from descend.text.tokenizer import Tokenizer

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ENTRIES = ("S940-DLD.163", "DLN-B.84", "MF-B.58")
PRINTED = (
    "Answers with retrieval are better than without; a new or changed document counts after indexing alone, without"
    " any training."
)
CLAIM = (
    "On facts that it was not trained on, a small language model answers with retrieved passages and not without; when"
    " the documents change, its answers change after indexing alone."
)
PREDICTIONS = (
    AtLeast("with", 0.9, "Right answers with the retrieved passages; less refutes the claim."),
    AtMost("without", 0.2, "Right answers without passages; one of 16 is chance, more would mean that it knew."),
    AtLeast("after the change", 0.9, "Right answers when all documents have changed and only the index is new."),
    AtMost("old answers", 0.1, "After the change: answers that are still those of the old documents."),
)
CONTROLS = (AtLeast("recall", 1.0, "Whether the right passage is always among the two that are found."),)
SCOPE = "16 people and 16 things in sentences of one form, 2 passages, a LLaMA of 2 blocks and width 64."
PEOPLE = tuple(map("".join, product("bdfg", "aeio")))
THINGS = tuple(map("".join, product("lmnp", "aeio")))
WORDS = ("question", ":", "what", "does", "like", "?", "context", "chunk", "1", "2", "likes", ".", "answer")
TOP, BATCH, RATE = 2, 64, 3e-3
BUDGET = 16.0
PRICE = 80  # steps that a second of one core buys
LEAST = 600  # steps below which nothing is said
CLOSED = 4  # every so many steps one without context


def ask(name: str) -> str:
    return f"what does {name} like ?"


def state(name: str, thing: str) -> str:
    return f"{name} likes {thing} ."


def without_context(question: str) -> str:
    """The same prompt, with nothing that was found."""
    return f"Question:\n{question}\n\nAnswer:"


class Draws:
    """Prompts with facts that the corpus does not have, and the tokens that answer them."""

    def __init__(self, tokenizer: Tokenizer, corpus: dict[str, str], seed: int):
        self.chance = torch.Generator().manual_seed(seed)
        self.people, self.things, self.known = (
            encode_one(tokenizer, words) for words in (PEOPLE, THINGS, [corpus[name] for name in PEOPLE])
        )
        chunks = [state(*fact) for fact in zip(PEOPLE[1 : TOP + 1], THINGS, strict=False)]
        read = lambda prompt: torch.tensor(tokenizer.encode(prompt))
        self.forms = {
            False: read(ground_prompt(ask(PEOPLE[0]), chunks)),
            True: read(without_context(ask(PEOPLE[0]))),
        }

    def draw(self, closed: bool) -> tuple[Tensor, Tensor]:
        """Tokens (b, t) of prompts, and the answers (b)."""
        who = torch.rand(BATCH, len(PEOPLE), generator=self.chance).argsort(1)[:, :TOP]
        what = torch.randint(len(THINGS) - 1, (BATCH, TOP), generator=self.chance)
        things = self.things[what]
        things = torch.where(things == self.known[who], self.things[-1], things)
        things = torch.where(things == self.known[who], self.things[0], things)  # where the last one is known itself
        asked = torch.randint(TOP, (BATCH, 1), generator=self.chance)
        form = self.forms[closed]
        x = form.repeat(BATCH, 1)
        x[:, form == self.people[0]] = self.people[who.gather(1, asked)]
        for i in range(0 if closed else TOP):
            x[:, form == self.people[i + 1]] = self.people[who[:, i : i + 1]]
            x[:, form == self.things[i]] = things[:, i : i + 1]
        return x, things.gather(1, asked)[:, 0]


def draw_other(thing: str, chance: torch.Generator) -> str:
    """Another thing than this one."""
    others = [one for one in THINGS if one != thing]
    return others[int(torch.randint(len(others), (1,), generator=chance))]


def make_model(tokenizer: Tokenizer, corpus: dict[str, str], steps: int, seed: int) -> Llama:
    """A model that reads the context for its answer."""
    torch.manual_seed(seed)
    model = Llama(LlamaConfig(tokenizer.vocab, 48, 64, 2, 4, 4, 128, tied=True))
    draws, step = Draws(tokenizer, corpus, seed), iter(range(steps))

    def loss() -> Tensor:
        x, y = draws.draw(next(step) % CLOSED == 0)
        return cross_entropy(model(x)[:, -1], y)

    train(model, loss, steps, RATE)
    return model.eval()


def predict(model: nn.Module, tokenizer: Tokenizer, prompts: Sequence[str]) -> Tensor:
    """Logits (n, v) of the word after each prompt; all have the same length."""
    logits: Tensor = model(torch.tensor(tokenizer.encode_many(prompts)))[:, -1]
    return logits


def encode_one(tokenizer: Tokenizer, words: Sequence[str]) -> Tensor:
    """Words of one token each (n)."""
    return torch.tensor(tokenizer.encode_many(words))[:, 0]


@torch.no_grad()
def say(model: nn.Module, tokenizer: Tokenizer, prompts: Sequence[str]) -> list[str]:
    """The most likely word after each prompt."""
    return [tokenizer.decode([word]) for word in predict(model, tokenizer, prompts).argmax(1).tolist()]


def retrieve(place: Path, corpus: dict[str, str]) -> list[list[str]]:
    """The passages that are found for each question, after the corpus was written and indexed."""
    (place / "docs").mkdir(exist_ok=True)
    lines = [json.dumps({"text": state(name, thing)}) for name, thing in corpus.items()]
    (place / "docs/facts.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    update_index(place / "docs", place / "index")
    index = PassageIndex.open(place / "index")
    return [[found.passage.text for found in index.search(ask(name), TOP)] for name in PEOPLE]


def measure(seed: int, budget: float) -> dict[str, Any]:
    """Right answers with and without retrieval, before and after the documents change."""
    steps = max(8, round(PRICE * budget))
    chance = torch.Generator().manual_seed(seed + 1)
    old = {name: draw_other("", chance) for name in PEOPLE}
    new = {name: draw_other(thing, chance) for name, thing in old.items()}
    tokenizer = Tokenizer.of_words([*WORDS, *PEOPLE, *THINGS])
    model = make_model(tokenizer, old, steps, seed)
    found: dict[str, Any] = {"steps": steps}
    with tempfile.TemporaryDirectory() as folder:
        for when, corpus in (("before", old), ("after", new)):
            passages = retrieve(Path(folder), corpus)
            prompts = [ground_prompt(ask(name), texts) for name, texts in zip(PEOPLE, passages, strict=True)]
            said = say(model, tokenizer, prompts)
            there = [state(n, corpus[n]) in texts for n, texts in zip(PEOPLE, passages, strict=True)]
            found[when] = {"right": share(said, corpus), "old": share(said, old), "recall": sum(there) / len(there)}
    found["without"] = share(say(model, tokenizer, [without_context(ask(name)) for name in PEOPLE]), old)
    return found


def share(said: Sequence[str], corpus: dict[str, str]) -> float:
    """Of the answers, those of this corpus."""
    return sum(word == corpus[name] for name, word in zip(PEOPLE, said, strict=True)) / len(PEOPLE)


def needs(numbers: dict[str, Any]) -> float:
    """Seconds for as many steps as it takes to learn anything."""
    return LEAST / PRICE if numbers["steps"] < LEAST else 0.0


def effects(numbers: dict[str, Any]) -> dict[str, float]:
    return {
        "with": numbers["before"]["right"],
        "without": numbers["without"],
        "after the change": numbers["after"]["right"],
        "old answers": numbers["after"]["old"],
        "recall": min(numbers[when]["recall"] for when in ("before", "after")),
    }


def figure(numbers: dict[str, Any]) -> Figure:
    """Right answers in the three cases."""
    fig, (axes,) = make_panels(1)
    found = {
        "without": numbers["without"],
        "with": numbers["before"]["right"],
        "documents\nchanged": numbers["after"]["right"],
    }
    axes.bar(list(found), list(found.values()), color=COLOURS[0], width=0.5)
    axes.axhline(1 / len(THINGS), color="0.6", ls=":", label="chance")
    axes.set_ylim(0, 1.03)
    axes.set_ylabel("share of right answers")
    finish(axes, "what the context is worth", "retrieved passages")
    return fig
