"""The code that is shown is the standard form: the definition that bears the name, before layers, models and labs."""

from __future__ import annotations

import ast
import re

import pytest

from descend.catalog.claims import PACKAGE, Claim, claims
from descend.catalog.source import (
    EXACT,
    LONGER,
    NONE,
    SHORTER,
    choose_names,
    forms,
    name_words,
    read,
    read_place,
    shown,
)

# What a reader expects to see first for the systems that are looked up most.
STANDARD = {
    "adam": "ops/updates.py:adam_step",
    "adamw": "ops/updates.py:adamw_step",
    "adagrad": "ops/updates.py:adagrad_step",
    "rmsprop": "ops/updates.py:rmsprop_step",
    "gradient-descent": "ops/updates.py:descent_step",
    "stochastic-and-minibatch-gd": "optim/batches.py:without_replacement",
    "momentum": "ops/updates.py:momentum_step",
    "nesterov-momentum": "ops/updates.py:nesterov_momentum_step",
    "lion": "optim/lion.py:Lion",
    "gradient-clipping": "optim/clip.py:clip_norm",
    "cosine-annealing": "optim/schedules.py:cosine",
    "linear-warmup": "optim/schedules.py:linear_warmup",
    "dropout": "nn/dropout.py:dropout",
    "label-smoothing": "losses/classification.py:smooth_targets",
    "l2-weight-decay": "losses/penalties.py:l2",
    "early-stopping": "engine/training.py:Training.judge",
    "batch-norm": "ops/normalization.py:batch_norm",
    "layer-norm": "ops/normalization.py:layer_norm",
    "rms-norm": "ops/normalization.py:rms_norm",
    "group-norm": "ops/normalization.py:group_norm",
    "sigmoid": "ops/activations.py:sigmoid",
    "tanh": "ops/activations.py:tanh",
    "relu": "ops/activations.py:relu",
    "gelu": "ops/activations.py:gelu",
    "softmax": "ops/softmax.py:naive_softmax",
    "cross-entropy": "losses/classification.py:cross_entropy",
    "binary-cross-entropy": "losses/classification.py:binary_cross_entropy",
    "mse-loss": "losses/regression.py:squared_error",
    "l1-loss": "losses/regression.py:absolute_error",
    "triplet-margin-loss": "losses/metric_learning.py:triplet_margin",
    "xavier-init": "nn/init.py:xavier",
    "he-init": "nn/init.py:he",
    "mlp": "models/mlp.py:MLP",
    "mlp-backpropagation": "ops/backward/mlp.py:forward_rows",
    "logistic-regression": "classic/linear.py:logistic_regression",
    "convolution-and-cross-correlation": "ops/images/convolution.py:cross_correlate",
    "conv2d-layer": "ops/images/convolution.py:layer",
    "pooling": "ops/images/pooling.py:max_pool",
    "transposed-convolution": "ops/images/resampling.py:transposed_convolution",
    "residual-block": "nn/convolution/residual.py:Residual",
    "resnet": "models/resnet.py:ResNet",
    "lenet": "models/lenet.py:LeNet",
    "vgg": "models/vgg.py:VGG",
    "unet": "models/unet.py:UNet",
    "vit": "models/vit.py:ViT",
    "patch-embedding": "nn/patches.py:PatchEmbedding",
    "vanilla-rnn": "ops/recurrent.py:rnn",
    "lstm": "ops/recurrent.py:lstm",
    "gru": "ops/recurrent.py:gru",
    "bpe": "text/bpe.py:BPE",
    "embedding-lookup": "ops/embedding.py:lookup",
    "skip-gram": "models/word_vectors.py:SkipGram",
    "scaled-dot-product-attention": "ops/attention/dot_product.py:attention",
    "multi-head-attention": "ops/attention/multi_head.py:multi_head_attention",
    "causal-mask": "ops/attention/dot_product.py:causal_mask",
    "sinusoidal-positional-encoding": "ops/attention/positions.py:sinusoidal",
    "rope": "ops/attention/rotary.py:rotate_pairs",
    "transformer-encoder-block": "nn/encoder.py:EncoderBlock",
    "transformer-decoder-block": "nn/encoder_decoder.py:DecoderLayer",
    "encoder-decoder-transformer": "models/transformer.py:Transformer",
    "mixture-of-experts": "ops/routing.py:gates",
    "gpt-2": "models/gpt2.py:GPT2",
    "bert": "models/bert.py:Bert",
    "t5": "models/t5.py:T5",
    "llama": "models/llama.py:Llama",
    "perplexity": "metrics/language.py:perplexity",
    "top-p-sampling": "sampling/filters.py:top_p",
    "beam-search": "sampling/beam.py:beam_search",
    "kv-cache": "nn/decoding/cache.py:Cache",
    "clip": "models/clip.py:Clip",
    "gan": "tasks/adversarial.py:Adversarial",
    "dqn": "tasks/dqn.py:DQN",
    "ppo": "tasks/ppo.py:PPO.loss",
}
CLAIMS = claims()


@pytest.mark.parametrize("slug", STANDARD)
def test_the_standard_form_comes_first(slug: str) -> None:
    first = forms(slug, CLAIMS[slug]).standard[0]
    assert f"{first.path.removeprefix('descend/')}:{first.symbol}" == STANDARD[slug]


def test_a_line_number_is_the_definitions() -> None:
    for slug, claimed in CLAIMS.items():
        built = forms(slug, claimed)
        for code in (*built.standard, *built.fast, *built.more):
            line = (PACKAGE.parent / code.path).read_text(encoding="utf-8").splitlines()[code.line - 1]
            name = code.symbol.rpartition(".")[2]
            assert not name or re.match(rf"\s*(@|(async )?def {name}\b|class {name}\b)", line), (slug, code.at, line)
            assert code.pieces, f"{slug}: {code.at} shows nothing"


def test_only_an_experiment_is_shown_by_its_lab() -> None:
    by_lab = {s for s, claimed in CLAIMS.items() if "/labs/" in forms(s, claimed).standard[0].path}
    other = {s for s in by_lab if any("/labs/" not in claim.path for claim in CLAIMS[s])}
    assert not other, f"{other} have code of their own, and a lab is shown"


def test_every_row_of_the_table_is_of_use() -> None:
    assert shown().keys() <= CLAIMS.keys()
    for slug, (standard, fast) in shown().items():
        assert standard, slug
        for place in (*standard.split(), *fast.split()):
            code = read_place(place)
            ast.parse("\n".join(piece.text.partition("# ... ")[0] for piece in code.pieces))


@pytest.mark.parametrize(
    ("defined", "slug", "fit", "names"),
    [
        (["relu", "relu_slope", "leaky_relu"], "relu", EXACT, ["relu"]),
        (["squared_error", "absolute_error"], "l1-loss", EXACT, ["absolute_error"]),  # by another name of it
        (["GPT2", "Block", "GPT2Config"], "gpt-2", EXACT, ["GPT2"]),
        (["UncorrectedAdamStep", "adam_step", "AdamInside"], "adam", LONGER, ["adam_step", "AdamInside"]),
        (["hinge", "margin_ranking"], "hinge-loss", SHORTER, ["hinge"]),
        (["measure", "verdict"], "batch-norm-effects", NONE, []),
    ],
)
def test_the_nearest_name_is_chosen(defined: list[str], slug: str, fit: int, names: list[str]) -> None:
    found = choose_names(defined, slug)
    assert found[0] == fit
    assert found[1] == names or (fit == EXACT and names[0] in found[1])


def test_the_code_shown_is_what_bears_the_name_and_what_it_uses() -> None:
    pieces = read(Claim("gpt-2", "descend/models/gpt2.py", 1, "")).pieces
    shown = "\n".join(p.text for p in pieces)
    assert shown.startswith("class GPT2(")
    assert "class Block(" in shown
    assert "KEYS" not in shown


def test_the_definition_is_that_of_a_file_which_claims_the_system() -> None:
    [standard] = forms("early-stopping", CLAIMS["early-stopping"]).standard
    assert standard.path == "descend/engine/training.py"
    assert "patience" in standard.equation
    assert "θ ← θ − η m̂" in forms("adam", CLAIMS["adam"]).standard[0].equation


def test_a_method_is_shown_like_a_function() -> None:
    code = read_place("tasks/ppo.py:PPO.loss")
    assert code.pieces[0].text.startswith("def loss(self")
    assert code.symbol == "PPO.loss"


def test_names_are_split_into_words() -> None:
    assert name_words("causal_mask") == ["causal", "mask"]
    assert name_words("ReplayBuffer") == ["replay", "buffer"]
    assert name_words("GPT2Config") == ["gpt2", "config"]
    assert name_words("PPO") == ["ppo"]
