"""What people type finds the system they mean: abbreviations, other spellings, the words of the field and the books."""

from __future__ import annotations

import pytest

from descend.catalog.search import aliases, resolve, search, squeeze, stem, systems_by_name
from descend.catalog.systems import systems
from descend.errors import Mistake

TYPED = {
    "layer normalization": "layer-norm",
    "LayerNorm": "layer-norm",
    "layer normalisation": "layer-norm",
    "batchnorm": "batch-norm",
    "rmsnorm": "rms-norm",
    "root mean square layer norm": "rms-norm",
    "self attention": "scaled-dot-product-attention",
    "self-attention": "scaled-dot-product-attention",
    "multihead attention": "multi-head-attention",
    "mha": "multi-head-attention",
    "gqa": "grouped-query-attention",
    "mqa": "multi-query-attention",
    "rotary embeddings": "rope",
    "positional encoding": "sinusoidal-positional-encoding",
    "causal masking": "causal-mask",
    "key value cache": "kv-cache",
    "flashattention": "flash-attention",
    "nucleus sampling": "top-p-sampling",
    "top k": "top-k-sampling",
    "greedy decoding": "autoregressive-generation",
    "masked language modelling": "mlm",
    "next token prediction": "autoregressive-factorization",
    "byte pair encoding": "bpe",
    "word embeddings": "embedding-lookup",
    "negative sampling": "skip-gram-negative-sampling",
    "backprop": "mlp-backpropagation",
    "backpropagation through time": "bptt",
    "autograd": "reverse-mode-autodiff",
    "dual numbers": "forward-mode-autodiff",
    "einsum": "einstein-summation",
    "sgd": "stochastic-and-minibatch-gd",
    "stochastic gradient descent": "stochastic-and-minibatch-gd",
    "heavy ball": "momentum",
    "nesterov accelerated gradient": "nesterov-momentum",
    "decoupled weight decay": "adamw",
    "l-bfgs": "lbfgs",
    "glorot": "xavier-init",
    "kaiming initialisation": "he-init",
    "learning rate warm-up": "linear-warmup",
    "reduce on plateau": "plateau-decay-on-map",
    "mean squared error": "mse-loss",
    "mae": "l1-loss",
    "bce": "binary-cross-entropy",
    "log loss": "binary-cross-entropy",
    "triplet loss": "triplet-margin-loss",
    "kullback-leibler": "kl-and-cross-entropy-identity",
    "swish": "silu-swish",
    "dead relu": "dying-relu",
    "skip connection": "residual-block",
    "residual network": "resnet",
    "convnet": "typical-cnn",
    "deconvolution": "transposed-convolution",
    "max pooling": "pooling",
    "u-net": "unet",
    "nms": "non-maximum-suppression",
    "intersection over union": "iou",
    "vision transformer": "vit",
    "mixture of experts": "mixture-of-experts",
    "moe": "mixture-of-experts",
    "seq2seq": "rnn-encoder-decoder",
    "bahdanau attention": "rnn-attention-decoder",
    "long short term memory": "lstm",
    "gated recurrent unit": "gru",
    "variational auto-encoder": "vae",
    "reparametrisation trick": "reparameterization",
    "wasserstein gan": "wgan",
    "normalising flows": "normalizing-flow",
    "stable diffusion": "latent-diffusion",
    "cfg": "classifier-free-guidance",
    "proximal policy optimisation": "ppo",
    "policy gradient": "reinforce",
    "deep q network": "dqn",
    "graph convolutional networks": "gcn",
    "half precision": "mixed-precision",
    "low rank adaptation": "lora",
    "neighbourhood sampling": "neighbour-sampling",
    "weight tying": "lm-weight-tying",
    "vanishing gradients": "vanishing-exploding-in-depth",
    "lr finder": "learning-rate-finder",
    "expected calibration error": "calibration-ece",
    "layr normalizaton": "layer-norm",
}


@pytest.mark.parametrize(("words", "slug"), TYPED.items())
def test_what_people_type_comes_first(words: str, slug: str) -> None:
    assert search(words)[0].slug == slug, [s.slug for s in search(words, 4)]


@pytest.mark.parametrize(
    ("name", "slug"),
    [
        ("layer-norm", "layer-norm"),
        ("layer-normalization", "layer-norm"),
        ("Layer Normalisation", "layer-norm"),
        ("layernorm", "layer-norm"),
        ("self-attention", "scaled-dot-product-attention"),
        ("swish", "silu-swish"),
        ("GPT2", "gpt-2"),
        ("masked-language-modelling", "mlm"),
    ],
)
def test_another_name_is_resolved(name: str, slug: str) -> None:
    assert resolve(name).slug == slug


@pytest.mark.parametrize(
    ("name", "nearest"),
    [
        ("scaled-dot-atention", "Nearest: scaled-dot-product-attention"),
        ("layer-normaliztion", "Nearest: layer-norm"),
        ("word2vec", "Several have that name: skip-gram, cbow"),
    ],
)
def test_what_is_no_name_or_several_is_a_mistake_that_helps(name: str, nearest: str) -> None:
    with pytest.raises(Mistake, match=nearest):
        resolve(name)


def test_every_alias_leads_to_its_systems() -> None:
    assert set(aliases()) <= set(systems())
    for slug, names in aliases().items():
        for name in names:
            assert slug in systems_by_name()[squeeze(name)], (
                f"{name!r} of {slug} is the name of {systems_by_name()[squeeze(name)]}"
            )
    shared = {name: slugs for name, slugs in systems_by_name().items() if len(slugs) > 1}
    assert shared == {
        "word2vec": ["skip-gram", "cbow", "skip-gram-negative-sampling"],
        "feedforwardnetwork": ["mlp", "position-wise-ffn"],
    }


@pytest.mark.parametrize(
    "words",
    [
        "mask masks masking masked",
        "clip clipping clipped",
        "sample sampling samples",
        "normalization normalize normalizing normalizer",
        "entropy entropies",
        "model modelling",
        "regulariz regularization regularizer",
    ],
)
def test_the_forms_of_a_word_have_one_stem(words: str) -> None:
    assert len({stem(word) for word in words.split()}) == 1, [stem(word) for word in words.split()]


def test_other_words_keep_their_own_stems() -> None:
    words = ["loss", "class", "bias", "pass", "ring", "bed", "sing", "norm", "normal", "normalize", "state", "static"]
    assert len({stem(word) for word in words}) == len(words)
