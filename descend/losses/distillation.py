"""Learning from a teacher beside the labels; one value for each example.

    printed      ℓ = α L + (1 − α) KL(softmax(z_t) ‖ softmax(z_s))                  MF 28.4.2, without a temperature
    softened     ℓ = α L + (1 − α) τ² KL(softmax(z_t / τ) ‖ softmax(z_s / τ))       the original

L is the loss of the task, z_s and z_t the logits of student and teacher. Where both agree the divergence is 0. Its
gradient in z_s is (1 − α)(p_s − p_t); with τ it is about as large, thanks to τ². A teacher that is sure (p_t is 1 for
one class) makes the divergence the cross-entropy with that class at τ = 1.

With a head for each (DeiT):

    hard    ℓ = ½ CE(z_c, y) + ½ CE(z_d, y_t)                              y_t = argmax of the teacher's logits z_t
    soft    ℓ = (1 − λ) CE(z_c, y) + λ τ² KL(softmax(z_t / τ) ‖ softmax(z_d / τ))

z_c is the logits of the class token, z_d those of the distillation token. τ² keeps the gradient's scale when the
temperature τ flattens both distributions. A teacher that says the labels makes the hard loss the mean of two
cross-entropies. The teacher's logits are a constant. MF names DeiT without a formula: these are the paper's, with its
λ = 0.1 and τ = 3 for the soft form; the hard one, which has no number to choose, was found better there.

Systems: deit, knowledge-distillation
"""

from __future__ import annotations

from torch import Tensor

from descend.losses.classification import cross_entropy
from descend.losses.divergence import kl_of_logarithms


def taught_loss(task: Tensor, student: Tensor, teacher: Tensor, alpha: float, tau: float = 1.0) -> Tensor:
    """α L + (1 − α) τ² KL(teacher ‖ student): losses (..), logits (.., k) twice -> (..)."""
    return alpha * task + (1 - alpha) * softened_divergence(student, teacher, tau)


def softened_divergence(student: Tensor, teacher: Tensor, tau: float = 1.0) -> Tensor:
    """τ² KL(softmax(z_t / τ) ‖ softmax(z_s / τ)): logits (.., k) twice -> (..)."""
    if tau <= 0:
        raise ValueError(f"a temperature of {tau}; it must be above 0")
    told = kl_of_logarithms((student / tau).log_softmax(-1), (teacher.detach() / tau).log_softmax(-1))
    return tau**2 * told


def hard_distillation(of_class: Tensor, of_teacher: Tensor, teacher: Tensor, y: Tensor) -> Tensor:
    """½ CE(z_c, y) + ½ CE(z_d, argmax z_t): logits (b, k) three times, classes y (b) -> (b)."""
    return (cross_entropy(of_class, y) + cross_entropy(of_teacher, teacher.detach().argmax(dim=-1))) / 2


def soft_distillation(
    of_class: Tensor, of_teacher: Tensor, teacher: Tensor, y: Tensor, tau: float = 3.0, weight: float = 0.1
) -> Tensor:
    """(1 − λ) CE(z_c, y) + λ τ² KL(teacher ‖ z_d at temperature τ): (b, k) three times, y (b) -> (b)."""
    told = softened_divergence(of_teacher, teacher, tau)
    return (1 - weight) * cross_entropy(of_class, y) + weight * told
