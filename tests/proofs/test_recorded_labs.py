"""Experiments are proven by what their labs recorded: one verdict over three seeds, of the lab as it is now."""

from __future__ import annotations

from functools import cache
from typing import Any

import pytest

from proofs import labs as recording

RECORDED = [
    pytest.param(
        "batch-norm-effects",
        marks=pytest.mark.system(
            "batch-norm-effects", "larger-rates", "initial-scale", "small-batches", "gradient-and-shift"
        ),
    ),
    pytest.param(
        "position-encodings",
        marks=[
            pytest.mark.system("position-encoding-labs", "ablation"),
            pytest.mark.system("alibi", "extrapolation"),
            pytest.mark.system("relative-position-bias", "extrapolation"),
            pytest.mark.system("learned-position-embeddings", "against-sinusoids"),
        ],
    ),
    pytest.param("longer-rope", marks=pytest.mark.system("rope-scaling", "perplexity")),
    pytest.param("digit-gan", marks=pytest.mark.system("gan", "digits")),
    pytest.param(
        "diffusion-mixture",
        marks=[pytest.mark.system("denoising-vector-field", "trajectories"), pytest.mark.system("ddpm", "mixture")],
    ),
    pytest.param("score-sde-flow", marks=pytest.mark.system("score-sde", "trained")),
    pytest.param(
        "digit-guidance",
        marks=[
            pytest.mark.system("classifier-guidance", "classifier", "sweep"),
            pytest.mark.system("classifier-free-guidance", "sweep"),
        ],
    ),
    pytest.param(
        "few-step-sampling",
        marks=[pytest.mark.system("ddim", "few-steps"), pytest.mark.system("ddpm-sampler", "cost")],
    ),
    pytest.param("caption-guidance", marks=pytest.mark.system("classifier-free-guidance", "captions")),
    pytest.param("position-grid", marks=pytest.mark.system("class-token", "learned-grid")),
    pytest.param("deep-post-norm", marks=pytest.mark.system("add-and-norm-and-stack", "deep")),
    pytest.param("future-leak", marks=pytest.mark.system("causal-mask", "leak")),
    pytest.param("collapse", marks=[pytest.mark.system("byol", "collapse"), pytest.mark.system("simsiam", "collapse")]),
    pytest.param("temporal-embedding", marks=pytest.mark.system("siamese-contrastive", "distance-grows")),
    pytest.param("mined-negatives", marks=pytest.mark.system("siamese-contrastive", "mined-training")),
    pytest.param("cnn-inductive-biases", marks=pytest.mark.system("cnn-inductive-biases", "permutation", "shift")),
    pytest.param(
        "degradation",
        marks=[
            pytest.mark.system("degradation-experiment", "training-error", "cured"),
            pytest.mark.system("residual-block", "depth"),
        ],
    ),
    pytest.param("residual-paths", marks=pytest.mark.system("residual-stack-analysis", "trained")),
    pytest.param(
        "rotation-invariance",
        marks=[
            pytest.mark.system("translation-equivariance-invariance", "rotation-accuracy"),
            pytest.mark.system("ric-convolution", "accuracy"),
            pytest.mark.system("bessel-convolution", "accuracy"),
        ],
    ),
    pytest.param("transfer", marks=pytest.mark.system("transfer-learning", "few-labels")),
    pytest.param("cnn-versus-vit", marks=pytest.mark.system("cnn-versus-vit-lab", "data-size")),
    pytest.param("cross-modal-transfer", marks=pytest.mark.system("cross-modal-transfer", "matches")),
    pytest.param("induction-heads", marks=pytest.mark.system("induction-heads", "layers")),
    pytest.param("layer-probes", marks=pytest.mark.system("attention-head-and-layer-probes", "layers")),
    pytest.param("sparse-information", marks=pytest.mark.system("longformer", "information")),
    pytest.param("sequence-architectures", marks=pytest.mark.system("sequence-architecture-comparison", "table")),
    pytest.param("long-distance", marks=pytest.mark.system("sequence-architecture-comparison", "dependency")),
    pytest.param("pretraining-families", marks=pytest.mark.system("pretraining-family-comparison", "own-row")),
    pytest.param(
        "foundation-model",
        marks=pytest.mark.system(
            "foundation-model-pipeline", "against-scratch", "against-base", "reward-only", "scale"
        ),
    ),
    pytest.param("four-objectives", marks=pytest.mark.system("pretraining-family-comparison", "four-objectives")),
    pytest.param("experts-against-dense", marks=pytest.mark.system("mixtral", "against-dense")),
    pytest.param("reward-hacking", marks=pytest.mark.system("reward-hacking", "proxy-and-truth", "without-kl")),
    pytest.param("biased-rewards", marks=pytest.mark.system("biased-reward-labs", "length", "amplified")),
    pytest.param("likelihood-trap", marks=pytest.mark.system("likelihood-trap", "samplers", "log-p")),
    pytest.param("language-applications", marks=pytest.mark.system("language-model-applications", "baselines")),
    pytest.param(
        "fixed-context",
        marks=[
            pytest.mark.system("rnn-encoder-decoder", "length"),
            pytest.mark.system("rnn-attention-decoder", "long-inputs"),
        ],
    ),
    pytest.param("rounded-language", marks=pytest.mark.system("post-training-quantization", "perplexity")),
    pytest.param("rounded-training", marks=pytest.mark.system("quantization-aware-training", "better-than-rounding")),
    pytest.param("taught-students", marks=pytest.mark.system("knowledge-distillation", "above-its-twin")),
    pytest.param("pruned-lenet", marks=pytest.mark.system("magnitude-pruning", "lenet")),
    pytest.param("query-peaks", marks=pytest.mark.system("attention-maps-analysis", "peaks")),
    pytest.param("taught-vit", marks=pytest.mark.system("deit", "small-data")),
    pytest.param("beit-few-labels", marks=pytest.mark.system("beit", "above-scratch")),
    pytest.param("tiled-attention", marks=pytest.mark.system("flash-attention", "measured")),
]


MEASURED = [
    pytest.param("attention-depth", marks=pytest.mark.system("attention-properties", "depth")),
    pytest.param("next-sentence-ablation", marks=pytest.mark.system("roberta", "ablation")),
    pytest.param(
        "normalization-methods",
        marks=pytest.mark.system("normalization-comparison", "batch-sizes", "variable-length"),
    ),
    pytest.param("dpo-and-ppo", marks=pytest.mark.system("dpo", "ppo-comparison")),
    pytest.param("raw-index", marks=pytest.mark.system("position-encoding-labs", "raw-index")),
    pytest.param("attention-caches", marks=pytest.mark.system("multi-head-latent-attention", "comparison")),
    pytest.param("masking-shares", marks=pytest.mark.system("mlm", "ablation")),
    pytest.param("feature-layers", marks=pytest.mark.system("bert-feature-extraction", "compared")),
]
"""Experiments whose row asks for the comparison, whatever comes of it. Some claims of the texts are refuted here."""


@cache
def read_record() -> dict[str, Any]:
    return recording.read(recording.HERE)


def read_verdict(lab: str) -> str:
    """Over all seeds. A lab that is not recorded, or was changed since, proves nothing: its demands stay open."""
    entry = read_record().get(lab, {})
    if not recording.stands(entry, lab) or entry["verdict"] == "incomplete":
        pytest.skip(f"not recorded as it is now: python -m proofs.labs {lab}")
    assert [found["seed"] for found in entry["findings"]] == [*recording.list_seeds(lab)]
    return str(entry["verdict"])


def require_support(lab: str) -> None:
    """The record supports the claim. Where it leaves it open, nothing is proven and its demands stay open, too."""
    verdict = read_verdict(lab)
    if verdict == "open":
        pytest.skip(f"{lab} is open as it is recorded")
    assert verdict == "supported"


@pytest.mark.parametrize("lab", RECORDED)
def test_the_recorded_verdict_supports_the_claim(lab: str) -> None:
    require_support(lab)


@pytest.mark.parametrize("lab", MEASURED)
def test_the_recorded_verdict_is_that_of_every_seed(lab: str) -> None:
    assert read_verdict(lab) in ("supported", "refuted")


@pytest.mark.system("magnitude-pruning", "over-sparsity")
def test_accuracy_over_sparsity_is_told() -> None:
    """Whatever the verdict at 90%: on every seed it is there for each share, and falls as the share grows."""
    read_verdict("pruned-lenet")
    for found in read_record()["pruned-lenet"]["findings"]:
        numbers = found["numbers"]
        assert numbers["sparsity"] == [0.5, 0.7, 0.8, 0.9, 0.95]
        assert all(abs(a - b) < 1e-3 for a, b in zip(numbers["zeros"], numbers["sparsity"], strict=True))
        assert numbers["pruned"][0] > numbers["pruned"][3] > numbers["pruned"][4]
