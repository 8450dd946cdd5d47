"""Rules for the optimizers that torch does not have, as frozen values for recipes.

Each builds the class of the same name (see its file for the equation) with decay on matrices only. Those that evaluate
the loss at points of their own (Nesterov, IterateAveraging, the conjugate gradients, HessianFree) use the closure that
`fit` passes; the last three walk along lines, so give them the whole data as one batch and no clipping.
"""

from __future__ import annotations

from dataclasses import dataclass

from torch import nn
from torch.optim import Optimizer

from descend.optim import adaptive, averaging, conjugate, gains, hessian_free, lion, momentum, subgradient, window
from descend.optim.rules import SGD, group_by_decay, list_trained
from descend.ranges import Depth, Fraction, NonNegative, Rate, Share, Whole


@dataclass(frozen=True)
class HeavyBall:
    """Momentum with the learning rate inside the velocity."""

    lr: Rate = 0.1
    momentum: Fraction = 0.9
    weight_decay: NonNegative = 0.0

    def build(self, module: nn.Module) -> Optimizer:
        return momentum.HeavyBall(group_by_decay(module, self.weight_decay), self.lr, self.momentum)


@dataclass(frozen=True)
class Nesterov:
    """Nesterov momentum with the gradient at the look-ahead point."""

    lr: Rate = 0.1
    momentum: Fraction = 0.9
    weight_decay: NonNegative = 0.0

    def build(self, module: nn.Module) -> Optimizer:
        return momentum.Nesterov(group_by_decay(module, self.weight_decay), self.lr, self.momentum)


@dataclass(frozen=True)
class IterateAveraging:
    """The average of the iterates of SGD; evaluation and checkpoints see the average."""

    lr: Rate = 0.1
    start: Whole = 0
    """Steps before the average begins."""
    weight_decay: NonNegative = 0.0

    def build(self, module: nn.Module) -> Optimizer:
        return averaging.IterateAveraging(SGD(self.lr, 0.0, self.weight_decay).build(module), self.start)


@dataclass(frozen=True)
class Subgradient:
    """Steps α / √k."""

    lr: Rate = 0.1
    weight_decay: NonNegative = 0.0

    def build(self, module: nn.Module) -> Optimizer:
        return subgradient.Subgradient(group_by_decay(module, self.weight_decay), self.lr)


@dataclass(frozen=True)
class GradientWindow:
    """The mean of the last K gradients."""

    lr: Rate = 0.1
    window: Depth = 4
    weight_decay: NonNegative = 0.0

    def build(self, module: nn.Module) -> Optimizer:
        return window.GradientWindow(group_by_decay(module, self.weight_decay), self.lr, self.window)


@dataclass(frozen=True)
class LocalGains:
    """A gain for every weight, from the signs of consecutive gradients."""

    lr: Rate = 0.1
    weight_decay: NonNegative = 0.0

    def build(self, module: nn.Module) -> Optimizer:
        return gains.LocalGains(group_by_decay(module, self.weight_decay), self.lr)


@dataclass(frozen=True)
class VelocityGains:
    """A gain for every weight, from the signs of gradient and velocity."""

    lr: Rate = 0.01
    momentum: Fraction = 0.9
    weight_decay: NonNegative = 0.0

    def build(self, module: nn.Module) -> Optimizer:
        return gains.VelocityGains(group_by_decay(module, self.weight_decay), self.lr, self.momentum)


@dataclass(frozen=True)
class PlainRprop:
    """Rprop that moves at every step."""

    lr: Rate = 0.01
    """The first step size."""

    def build(self, module: nn.Module) -> Optimizer:
        return gains.PlainRprop(list_trained(module), self.lr)


@dataclass(frozen=True)
class RMSPropInside:
    """RMSProp with ε inside the root."""

    lr: Rate = 0.01
    gamma: Share = 0.9
    eps: Share = 1e-8
    weight_decay: NonNegative = 0.0

    def build(self, module: nn.Module) -> Optimizer:
        return adaptive.RMSPropInside(group_by_decay(module, self.weight_decay), self.lr, self.gamma, self.eps)


@dataclass(frozen=True)
class AdagradInside:
    """Adagrad with ε inside the root."""

    lr: Rate = 0.01
    eps: Share = 1e-8
    weight_decay: NonNegative = 0.0

    def build(self, module: nn.Module) -> Optimizer:
        return adaptive.AdagradInside(group_by_decay(module, self.weight_decay), self.lr, self.eps)


@dataclass(frozen=True)
class AdamInside:
    """Adam and AdamW with ε inside the root (MF)."""

    lr: Rate = 1e-3
    betas: tuple[Fraction, Fraction] = (0.9, 0.999)
    eps: Share = 1e-8
    weight_decay: NonNegative = 0.0

    def build(self, module: nn.Module) -> Optimizer:
        return adaptive.AdamInside(group_by_decay(module, self.weight_decay), self.lr, self.betas, self.eps)


@dataclass(frozen=True)
class Lion:
    """The sign of an interpolated momentum; take a third to a tenth of Adam's rate."""

    lr: Rate = 1e-4
    betas: tuple[Fraction, Fraction] = (0.9, 0.99)
    weight_decay: NonNegative = 0.1

    def build(self, module: nn.Module) -> Optimizer:
        return lion.Lion(group_by_decay(module, self.weight_decay), self.lr, self.betas)


@dataclass(frozen=True)
class FletcherReeves:
    """Non-linear conjugate gradients."""

    lr: Rate = 1.0
    """Length of the very first trial step."""
    inner: Depth = 10
    """Line searches in one step."""

    def build(self, module: nn.Module) -> Optimizer:
        return conjugate.FletcherReeves(list_trained(module), self.lr, self.inner)


@dataclass(frozen=True)
class PolakRibiere:
    """Non-linear conjugate gradients that forget by themselves."""

    lr: Rate = 1.0
    """Length of the very first trial step."""
    inner: Depth = 10
    """Line searches in one step."""

    def build(self, module: nn.Module) -> Optimizer:
        return conjugate.PolakRibiere(list_trained(module), self.lr, self.inner)


@dataclass(frozen=True)
class HessianFree:
    """Hessian-free steps with products from differences of the gradient."""

    lr: Rate = 1.0
    damping: NonNegative = 1.0
    """λ at first; it adapts."""
    inner: Depth = 20
    """Conjugate-gradient steps at most; each costs two gradients."""

    def build(self, module: nn.Module) -> Optimizer:
        return hessian_free.DifferenceHF(list_trained(module), self.lr, self.damping, self.inner)
