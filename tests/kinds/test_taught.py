"""Students: taught by a trained run, by its probabilities or by what it writes; pruned and rounded while they learn."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
import torch

import descend
from descend import recipes
from descend.data.images.digits import Digits
from descend.data.text.plain import Text
from descend.data.text.written import write_tokens
from descend.engine.run import Run
from descend.errors import Mistake
from descend.kinds.compression import Compression
from descend.kinds.images import ClassifyImages
from descend.kinds.language import LanguageRecipe
from descend.kinds.length import with_steps
from descend.kinds.start_from import Start
from descend.kinds.taught import Teacher, TeachImages, TeachLanguage, WritingTeacher
from descend.models.llama import LlamaConfig
from descend.models.typical_cnn import TypicalCNNConfig
from descend.tasks.classify import Classify
from descend.tasks.language import Language
from descend.tasks.taught import TaughtClasses, TaughtLanguage

KD, PRUNING, QAT = "knowledge-distillation", "magnitude-pruning", "quantization-aware-training"
SMALL = LlamaConfig(context=16, width=16, depth=1, heads=2, kv_heads=1, hidden=16, tied=True)


@pytest.fixture(scope="module")
def classifier(tmp_path_factory: pytest.TempPathFactory) -> Path:
    where = tmp_path_factory.mktemp("teacher") / "run"
    recipe = recipes.get("cnn-digits")
    small = replace(recipe, model=TypicalCNNConfig(widths=(8,), convs=1, kernel=3, hidden=(16,)))
    descend.train(with_steps(small, 60), out=where, quiet=True)
    return where


@pytest.fixture(scope="module")
def writer(tmp_path_factory: pytest.TempPathFactory) -> Path:
    where = tmp_path_factory.mktemp("writer")
    (where / "text.txt").write_text("the cat sat on the mat . a dog ran over the hill . " * 60)
    recipe = LanguageRecipe(model=SMALL, data=text(where))
    loop = replace(recipe.loop, steps=20, batch=8)
    descend.train(replace(with_steps(recipe, 20), loop=loop), out=where / "run", quiet=True)
    return where


def text(where: Path) -> Text:
    return Text(path=str(where / "text.txt"), tokenizer="characters")


@pytest.mark.system(KD, "classes")
def test_a_classifier_teaches_a_smaller_one(classifier: Path, tmp_path: Path) -> None:
    recipe = replace(with_steps(recipes.get("student-digits"), 4), teacher=Teacher(str(classifier), 0.3, 2.0))
    assert isinstance(recipe, TeachImages)
    task = recipe.build().task
    assert isinstance(task, TaughtClasses)
    assert (task.alpha, task.tau) == (0.3, 2.0)
    run, result = descend.train(recipe, out=tmp_path / "student", quiet=True)
    assert result.step == 4
    assert json.loads((run.folder / "recipe.json").read_text())["facts"]["teacher"] == str(classifier)
    assert {"loss", "loss_labels", "loss_teacher"} <= run.metrics().keys()
    assert "teacher" in descend.evaluate(run.folder)["test"]
    assert type(recipes.get("student-digits").build().task) is Classify
    with pytest.raises(Mistake, match=r"its image size .* differs"):
        replace(recipe, data=Digits(size=12)).build()


@pytest.mark.system(KD, "language")
def test_a_language_model_teaches_a_smaller_one(writer: Path, tmp_path: Path) -> None:
    teacher = WritingTeacher(str(writer / "run"), alpha=0.2)
    recipe = TeachLanguage(model=replace(SMALL, width=8), data=text(writer), teacher=teacher)
    task = recipe.build().task
    assert isinstance(task, TaughtLanguage)
    score = task.score(next(recipe.build().stream))
    assert task.judge({"loss": score["loss"].mean().item()}, {}).keys() >= {"perplexity", "bits_per_byte"}
    (tmp_path / "other.txt").write_text("zebras and quails; " * 200)
    other = Text(path=str(tmp_path / "other.txt"), tokenizer="characters")
    with pytest.raises(Mistake, match=r"it has \d+ tokens, the student \d+; train it on the same --data"):
        replace(recipe, data=other).build()
    (tmp_path / "upper.txt").write_text((writer / "text.txt").read_text().upper())
    with pytest.raises(Mistake, match="its tokenizer is another one"):
        replace(recipe, data=Text(path=str(tmp_path / "upper.txt"), tokenizer="characters")).build()


@pytest.mark.system(KD, "sequences")
def test_a_student_of_what_the_teacher_writes(writer: Path) -> None:
    """The stream is the teacher's text, the same each time; it begins with the text's own tokens, and validation stays
    the text."""
    teacher = WritingTeacher(str(writer / "run"), alpha=1.0, writes=3000)
    recipe = TeachLanguage(model=replace(SMALL, width=8), data=text(writer), teacher=teacher)
    parts, plain = recipe.build(), LanguageRecipe(model=SMALL, data=text(writer)).build()
    assert type(parts.task) is Language
    assert parts.facts["tokens by the teacher"] >= 3000
    assert torch.equal(next(iter(parts.valid))["x"], next(iter(plain.valid))["x"])
    assert torch.equal(next(parts.stream)["x"], next(recipe.build().stream)["x"])
    model, tokens = descend.load(writer / "run"), plain.stream.tokens  # type: ignore[attr-defined]
    found = write_tokens(model, tokens, 100, 17, seed=1)  # type: ignore[arg-type]
    begun = {tuple(tokens[i : i + 8].tolist()) for i in range(len(tokens) - 8)}
    assert all(tuple(piece[:8].tolist()) in begun for piece in found.split(17))
    with pytest.raises(Mistake, match=r"--teacher\.writes: who"):
        replace(recipe, teacher=WritingTeacher(writes=5)).build()
    with pytest.raises(Mistake, match="leave no room to write after 8"):
        write_tokens(model, tokens, 10, 8)  # type: ignore[arg-type]


@pytest.mark.system(PRUNING, "mask-kept")
def test_a_pruned_run_is_resumed_to_the_bit(classifier: Path, tmp_path: Path) -> None:
    base = recipes.get("cnn-digits")
    assert isinstance(base, ClassifyImages)
    recipe = replace(base, start=Start(str(classifier), rate=1.0), compress=Compression(sparsity=0.8))
    loop = replace(recipe.loop, steps=6, eval_every=3, save_every=3, patience=0)
    run, _ = descend.train(replace(recipe, loop=loop), out=tmp_path / "whole", quiet=True)
    model, last = descend.load(run.folder, "last"), run.checkpoints / "step-000006"
    weights = [p for p in model.parameters() if p.dim() > 1]
    zeros = sum(int((w == 0).sum()) for w in weights)
    assert zeros == round(0.8 * sum(w.numel() for w in weights))
    assert run.recipe["facts"]["zero weights"] == pytest.approx(0.8, abs=1e-3)
    kept = last.rename(tmp_path / "kept")
    descend.resume(run.folder, quiet=True)
    for name, tensor in descend.load(kept).state_dict().items():
        assert torch.equal(tensor, descend.load(Run.open(run.folder).folder, "last").state_dict()[name])
    with pytest.raises(Mistake, match=r"--compress\.sparsity prunes what was trained; give --start.path RUN too"):
        replace(base, compress=Compression(sparsity=0.5)).build()


@pytest.mark.system(QAT, "training")
def test_a_run_with_rounded_weights(tmp_path: Path) -> None:
    """Its checkpoint is that of the plain model, and what is evaluated is the rounded one."""
    base = recipes.get("lenet-digits")
    assert isinstance(base, ClassifyImages)
    recipe = with_steps(replace(base, compress=Compression(bits=3)), 4)
    run, _ = descend.train(recipe, out=tmp_path / "run", quiet=True)
    assert run.recipe["facts"]["bits of a weight"] == 3
    model = descend.load(run.folder)
    assert all(len(torch.unique(p[0])) > 7 for p in model.parameters() if p.dim() > 1)
    assert "accuracy" in descend.evaluate(run.folder)["test"]
    with pytest.raises(Mistake, match=r"--compress\.bits 1: a weight has 2 to 8 bits"):
        replace(base, compress=Compression(bits=1)).build()
