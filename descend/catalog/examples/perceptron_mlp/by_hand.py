"""Worked examples of the family perceptron-mlp: the 2-3-1 network of MF 6, trained by hand."""

from __future__ import annotations

import torch
from torch import Tensor

from descend.catalog.examples import Compute, Inputs, real
from descend.classic.from_scratch import (
    Forward,
    backward,
    chapter_6,
    descend_once,
    forward,
    hidden_delta,
    layer_gradient,
    losses,
    output_delta,
)
from descend.losses.classification import binary_cross_entropy, binary_cross_entropy_of_probabilities
from descend.ops.dense import Layer, dense, neuron, terms


def net(i: Inputs) -> list[Layer]:
    return [(real(i["W1"]), real(i["b1"])), (real(i["W2"]), real([i["b2"]]))]


def rows(i: Inputs) -> tuple[Tensor, Tensor]:
    """The examples, which MF has as columns."""
    return real(i["X"]).T, real(i["Y"])[0]


def products(x: Tensor, w: Tensor, b: Tensor) -> Tensor:
    """What a unit adds up: its products and its bias."""
    return torch.cat([terms(x, w), b.reshape(1)])


def first_example() -> tuple[list[Layer], Forward, Tensor]:
    """The first example of MF 6, through its network."""
    layers, x, y = chapter_6()
    return layers, forward(layers, x[:1]), y[:1]


def layer_1(i: Inputs) -> Inputs:
    w, b, x = real(i["W1"]), real(i["b1"]), real(i["x"])
    return {"z1": dense(w, b, x)} | {f"products_unit{j + 1}": products(x, w[j], b[j]) for j in range(3)}


def layer_1_of_second(i: Inputs) -> Inputs:
    found = layer_1(i)
    return found | {"a1": found["z1"].relu()}


def apply_relu(i: Inputs) -> Inputs:
    return {"a1": real(i["z1"]).relu()}


def layer_2(i: Inputs) -> Inputs:
    w, b, a = real(i["W2"]), real(i["b2"]), real(i["a1"])
    return {"products": products(a, w[0], b), "z2": dense(w, b, a)[0]}


def output_of_second(i: Inputs) -> Inputs:
    found = layer_2(i)
    return found | {"yhat": found["z2"].sigmoid()}


def apply_sigmoid(i: Inputs) -> Inputs:
    x, one, zero = real(i["z2"])[None], real([1.0]), real(0.0)
    return {
        "exp_minus_z": neuron(x, one, zero, lambda z: (-z).exp()),
        "denominator": neuron(x, one, zero, lambda z: 1 + (-z).exp()),
        "yhat": neuron(x, one, zero, torch.sigmoid),
    }


def named_logit(text: str) -> Tensor:
    """ "sigma(0.73)" -> 0.73"""
    return real(float(text.removeprefix("sigma(").removesuffix(")")))


def loss_1(i: Inputs) -> Inputs:
    z = named_logit(i["yhat"])
    return {
        "one_minus_yhat": (-z).sigmoid(),
        "loss": binary_cross_entropy(z, real(float(i["y"]))),
        "loss_from_printed_0.3252": binary_cross_entropy_of_probabilities(1 - real(0.3252), real(0.0)),
    }


def loss_2(i: Inputs) -> Inputs:
    return {
        "loss": binary_cross_entropy(named_logit(i["yhat"]), real(float(i["y"]))),
        "loss_from_printed_0.8367": binary_cross_entropy_of_probabilities(real(0.8367), real(1.0)),
    }


def one_loss(i: Inputs) -> Inputs:
    done = forward(net(i), real([i["x"]]))
    return {
        "z1": done.z[0][0],
        "z2": done.z[1][0, 0],
        "yhat": done.output[0],
        "loss": losses(done, real([float(i["y"])]))[0],
    }


def mean_of_printed(i: Inputs) -> Inputs:
    each = real(i["losses"])
    return {"sum": each.sum(), "mean": each.mean()}


def batch_loss(i: Inputs) -> Inputs:
    x, y = rows(i)
    each = losses(forward(net(i), x), y)
    return {"losses": each, "sum": each.sum(), "batch_loss": each.mean()}


def delta_2(_: Inputs) -> Inputs:
    done, y = first_example()[1:]
    return {"delta2": output_delta(done.output, y)[0, 0]}


def gradient_2(i: Inputs) -> Inputs:
    layers, done, y = first_example()
    dw, db = layer_gradient(real([[i["delta2"]]]), real([i["a1"]]))
    exact_w, exact_b = backward(layers, done, y)[1]
    return {"gradW2": dw[0], "gradb2": db[0], "gradW2_unrounded": exact_w[0], "gradb2_unrounded": exact_b[0]}


def delta_1(i: Inputs) -> Inputs:
    layers, done, y = first_example()
    rounded = hidden_delta(real([[i["delta2"]]]), real(i["W2"]), real([i["z1"]]))
    exact = hidden_delta(output_delta(done.output, y), layers[1][0], done.z[0])
    return {"delta1": rounded[0], "delta1_unrounded": exact[0]}


def gradient_1(i: Inputs) -> Inputs:
    layers, done, y = first_example()
    dw, db = layer_gradient(real([i["delta1"]]), real([i["x"]]))
    return {"gradW1": dw, "gradb1": db, "gradW1_unrounded": backward(layers, done, y)[0][0]}


def batch_gradient(i: Inputs) -> Inputs:
    x, y = rows(i)
    done = forward(net(i), x)
    (dw1, db1), (dw2, db2) = backward(net(i), done, y)
    return {
        "gradW2": dw2[0],
        "gradb2": db2[0],
        "gradW1": dw1,
        "gradb1": db1,
        "deltas2": output_delta(done.output, y)[:, 0],
    }


def take_step(i: Inputs) -> tuple[list[Layer], list[Layer]]:
    """The gradients, and the layers after one step."""
    x, y = rows(i)
    gradients = backward(net(i), forward(net(i), x), y)
    return gradients, descend_once(net(i), gradients, i["eta"])


def printed_update(i: Inputs) -> Inputs:
    zero = real([0.0])
    [(w, _)] = descend_once([(real(i["W2"]), zero)], [(real(i["grad"]), zero)], i["eta"])
    return {"W2_new": w}


def true_w2(i: Inputs) -> Inputs:
    return {"W2_new": take_step(i)[1][1][0][0]}


def true_b2(i: Inputs) -> Inputs:
    gradients, layers = take_step(i)
    return {"gradb2": gradients[1][1][0], "b2_new": layers[1][1][0]}


def true_layer_1(i: Inputs) -> Inputs:
    gradients, layers = take_step(i)
    return {
        "gradW1": gradients[0][0],
        "gradb1": gradients[0][1],
        "W1_new": layers[0][0],
        "b1_new": layers[0][1],
    }


def second_layer_1(i: Inputs) -> Inputs:
    return {"z1_new": dense(real(i["W1_new"]), real(i["b1_new"]), real(i["x"]))}


def second_output(i: Inputs) -> Inputs:
    """Each from the number that the text printed just before it."""
    return {
        "z2_new": dense(real([i["W2_new"]]), real([i["b2_new"]]), real(i["a1_new"]))[0],
        "yhat_new": apply_sigmoid({"z2": 0.6772})["yhat"],
        "loss_new": binary_cross_entropy_of_probabilities(1 - real(0.3364), real(0.0)),
    }


def second_pass(i: Inputs) -> Inputs:
    x, y = rows(i)
    done = forward(take_step(i)[1], x)
    each = losses(done, y)
    return {
        "z1_new": done.z[0][0],
        "z2_new": done.z[1][0, 0],
        "yhat_new": done.output[0],
        "loss_new": each[0],
        "losses_after_step": each,
        "batch_loss_after_step": each.mean(),
    }


EXAMPLES: dict[str, Compute] = {
    "MF-6.4.1-layer1": layer_1,
    "MF-6.4.2-relu": apply_relu,
    "MF-6.4.3-layer2": layer_2,
    "MF-6.4.4-sigmoid": apply_sigmoid,
    "MF-6.4.5-loss1": loss_1,
    "MF-6.5.1-layer1": layer_1_of_second,
    "MF-6.5.2-output": output_of_second,
    "MF-6.5.2-loss2": loss_2,
    "MF-6.6-loss3": one_loss,
    "MF-6.6-loss4": one_loss,
    "MF-6.6-batch-arithmetic": mean_of_printed,
    "MF-6.6-batch-true": batch_loss,
    "MF-6.8.1-output-delta": delta_2,
    "MF-6.8.2-gradW2": gradient_2,
    "MF-6.8.3-hidden-delta": delta_1,
    "MF-6.8.4-gradW1": gradient_1,
    "MF-6.9-batch-gradW2": batch_gradient,
    "MF-6.10.1-W2-from-printed-gradient": printed_update,
    "MF-6.10.1-W2-true": true_w2,
    "MF-6.10.1-b2": true_b2,
    "MF-6.10.2-layer1": true_layer_1,
    "MF-6.11-z1-from-printed": second_layer_1,
    "MF-6.11-z2-from-printed": second_output,
    "MF-6.11-true": second_pass,
}

SET_ASIDE: dict[str, str] = {}
