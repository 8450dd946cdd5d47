"""Worked examples of word vectors: lookup, skip-gram, negative sampling and GloVe."""

from __future__ import annotations

import numpy as np
import torch

from descend.catalog.examples import Compute, Inputs, real
from descend.classic.glove import GloVeByTriples, sufficient_width
from descend.data.text.contexts import pairs, windows
from descend.losses.word_vectors import dot_products, negative_sampling
from descend.models.word_vectors import SkipGram, WordVectorsConfig
from descend.ops.activations import sigmoid
from descend.ops.dense import terms
from descend.ops.embedding import lookup, lookup_by_product, lookup_columns, one_hot, parameters
from descend.text.vocabulary import Vocabulary


def matrix_shape(i: Inputs) -> Inputs:
    return {"shape": list(lookup(torch.zeros(i["T"], dtype=torch.long), torch.zeros(1, i["d"])).shape)}


def column(i: Inputs) -> Inputs:
    """The formula's columns, and the note's rows."""
    w, k = real(i["W"]), torch.tensor(i["k_1based"] - 1)
    x = one_hot(k, i["V"]).double()
    try:
        lookup_columns(x[None], w)
    except RuntimeError:
        possible = False
    else:
        possible = True
    return {
        "v": lookup_columns(x, w),
        "column_k_of_W": lookup(k, w.T),
        "row_form": lookup_by_product(k, w.T),
        "W_times_row_vector_possible": possible,
    }


def first_row(i: Inputs) -> Inputs:
    return {"embedding": lookup_by_product(torch.tensor(i["index"]), real(i["E"]))}


def sizes(i: Inputs) -> Inputs:
    count = parameters(i["V"], i["d"])
    return {"millions": count / 1e6, "parameters": count}


def neighbours(i: Inputs) -> Inputs:
    """The words around a centre, and the pairs of the whole sentence."""
    vocabulary = Vocabulary.learn(i["sentence"])
    ids = vocabulary.encode(i["sentence"])
    near = windows(ids, i["c"])[i["center"]]
    return {
        "context": vocabulary.decode(near[near >= 0]),
        f"total_pairs_c{i['c']}": len(pairs(ids, i["c"])[0]),
    }


def cost(i: Inputs) -> Inputs:
    """Scores of one centre against the whole vocabulary are V dot products."""
    scores = SkipGram(WordVectorsConfig(vocab=i["V"], width=1))(torch.tensor([0]))
    return {"full": scores.shape[-1], "negative": [dot_products(k) for k in i["k"]]}


def positive(i: Inputs) -> Inputs:
    parts = terms(real(i["w_cat"]), real(i["w'_the"]))
    return {"terms": parts, "dot": parts.sum(), "sigma": sigmoid(parts.sum())}


def negative(i: Inputs) -> Inputs:
    parts = terms(real(i["w_cat"]), real(i["w'_algorithm"]))
    return {"terms": parts, "dot": parts.sum(), "sigma": sigmoid(-parts.sum())}


def one_step(i: Inputs) -> Inputs:
    """Ascent on the objective, which is minus the loss."""
    model = SkipGram(WordVectorsConfig(vocab=2, width=3)).double()
    with torch.no_grad():
        model.centre.weight.copy_(real([i["w_cat"], i["w_cat"]]))
        model.context.weight.copy_(real([i["w'_the"], i["w'_algorithm"]]))
    cat, words = torch.tensor([0]), torch.tensor([[0, 1]])
    before = model(cat, words)
    objective = -negative_sampling(before[:, 0], before[:, 1:])
    w, c = torch.autograd.grad(objective.sum(), [model.centre.weight, model.context.weight])
    with torch.no_grad():
        model.centre.weight += i["eta"] * w
        model.context.weight += i["eta"] * c
        after = model(cat, words)
    return {
        "positive_up": bool(after[0, 0] > before[0, 0]),
        "negative_down": bool(after[0, 1] < before[0, 1]),
        "objective": objective[0],
        "grad_w_cat": w[0],
        "grad_w_the": c[0],
        "grad_w_algorithm": c[1],
        "new_positive_dot": after[0, 0],
        "new_negative_dot": after[0, 1],
    }


def glove_triples(i: Inputs) -> Inputs:
    """The seed's generator made the table first, so as many numbers are drawn before the vectors."""
    p, random = np.array(i["P_i_given_g"]), np.random.default_rng(i["seed"])
    random.random(p.shape)
    model = GloVeByTriples.start(len(p), i["dim"], random)
    start = model.loss(p)
    end = model.fit(p, i["lr"], i["steps"], random).loss(p)
    return {
        "loss_start": start,
        "loss_end_below_1e_12": end < 1e-12,
        "exact_solution_needs_dim": f"rank of centred log P, at most |V|-1 = {sufficient_width(p)}",
    }


EXAMPLES: dict[str, Compute] = {
    "VOM-7.6-shape": matrix_shape,
    "DLN-WordEmbedding-lookup": column,
    "VOM-7.2-lookup": first_row,
    "VOM-7.4.3-gpt2-embedding": sizes,
    "VOM-7.4.3-gpt3-embedding": sizes,
    "VOM-7.3.2-window": neighbours,
    "VOM-7.3.4-window1": neighbours,
    "VOM-7.3.3-cost": cost,
    "VOM-7.3.4-positive": positive,
    "VOM-7.3.4-negative": negative,
    "VOM-7.3.4-update-direction": one_step,
    "DLD-6.7-glove-triples": glove_triples,
}

SET_ASIDE: dict[str, str] = {}
