"""OWL-ViT and OWLv2 against transformers' own, both ways: texts, images in the place of texts, boxes, losses."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

import descend
from descend.contracts import Boxes, Detects
from descend.losses.detection.set_prediction import FocalSetPrediction
from descend.models import model_class
from descend.models.owlv2 import TINY as TINY_V2
from descend.models.owlv2 import Owlv2ForObjectDetection
from descend.models.owlvit import TINY, TINY_INPUT, OwlVitForObjectDetection
from descend.nn.detection.text_similarity import ContrastiveScore, TextSimilarity
from tests.close import close
from tests.models.peers import Call, random_peer

transformers = pytest.importorskip("transformers")

TEXT = {"vocab_size": 61, "hidden_size": 16, "intermediate_size": 24, "num_hidden_layers": 2, "num_attention_heads": 2,
        "max_position_embeddings": 12, "bos_token_id": 59, "eos_token_id": 60}  # fmt: skip
IMAGE = {"hidden_size": 24, "intermediate_size": 40, "num_hidden_layers": 2, "num_attention_heads": 3, "image_size": 20,
         "patch_size": 4}  # fmt: skip
FAMILIES = ("OwlViT", "Owlv2")


def peer(family: str, head: str = "ForObjectDetection") -> Any:
    config = getattr(transformers, f"{family}Config")(text_config=TEXT, vision_config=IMAGE, projection_dim=16)
    model = random_peer(getattr(transformers, f"{family}{head}"), config, std=0.1)
    heads = [m for name, m in model.named_modules() if "head" in name and isinstance(m, torch.nn.Linear)]
    for layer in heads:  # moderate numbers: boxes inside the image, scores that are neither 0 nor 1
        torch.nn.init.normal_(layer.weight, std=0.2)
    return model


def check_both_ways(theirs: Any, folder: Path, call_ours: Call, call_theirs: Call) -> Any:
    """As the check of the other models, but what comes back is compared tensor by tensor: sums over tensors that lie
    elsewhere in memory may differ in the last bit."""
    theirs.save_pretrained(folder / "theirs")
    ours = descend.load(folder / "theirs").eval()
    with torch.no_grad():
        close(call_ours(ours), call_theirs(theirs))
        ours.save_pretrained(folder / "ours")
        again = type(theirs).from_pretrained(folder / "ours").eval()
        close(call_theirs(again), call_theirs(theirs))
    before, after = theirs.state_dict(), again.state_dict()
    assert before.keys() == after.keys()
    assert all(torch.equal(before[key], after[key]) for key in before)
    return ours


def texts() -> Tensor:
    """Three texts that end at different places, padded with 0; for the second image the last is padding."""
    x = torch.randint(3, 58, (2, 3, 9), generator=torch.Generator().manual_seed(1))
    x[:, 0, 4], x[:, 1, 6], x[:, 2, 8] = 60, 60, 60
    x[:, 0, 5:], x[:, 1, 7:] = 0, 0
    x[1, 2] = 0
    return x


def pixels(seed: int = 2) -> Tensor:
    return torch.randn(2, 3, 20, 20, generator=torch.Generator().manual_seed(seed))


@pytest.mark.system("open-vocabulary-detection")
@pytest.mark.system("open-vocabulary-detection", "transformers")
@pytest.mark.parametrize("family", FAMILIES)
def test_both_ways(family: str, tmp_path: Path) -> None:
    """Logits of every patch and text, boxes, and what OWLv2 has more; texts of each image of their own."""
    theirs, x, w = peer(family), pixels(), texts()
    call = lambda m: m(input_ids=w.flatten(0, 1), attention_mask=(w > 0).long().flatten(0, 1), pixel_values=x)
    real = (w[..., 0] > 0)[:, None].expand(-1, 25, -1)  # padding has the least number there is
    ours = check_both_ways(theirs, tmp_path, lambda m: m(x, w).logits[0][real], lambda m: call(m).logits[real])
    out, found = call(theirs), ours(x, w)
    close(found.boxes[0], out.pred_boxes)
    assert (found.logits[0][~real] < -1e30).all()
    close(ours.encode_text(w.flatten(0, 1)[:5]), out.text_embeds.flatten(0, 1)[:5])
    if family == "Owlv2":
        close(found.objectness, out.objectness_logits)
    same = w[:1].expand(2, -1, -1)
    close(ours(x, w[0]).logits, ours(x, same).logits)  # the same texts for all images


@pytest.mark.system("open-vocabulary-detection", "transformers")
@pytest.mark.parametrize("family", FAMILIES)
def test_gradients(family: str, tmp_path: Path) -> None:
    theirs, x, w = peer(family), pixels(), texts()[:1].expand(2, -1, -1)
    theirs.save_pretrained(tmp_path)
    ours = model_class(family.lower()).from_pretrained(tmp_path)
    out = theirs(input_ids=w.flatten(0, 1), attention_mask=(w > 0).long().flatten(0, 1), pixel_values=x)
    (out.logits.sigmoid().sum() + out.pred_boxes.square().sum()).backward()
    found = ours(x, w)
    (found.logits.sigmoid().sum() + found.boxes.square().sum()).backward()
    owl = getattr(theirs, family.lower())
    close(ours.image.patches.weight.grad, owl.vision_model.embeddings.patch_embedding.weight.grad)
    close(ours.text.token.weight.grad, owl.text_model.embeddings.token_embedding.weight.grad)
    close(ours.classes.scale.weight.grad, theirs.class_head.logit_scale.weight.grad)


@pytest.mark.system("open-vocabulary-detection", "transformers")
@pytest.mark.parametrize("family", FAMILIES)
def test_the_clip_that_it_begins_with(family: str, tmp_path: Path) -> None:
    theirs, x, w = peer(family, "Model"), pixels(), texts()[0]
    call = lambda m: m(input_ids=w, attention_mask=(w > 0).long(), pixel_values=x).logits_per_image
    check_both_ways(theirs, tmp_path, lambda m: m(x, w), call)


@pytest.mark.system("open-vocabulary-detection", "image-queries")
@pytest.mark.parametrize("family", FAMILIES)
def test_an_image_in_the_place_of_a_text(family: str, tmp_path: Path) -> None:
    theirs, x, asked = peer(family), pixels(), pixels(5)
    theirs.save_pretrained(tmp_path)
    ours = model_class(family.lower()).from_pretrained(tmp_path)
    with torch.no_grad():
        out = theirs.image_guided_detection(pixel_values=x, query_pixel_values=asked)
        found = ours.find(x, ours.query_by_image(asked))
    close(found.logits[0], out.logits)
    close(found.boxes[0], out.target_pred_boxes)


@pytest.mark.system("open-vocabulary-detection", "transformers")
@pytest.mark.parametrize("family", FAMILIES)
def test_objects_as_transformers_tells_them(family: str, tmp_path: Path) -> None:
    """Best text and score of every patch, in pixels of the model's input, those above a threshold."""
    theirs, x, w = peer(family), pixels(), texts()[:1].expand(2, -1, -1)
    theirs.save_pretrained(tmp_path)
    ours = model_class(family.lower()).from_pretrained(tmp_path)
    processor = getattr(transformers, f"{family}ImageProcessor")()
    with torch.no_grad():
        out = theirs(input_ids=w.flatten(0, 1), attention_mask=(w > 0).long().flatten(0, 1), pixel_values=x)
        found = ours.decode(ours(x, w), least=0.5)
    expected = processor.post_process_object_detection(out, 0.5, torch.tensor([[20, 20], [20, 20]]))
    for i, image in enumerate(expected):
        order = image["scores"].argsort(descending=True)
        there = found.classes[i] >= 0
        assert there.sum() == len(order) > 0
        close(found.scores[i][there], image["scores"][order])
        close(found.boxes[i][there], image["boxes"][order])
        assert torch.equal(found.classes[i][there], image["labels"][order])


@pytest.mark.system("open-vocabulary-detection", "new-names")
@pytest.mark.parametrize("build", [OwlVitForObjectDetection, Owlv2ForObjectDetection])
def test_a_text_is_judged_for_itself(build: Any) -> None:
    """More texts, or other ones beside it, change nothing of a text's scores; boxes need no text."""
    torch.manual_seed(0)
    model = build(TINY if build is OwlVitForObjectDetection else TINY_V2).eval()
    x, w = TINY_INPUT()
    all_three, alone = model(x, w), model(x, w[1:2])
    close(all_three.logits[..., 1:2], alone.logits)
    assert torch.equal(all_three.boxes, alone.boxes)
    assert isinstance(model, Detects)


@pytest.mark.system("open-vocabulary-detection", "similarity-head")
def test_the_class_head_is_a_similarity() -> None:
    """(cos + shift) · scale by hand; the length of a text's vector does not matter, its direction does."""
    torch.manual_seed(0)
    head = TextSimilarity(6, 4).double()
    x, t = torch.randn(2, 5, 6).double(), torch.randn(3, 4).double()
    e = torch.nn.functional.linear(x, head.project.weight, head.project.bias)
    cosine = torch.nn.functional.cosine_similarity(e[:, :, None], t[None, None], dim=-1)
    scale = torch.where(head.scale(x) > 0, head.scale(x) + 1, head.scale(x).exp())
    close(head(x, t), (cosine + head.shift(x)) * scale, loosen=1e4)  # 1e-6 is added to each length
    close(head(x, 7 * t), head(x, t), loosen=1e4)
    score = ContrastiveScore().double()
    close(score(e, t), score.scale.exp() * cosine + score.shift, loosen=1e4)
    assert score(torch.zeros(1, 1, 4).double(), t).sigmoid().max() < 0.011


@pytest.mark.system("open-vocabulary-detection", "learns")
def test_it_learns_one_image() -> None:
    """The original's loss: a bipartite matching, focal, L1 and GIoU. Two objects by two of three texts."""
    torch.manual_seed(0)
    model = OwlVitForObjectDetection(TINY)
    x, w = TINY_INPUT()
    truth = Boxes(torch.tensor([[[1.0, 1, 7, 9], [8, 6, 15, 14]]]), torch.tensor([[2, 0]]), torch.ones(1, 2))
    rule, loss = torch.optim.AdamW(model.parameters(), 5e-3), FocalSetPrediction()
    for _ in range(120):
        rule.zero_grad()
        loss(model(x[:1], w), truth, torch.zeros(1, 0)).total().backward()
        rule.step()
    found = model.eval().decode(model(x[:1], w), least=0.3)
    order = found.boxes[0, :2, 0].argsort()
    assert found.classes[0, :2][order].tolist() == [2, 0]
    assert (found.boxes[0, :2][order] - truth.boxes[0]).abs().max() < 1.0
