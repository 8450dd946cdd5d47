"""Worked examples of the family math: probability and information."""

from __future__ import annotations

import torch
from torch import Tensor

from descend.catalog.examples import Compute, Inputs, real
from descend.ops.math.information import (
    bits,
    cross_entropy,
    cross_entropy_terms,
    entropy,
    entropy_terms,
    kl,
    label_cross_entropy,
    surprise,
)
from descend.ops.math.normal import moments_of_sum
from descend.ops.math.probability import (
    conditional,
    expectation,
    expectation_terms,
    given_rows,
    joint_of,
    mean_absolute_deviation,
    mean_deviation,
    probability,
    standard_deviation,
    uniform,
    variance,
    variance_by_moments,
)

DIE = real([1, 2, 3, 4, 5, 6])


def equally_likely(x: Tensor) -> tuple[Tensor, Tensor]:
    """The outcomes with 1/n each."""
    return x, uniform(len(x))


# Expectation and spread


def die(i: Inputs) -> Inputs:
    p = uniform(i["faces"])
    return {"p4": p[3]}


def six_rolls(i: Inputs) -> Inputs:
    mean = expectation(*equally_likely(real(i["rolls"])))
    return {"sum": round(len(i["rolls"]) * mean.item()), "mean": mean}


def fair_die(i: Inputs) -> Inputs:
    return {"mean": expectation(*equally_likely(DIE))}


def loaded_die(i: Inputs) -> Inputs:
    p = real(i["p"])
    return {"terms": expectation_terms(DIE, p), "mean": expectation(DIE, p)}


def expected_score(i: Inputs) -> Inputs:
    p, score = real(i["p"]), real(i["score"])
    return {"terms": expectation_terms(score, p), "mean": expectation(score, p)}


def three_attempts(i: Inputs) -> Inputs:
    x, p = real(i["outcomes"]), real(i["p"])
    return {"signed": mean_deviation(x, p), "absolute": mean_absolute_deviation(x, p), "squared": variance(x, p)}


def two_deviations(i: Inputs) -> Inputs:
    """The variance of −d and d, equally likely, is d²."""
    return {"squares": [variance(*equally_likely(real([-d, d]))) for d in i["d"]]}


def three_tables(i: Inputs) -> Inputs:
    tables = {name: equally_likely(real(i[name])) for name in "ABC"}
    means = [expectation(*table) for table in tables.values()]
    return {"means": means, **{name: variance(*table) for name, table in tables.items()}}


def shortcut(i: Inputs) -> Inputs:
    x, p = equally_likely(real(i["outcomes"]))
    return {
        "EX2": expectation(x.square(), p),
        "variance": variance_by_moments(x, p),
        "std": standard_deviation(x, p),
    }


def hundred_dice(i: Inputs) -> Inputs:
    centre, spread = moments_of_sum(*equally_likely(DIE), i["dice"])
    return {"centre": centre, "variance": spread, "std": spread.sqrt()}


# Conditioning


def even_given_4(i: Inputs) -> Inputs:
    p = uniform(i["die"])
    even, large = DIE % 2 == 0, DIE >= 4
    return {
        "P_even": probability(even, p),
        "P_and": probability(even & large, p),
        "P_ge4": probability(large, p),
        "conditional": conditional(even, large, p),
    }


def two_coins(i: Inputs) -> Inputs:
    """The second coin is fair whatever the first shows; heads is 0."""
    coin = uniform(2)
    joint = joint_of(coin, coin.expand(2, 2))
    return {"joint": joint[0, 1], "P_c2H_given_c1H": given_rows(joint)[0, 0], "P_both_heads": joint[0, 0]}


def cards(i: Inputs) -> Inputs:
    """Thirteen cards of each suit: hearts, diamonds, clubs, spades."""
    p, suit = uniform(i["deck"]), torch.arange(i["deck"]) % 4
    heart, red = suit == 0, suit <= 1
    return {
        "P_red": probability(red, p),
        "P_heart": probability(heart, p),
        "product": probability(red, p) * probability(heart, p),
        "P_both": probability(red & heart, p),
        "P_red_given_heart": conditional(red, heart, p),
    }


# Information


def surprises(i: Inputs) -> Inputs:
    return {"surprise": surprise(real(i["p"]))}


def entropy_a(i: Inputs) -> Inputs:
    """The printed surprises are the book's roundings; even they do not give its 0.29."""
    p, rounded = real(i["p"]), real([0.05, 3.5, 4.6, 4.6])
    return {"surprises": surprise(p), "H": entropy(p), "from_printed_terms": expectation(rounded, p)}


def entropy_b(i: Inputs) -> Inputs:
    p = real(i["p"])
    return {"surprise": surprise(p)[0], "H": entropy(p)}


def entropy_c(i: Inputs) -> Inputs:
    """The three equal terms are taken together."""
    p = real(i["p"])
    first, *others = entropy_terms(p)
    return {"terms": [first, torch.stack(others).sum()], "H": entropy(p)}


def coin_bits(i: Inputs) -> Inputs:
    return {"bits": bits(entropy(real(i["p"])))}


def identity(i: Inputs) -> Inputs:
    p, q = real(i["p"]), real(i["q"])
    return {
        "H(p)": entropy(p),
        "H(p,q)": cross_entropy(p, q),
        "KL": kl(p, q),
        "one_hot_entropy": entropy(torch.eye(len(p), dtype=p.dtype)[0]),
    }


def first_term(i: Inputs) -> Inputs:
    """Σ p log p is what KL leaves when the second term is 0: q = 1 everywhere."""
    p = real(i["p"])
    return {"sum_p_log_p": kl(p, torch.ones_like(p)), "H(p)": entropy(p)}


def self_cross_entropy(i: Inputs) -> Inputs:
    p = real(i["p"])
    return {"H": cross_entropy(p, p)}


def true_entropies(i: Inputs) -> Inputs:
    return {"H": entropy(real(i["p"]))}


def vom_kl(i: Inputs) -> Inputs:
    p, q = real(i["p"]), real(i["q"])
    return {
        "H_terms": entropy_terms(p),
        "H_p": entropy(p),
        "CE_terms": cross_entropy_terms(p, q),
        "H_pq": cross_entropy(p, q),
        "KL": kl(p, q),
        "KL_reverse": kl(q, p),
    }


def kl_identity(i: Inputs) -> Inputs:
    p, q = real(i["p"]), real(i["q"])
    holds = torch.allclose(cross_entropy(p, q) - entropy(p), kl(p, q)) and bool(kl(p, q) > 0) and kl(p, p) == 0
    found = {"H_p": entropy(p), "H_pq": cross_entropy(p, q), "KL_pq": kl(p, q), "KL_qp": kl(q, p)}
    return {"identity_holds": bool(holds), **found}


def label_losses(i: Inputs) -> Inputs:
    """The other class has the rest."""
    q = real(i["q_y"])
    return {"loss": label_cross_entropy(torch.zeros(len(q), dtype=torch.long), torch.stack([q, 1 - q], -1))}


EXAMPLES: dict[str, Compute] = {
    "VOM-3.1-die": die,
    "VOM-3.5-sample-mean": six_rolls,
    "VOM-3.5-fair-die": fair_die,
    "VOM-3.5-loaded-die": loaded_die,
    "VOM-3.5-lm-score": expected_score,
    "VOM-3.6-three-attempts": three_attempts,
    "VOM-3.6-deviation-weights": two_deviations,
    "VOM-3.6-abc": three_tables,
    "VOM-3.6-shortcut": shortcut,
    "VOM-3.7-hundred-dice": hundred_dice,
    "VOM-3.12-even-given-4": even_given_4,
    "VOM-3.13-coins": two_coins,
    "VOM-3.13-cards": cards,
    "VOM-3.9-surprise": surprises,
    "VOM-3.9-entropy-A": entropy_a,
    "VOM-3.9-entropy-B": entropy_b,
    "VOM-3.9-entropy-C": entropy_c,
    "VOM-13.9.1.1-fair-coin": coin_bits,
    "VOM-13.9.1.1-biased-coin": coin_bits,
    "DLN-CE-KL-identity": identity,
    "DLN-KL-first-term": first_term,
    "VOM-3.11-self-cross-entropy": self_cross_entropy,
    "VOM-3.11-true-entropies": true_entropies,
    "VOM-3.11-kl": vom_kl,
    "VOM-13.9.1.2-kl": kl_identity,
    "VOM-13.9.1.3-nll": label_losses,
}

SET_ASIDE: dict[str, str] = {}
