"""Worked examples of the family generation."""

from __future__ import annotations

import math
from itertools import product

import torch
from torch import Tensor

from descend.catalog.examples import Compute, Inputs, real
from descend.ops.actions import Categorical
from descend.sampling.beam import Beam, beam_search
from descend.sampling.decoder import Recompute
from descend.sampling.filters import GREEDY, temperature, top_k, top_p
from descend.sampling.generate import generate
from descend.sampling.sequence import exhaustive_search


class Tree:
    """The book's tree of words as a language model: p(next | last word); "The" comes first."""

    def __init__(self, first: dict[str, float], second: dict[str, dict[str, float]]):
        self.words = ["The", *first, *(word for after in second.values() for word in after)]
        self.log_p = torch.full((len(self.words),) * 2, -math.inf, dtype=torch.float64)
        for last, after in {"The": first, **second}.items():
            for word, p in after.items():
                self.log_p[self.words.index(last), self.words.index(word)] = math.log(p)
        self.scored: list[int] = []  # how many continuations each call of the model offered

    def logits(self, tokens: Tensor) -> Tensor:
        self.scored.append(int(self.log_p[tokens[:, -1]].isfinite().sum()))
        # What follows a leaf is never looked at, but a row without any word has no softmax.
        return self.log_p[tokens].where(self.log_p[tokens].isfinite().any(-1, keepdim=True), 0.0)

    def decoder(self) -> Recompute:
        return Recompute(self.logits, context=3)

    def says(self, tokens: list[int]) -> list[str]:
        return [self.words[t] for t in tokens]


def greedy_choice(i: Inputs) -> Inputs:
    words, p = list(i["p"]), real(list(i["p"].values()))
    return {
        "next_token": words[int(GREEDY.draw(p.log()[None]))],
        "listed_mass": p.sum(),
        "mass_left_for_other_tokens": 1 - p.sum(),
    }


def beam(i: Inputs) -> Inputs:
    tree = Tree(i["P1_from_cited_blog_figure"], i["P2_from_cited_blog_figure"])
    start = [[0]]
    [found] = beam_search(tree.decoder(), start, beams=i["B"], tokens=2)
    offered = tree.scored[-1]
    said = {" ".join(["The", *tree.says(h.tokens)]): math.exp(h.log_p) for h in found}
    [first] = beam_search(tree.decoder(), start, beams=i["B"], tokens=1)
    return {
        **{words: said[words] for words in ("The dog has", "The nice woman")},
        "kept_after_step1": [word for h in first for word in tree.says(h.tokens)],
        "beam_best": tree.says(found[0].tokens),
        "greedy_best": tree.says(generate(tree.decoder(), start, tokens=2)[0]),
        "exhaustive_best": tree.says(exhaustive_search(tree.decoder(), start, tokens=2)[0]),
        "candidates_scored_by_beam": offered,
    }


def costs(i: Inputs) -> Inputs:
    k, n, b = i["K"], i["N"], i["B"]
    scored: list[int] = []

    def uniform(tokens: Tensor) -> Tensor:
        scored.append(k * len(tokens))
        return torch.zeros(*tokens.shape, k)

    generate(Recompute(uniform, context=n + 1), [[0]], tokens=n)
    candidates = Beam(torch.zeros(1, k), beams=b, tokens=n, alpha=1.0, stop=()).next_log_p.numel()
    return {
        "exhaustive": len(list(product(range(k), repeat=n))),
        "greedy": sum(scored),
        "beam": candidates * n,
        "expansions_with_all_K_tokens": candidates,
        "B_squared": b**2,
    }


def temperature_limits(i: Inputs) -> Inputs:
    z, names = real(i["p"]).log(), ("T_1", "T_0.5", "T_0.01", "T_1e6")
    found = {name: temperature(z, t).softmax(-1) for name, t in zip(names, i["T"], strict=True)}
    return found | {"uniform": temperature(z, math.inf).softmax(-1)[0]}


def mf_temperature(i: Inputs) -> Inputs:
    z = {tau: temperature(real(i["logits"]), tau) for tau in i["tau"]}
    entropy = [Categorical(x).entropy() for x in z.values()]
    return {f"p_{tau}": x.softmax(-1) for tau, x in z.items()} | {"entropy": entropy}


def top_six(i: Inputs) -> Inputs:
    p = [real(i[name]) for name in ("step1_stand_in", "step2_stand_in")]
    kept = [top_k(x.log(), i["K"]) for x in p]
    renormalised = kept[0].softmax(-1).sort(descending=True).values[: i["K"]]
    mass = [x[z.isfinite()].sum() for x, z in zip(p, kept, strict=True)]
    return {
        "mass_step1": mass[0],
        "mass_step2": mass[1],
        "renormalised_step1": renormalised,
        "renormalised_sum": renormalised.sum(),
    }


def nucleus(i: Inputs) -> Inputs:
    found: Inputs = {}
    for step in (1, 2):
        p = real(i[f"step{step}_stand_in"])
        kept = top_p(p.log(), i["p"]).isfinite()
        found |= {f"tokens_step{step}": int(kept.sum()), f"mass_step{step}": p[kept].sum()}
    return found


EXAMPLES: dict[str, Compute] = {
    "DLN-ClassificationHead-greedy": greedy_choice,
    "DLN-Sampling-beam": beam,
    "DLN-Sampling-costs": costs,
    "DLN-Sampling-temperature": temperature_limits,
    "MF-20.8.4-temperature": mf_temperature,
    "DLN-Sampling-topk": top_six,
    "DLN-Sampling-topp": nucleus,
}

SET_ASIDE: dict[str, str] = {}
