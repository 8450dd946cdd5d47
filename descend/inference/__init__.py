"""Open a run or a public model folder, and ask it: the one place where a trained model answers.

    open_run("runs/digits")             ImageClassifier     .classify(images)
    open_run("runs/scenes")             Segmenter           .segment(images)
    open_run("runs/yolo-scenes")        Detector            .detect(images)
    open_run("runs/localise-scenes")    SingleObjectDetector  .detect(images)
    open_run("runs/opinions")           SentenceClassifier  .classify(texts)
    open_run("runs/bert-tag")           Tagger              .tag(texts)
    open_run("runs/bert-pydoc")         BlankFiller         .fill_text("the [MASK] statement")
    open_run("runs/reward-opinions")    ResponseJudge       .rate(records), .predict(["prompt", "response", ..])
    open_run("runs/glove-pydoc")        NearestWords        .find_near(word, count)
    open_run("runs/gcn-cora")           NodeClassifier      .predict(["graph/"])
    open_run("runs/gin-rings")          GraphPredictor      .predict(["graphs.jsonl"])
    open_run("runs/link-karate")        LinkPredictor       .best(20).predict(["edges.csv"])
    open_run("runs/table")              TablePredictor      .predict_table("new.csv")
    open_run("runs/gpt2-pydoc")         Writer              .write(prompt, tokens, sampler), .search(prompt, ..)
    open_run("runs/ppo-cartpole")       Player              .act(observation), .play(episodes); also a policy.zip of SB3
    open_run("runs/act-pick-place")     ArmPlayer           .plan(seen, chance), .play(episodes, instruction=..)
    open_run("runs/gan-mixture")        Sampler             .sample(count)
    open_run("runs/pix2pix-scenes")     Translator          .translate(images)
    Encoder.open("runs/digits")         Encoder             .encode_images(images), .encode_texts(texts)

The best checkpoint is opened unless another is named.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from descend.errors import Mistake
from descend.inference.trained import Trained, load_trained

if TYPE_CHECKING:
    from descend.inference.arm_player import ArmPlayer
    from descend.inference.blank_filler import BlankFiller
    from descend.inference.detector import Detector
    from descend.inference.graphs import GraphPredictor, LinkPredictor, NodeClassifier
    from descend.inference.image_classifier import ImageClassifier
    from descend.inference.nearest_words import NearestWords
    from descend.inference.player import Player
    from descend.inference.response_judge import ResponseJudge
    from descend.inference.sampler import Sampler
    from descend.inference.segmenter import Segmenter
    from descend.inference.single_object_detector import SingleObjectDetector
    from descend.inference.table_predictor import TablePredictor
    from descend.inference.tagger import Tagger
    from descend.inference.text_classifier import SentenceClassifier
    from descend.inference.translator import Translator
    from descend.inference.writer import Writer

    ImageAnswerer = ImageClassifier | Segmenter | SingleObjectDetector | Detector
    TextAnswerer = SentenceClassifier | Tagger | BlankFiller | NearestWords | ResponseJudge
    GraphAnswerer = NodeClassifier | GraphPredictor | LinkPredictor
    DataAnswerer = ImageAnswerer | TextAnswerer | TablePredictor | GraphAnswerer
    Answerer = DataAnswerer | Writer | Player | ArmPlayer | Sampler | Translator

EMBEDDING = (
    "ContrastiveEncoder", "PredictiveEncoder", "SimSiamEncoder", "JigsawEncoder", "IJepa", "ViTMAE",
    "ViTMAEForPreTraining",
)  # fmt: skip
"""Encoders of images that were trained without classes."""


def open_run(run: str | Path, checkpoint: str | int = "best", labels: Sequence[str] = ()) -> Answerer:
    """The answerer that fits what the folder holds.

    Args:
        run: a run's folder, or a public model folder.
        checkpoint: best, last or a step.
        labels: for a CLIP: the classes to choose from; for an open-vocabulary detector: what to look for.
    """
    return open_trained(load_trained(run, checkpoint), run, labels)


def open_trained(trained: Trained, run: str | Path, labels: Sequence[str] = ()) -> Answerer:
    """The same for a model that was read already."""
    from descend.contracts import Detects, Generates, PlansActions
    from descend.data.images.labelled import PREPROCESSOR
    from descend.data.tables.columns import FILE as COLUMNS
    from descend.inference import (
        arm_player,
        detector,
        encoder,
        graphs,
        open_vocabulary,
        player,
        sampler,
        table_predictor,
        translator,
    )
    from descend.inference.image_classifier import choose_among
    from descend.models.clip import Joint

    if isinstance(trained.model, Joint):
        return choose_among(trained, labels)
    if open_vocabulary.finds_by_text(trained):
        return open_vocabulary.look_for(trained, labels)
    if labels:
        raise Mistake(f"--labels are for a CLIP or an OWL, but {run} holds a {trained.kind}, which has its own")
    if isinstance(trained.model, Detects):
        return detector.Detector.read(trained)
    if isinstance(trained.model, PlansActions):
        return arm_player.ArmPlayer.read(trained, run)
    if isinstance(trained.model, Generates):
        return sampler.Sampler.read(trained)
    if isinstance(trained.model, translator.TranslatesImages):
        return translator.Translator.read(trained)
    if graphs.answers_graphs(trained):
        return graphs.open_graph_answerer(trained)
    if (trained.folder / COLUMNS).exists():
        return table_predictor.TablePredictor.read(trained)
    if (trained.folder / PREPROCESSOR).exists():
        return open_image_answerer(trained)
    if (answerer := open_text_answerer(trained)) is not None:
        return answerer
    if player.plays(trained):
        return player.Player.read(trained, run)
    if encoder.encodes_texts(trained) or encoder.encodes_images(trained):
        raise Mistake(f"{run} holds a {trained.kind}, which gives vectors; use: descend embed {run}")
    raise Mistake(f"{run} holds a {trained.kind}; no verb supports that kind of model yet")


def open_text_answerer(trained: Trained) -> TextAnswerer | Writer | None:
    """By what the model was made for; None: not for texts."""
    from descend.inference import blank_filler, nearest_words, response_judge, tagger, text_classifier, writer

    if response_judge.rates_responses(trained):
        return response_judge.ResponseJudge.read(trained)
    if text_classifier.classifies_texts(trained):
        return text_classifier.open_sentence_classifier(trained)
    if tagger.tags_words(trained):
        return tagger.Tagger.read(trained)
    if blank_filler.fills_blanks(trained):
        return blank_filler.BlankFiller.read(trained)
    if nearest_words.has_word_vectors(trained):
        return nearest_words.NearestWords.read(trained)
    if writer.writes(trained):
        return writer.Writer.read(trained)
    return None


def open_image_answerer(trained: Trained) -> ImageAnswerer:
    """By what the model makes of a blank image: (1, K) classes, (1, K, h, w) masks, or a class and a box."""
    import torch
    from torch import Tensor

    from descend.data.images.labelled import PREPROCESSOR
    from descend.inference.image_classifier import ImageClassifier
    from descend.inference.images import ImageModel
    from descend.inference.segmenter import Segmenter
    from descend.inference.single_object_detector import SingleObjectDetector
    from descend.models.localiser import Located

    if trained.kind in EMBEDDING:
        raise Mistake(f"{trained.folder} holds a {trained.kind}, which gives vectors; use: descend embed RUN IMAGES")
    if trained.kind.endswith("ForMaskedImageModeling"):
        raise Mistake(f"{trained.folder} holds a {trained.kind}, which fills in hidden patches and classifies nothing")
    images = ImageModel.read(trained)
    try:
        found: Any = images.run(torch.zeros(1, *images.prepare.image))[0]
    except RuntimeError as error:
        size, said = "×".join(map(str, images.prepare.image)), str(error).partition("\n")[0]
        raise Mistake(
            f"{trained.folder / PREPROCESSOR} says that images are {size}, which the model cannot take: {said}"
        ) from None
    if isinstance(found, Located):
        return SingleObjectDetector(images, images.name_classes(found.logits.shape[1]))
    if isinstance(found, Tensor) and found.dim() in (2, 4):
        answerer = ImageClassifier if found.dim() == 2 else Segmenter
        return answerer(images, images.name_classes(found.shape[1]))
    raise Mistake(f"{trained.folder} holds a {trained.kind}, which does not classify images")
