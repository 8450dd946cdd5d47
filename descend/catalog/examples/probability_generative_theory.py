"""Worked examples of the family probability-generative-theory."""

from __future__ import annotations

import torch
from torch.distributions import MultivariateNormal, Normal

from descend.catalog.examples import Compute, Inputs, real
from descend.data.toys.mixture import Mixture
from descend.ops.math.probability import given_columns, given_rows
from descend.theory.evidence import elbo_below_evidence, elbo_by_quadrature, elbo_by_reconstruction
from descend.theory.latent_variable import LinearGaussian, log_likelihood, marginalise


def marginal(i: Inputs) -> Inputs:
    mixture = Mixture(real(i["pi"]), real(i["mu"])[:, None], real(i["var"]).sqrt())
    line = torch.linspace(-20, 20, 4001, dtype=torch.float64)
    density = mixture.log_prob(line[:, None]).exp()
    return {
        "p_x": mixture.log_prob(real([[i["x"]]]))[0].exp(),
        "integral": torch.trapezoid(density, line),
    }


def eye_colours(i: Inputs) -> Inputs:
    table = real(list(i["table"].values()))
    by_colour = marginalise(table, 1)
    return dict(zip(i["table"], by_colour.tolist(), strict=True)) | {"Total": marginalise(by_colour, 0)}


def both_conditionals(i: Inputs) -> Inputs:
    """Rows are labels (DLD's x), columns objects (DLD's y)."""
    joint = real(i["joint_x_rows_y_cols"])
    return {"P_y_given_x": given_rows(joint), "P_x_given_y": given_columns(joint)}


def elbo_forms(i: Inputs) -> Inputs:
    """p(z) = N(0, 1), p(x | z) = N(0.9 z, 0.4), q = N(0.6, 0.35)"""
    model, x = LinearGaussian(real([[0.9]]), real([0.0]), real(0.4)), real([i["x"]])
    q = MultivariateNormal(real([0.6]), real([[0.35]]))
    line = torch.linspace(-10, 10, 20001, dtype=torch.float64)
    prior, belief = Normal(real(0.0), real(1.0)), Normal(real(0.6), real(0.35).sqrt())
    log_p, bound = model.marginal.log_prob(x), elbo_below_evidence(model, x, q)

    def log_joint(z: torch.Tensor) -> torch.Tensor:
        return log_likelihood(x, model.decode(z[:, None]), model.s) + prior.log_prob(z)

    return {
        "log_p_x": log_p,
        "elbo_posterior_form": bound,
        "elbo_prior_form": elbo_by_reconstruction(model, x, q).elbo,
        "quadrature": elbo_by_quadrature(log_joint, belief.log_prob, line),
        "gap": log_p - bound,
        "elbo_with_exact_posterior": elbo_by_reconstruction(model, x, model.posterior(x)).elbo,
    }


def elbo_gap(i: Inputs) -> Inputs:
    model, x = LinearGaussian(real([[i["a"]]]), real([i["b"]]), real(i["var_x"])), real([i["x"]])
    q = MultivariateNormal(real([i["q_mean"]]), real([[i["q_std"] ** 2]]))
    log_p, bound = model.marginal.log_prob(x), elbo_by_reconstruction(model, x, q)
    return {
        "log_p": log_p,
        "elbo": bound.elbo,
        "reconstruction": bound.reconstruction,
        "kl_to_prior": bound.kl,
        "gap": log_p - bound.elbo,
        "kl_to_posterior": torch.distributions.kl_divergence(q, model.posterior(x)),
    }


EXAMPLES: dict[str, Compute] = {
    "DLN-MoG-marginal": marginal,
    "DLN-VAE-eye-colour": eye_colours,
    "DLD-12.1-bayes": both_conditionals,
    "DLN-VAE-elbo-forms": elbo_forms,
    "S940-7.3-elbo-gap": elbo_gap,
}

SET_ASIDE: dict[str, str] = {}
