"""/v1/predict of every family: what `descend predict` (sample, edit, embed) says of the same; a schema for each run."""

from __future__ import annotations

import base64
import io
import json
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

import descend
from descend.data.detection.framing import Stretch
from descend.data.detection.prepare import DetectionPreprocessing
from descend.data.graphs.source import LinkSource, NodeSource
from descend.data.images.captions import Captions
from descend.data.images.labelled import Preprocessing
from descend.errors import Mistake
from descend.inference import open_run
from descend.kinds.graph_links import GraphLinks
from descend.kinds.graph_nodes import GraphNodes
from descend.kinds.whole_graphs import WholeGraphs
from descend.models import yolo_v8
from descend.models.clip import TINY as CLIP_TINY
from descend.models.clip import Clip
from descend.models.cyclegan import CycleGAN, CycleGANConfig
from descend.models.dcgan import DCGAN
from descend.models.dcgan import TINY as DCGAN_TINY
from descend.models.gcn import GCNConfig
from descend.models.gin import GINConfig
from descend.models.localiser import Localiser, LocaliserConfig
from descend.models.t5 import T5
from descend.models.t5 import TINY as T5_TINY
from descend.models.unet import UNet, UNetConfig
from descend.models.word_vectors import SkipGram, WordVectorsConfig
from descend.text.tokenizer import Tokenizer
from tests.inference.test_graphs import GraphSource, ring, save, write, write_nodes
from tests.inference.test_open_vocabulary import owl_folder
from tests.inference.test_text_answerers import save_encoder
from tests.server.conftest import Running, running

httpx = pytest.importorskip("httpx")
openai = pytest.importorskip("openai")
jsonschema = pytest.importorskip("jsonschema_rs")  # comes with schemathesis
RELEASED = Path(__file__).parents[1] / "verbs" / "data" / "last_release"
IMAGE = np.random.default_rng(0).integers(0, 256, (16, 16, 3), dtype=np.uint8)


def png() -> bytes:
    page = io.BytesIO()
    Image.fromarray(IMAGE).save(page, format="PNG")
    return page.getvalue()


def pixels(text: str) -> np.ndarray:
    return np.array(Image.open(io.BytesIO(base64.b64decode(text))))


def make_runs(root: Path) -> list[str]:
    """A tiny random model of every family."""
    torch.manual_seed(0)
    half = (0.5,) * 3
    UNet(UNetConfig(channels=3, classes=3, width=4, depth=2, padding=1)).save_pretrained(root / "unet")
    Preprocessing((3, 16, 16), half, half, ("ground", "cat", "dog")).save(root / "unet")
    CycleGAN(CycleGANConfig(width=4, halvings=1, blocks=1)).eval().save_pretrained(root / "cycle")
    Preprocessing((3, 8, 8), half, half).save(root / "cycle")
    yolo = yolo_v8.YoloV8(yolo_v8.TINY).eval()
    for p in yolo.head.parameters():
        torch.nn.init.normal_(p, std=0.5)
    yolo.save_pretrained(root / "yolo")
    DetectionPreprocessing(Stretch(64, 64), labels=yolo_v8.TINY.labels.names).save(root / "yolo")
    tokenizer = Captions(vocab=280).learn_tokenizer(["a red ring", "a blue star"])
    text = replace(CLIP_TINY.text, vocab=tokenizer.vocab, end=tokenizer.end or 0)
    Clip(replace(CLIP_TINY, text=text)).eval().save_pretrained(root / "clip")
    tokenizer.save(root / "clip")
    Preprocessing((3, 8, 8), half, half).save(root / "clip")
    for name, head in (
        ("tags", "ForTokenClassification"),
        ("blanks", "ForMaskedLM"),
        ("bert", "ForSequenceClassification"),
    ):
        save_encoder(root / name, head)
    words = Tokenizer.bpe("some words of a text " * 9, 270)
    T5(replace(T5_TINY, vocab=words.vocab)).save_pretrained(root / "t5")
    words.save(root / "t5")
    data = GraphSource(path=write(root / "a.jsonl", [ring(3 + i, y=("odd", "even")[i % 2]) for i in range(20)]))
    save(WholeGraphs(model=GINConfig(width=4, depth=1), data=data), root / "graphs")
    where = write_nodes(root / "readers")
    nodes = NodeSource(path=str(where), valid=0.2, test=0.2, scale="columns")
    save(GraphNodes(model=GCNConfig(width=4), data=nodes), root / "nodes")
    words = ("the", "cat", "sat", "mat", "dog")
    SkipGram(WordVectorsConfig(vocab=len(words) + 1, width=4)).save_pretrained(root / "words")
    Tokenizer.of_words(words).save(root / "words")
    Localiser(LocaliserConfig(image=(3, 16, 16), classes=3, widths=(4, 6))).save_pretrained(root / "localise")
    Preprocessing((3, 16, 16), half, half, ("cat", "dog", "horse")).save(root / "localise")
    DCGAN(replace(DCGAN_TINY, channels=3)).save_pretrained(root / "dcgan")
    owl_folder("OwlViT", root / "owl")
    links = LinkSource(features="degree", valid=0.1, test=0.1)
    save(GraphLinks(model=GCNConfig(width=4, outputs=1), data=links), root / "links")
    more = ("nodes", "words", "localise", "dcgan", "owl")
    made = (*more, "unet", "cycle", "yolo", "clip", "tags", "blanks", "bert", "t5", "graphs", "links")
    released = ("cnn-digits", "mlp-wine", "gan-mixture", "ppo-cartpole")
    return [*(str(root / name) for name in made), *(str(RELEASED / name) for name in released)]


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("families")


@pytest.fixture(scope="module")
def families(root: Path) -> Iterator[Running]:
    with running(*make_runs(root)) as found:
        yield found


def ask(server: Running, model: str, **asked: Any) -> list[dict[str, Any]]:
    """The answers; request and answers fit the schema of the run."""
    body = {"model": model, **asked}
    schema = httpx.get(f"{server.address}/v1/models/{model}/schema").json()
    jsonschema.validate(schema["request"], body)
    found = httpx.post(f"{server.address}/v1/predict", json=body, timeout=30)
    assert found.status_code == 200, found.text
    for answer in found.json()["answers"]:
        jsonschema.validate(schema["answer"], answer)
    return list(found.json()["answers"])


def same(found: Any, expected: Any) -> None:
    """JSON has the same numbers."""
    assert found == json.loads(json.dumps(expected))


@pytest.fixture
def photo(tmp_path: Path) -> Path:
    path = tmp_path / "image-0"
    path.write_bytes(png())
    return path


def encoded() -> str:
    return base64.b64encode(png()).decode()


def test_classes_of_images(families: Running, photo: Path) -> None:
    answers = ask(families, "cnn-digits", images=[encoded(), "data:image/png;base64," + encoded()], top=3)
    (expected,) = descend.predict(RELEASED / "cnn-digits", photo, top=3)
    assert [answer["input"] for answer in answers] == ["image-0", "image-1"]
    assert answers[0]["answers"] == answers[1]["answers"]
    assert [a["label"] for a in answers[0]["answers"]] == [a["label"] for a in expected["answers"]]
    assert [a["probability"] for a in answers[0]["answers"]] == pytest.approx(
        [a["probability"] for a in expected["answers"]], rel=1e-5
    )


def test_captions_of_an_image(families: Running, photo: Path, root: Path) -> None:
    labels = ["a red ring", "a blue star"]
    (answer,) = ask(families, "clip", images=[encoded()], labels=labels)
    (expected,) = descend.predict(root / "clip", photo, labels=labels)
    same(answer["answers"], expected["answers"])


def test_objects(families: Running, photo: Path, root: Path) -> None:
    (answer,) = ask(families, "yolo", images=[encoded()], threshold=0.0)
    (expected,) = descend.predict(root / "yolo", photo, threshold=0.0)
    assert answer["objects"]
    same(answer, {**expected, "input": "image-0"})


def test_masks(families: Running, photo: Path, root: Path) -> None:
    (answer,) = ask(families, "unet", images=[encoded()])
    (expected,) = open_run(root / "unet").segment([photo])  # type: ignore[union-attr]
    assert (pixels(answer["mask"]) == expected.numpy()).all()
    assert answer["labels"] == ["ground", "cat", "dog"]
    (shares,) = descend.predict(root / "unet", photo)
    assert answer["shares"] == pytest.approx({a["label"]: a["probability"] for a in shares["answers"]})


def test_translated_images(families: Running, photo: Path, root: Path) -> None:
    from descend.report.sheet import to_bytes

    for back in (False, True):
        (answer,) = ask(families, "cycle", images=[encoded()], back=back)
        expected = descend.edit(root / "cycle", photo, back=back)[0]
        assert (pixels(answer["image"]) == to_bytes(expected.clamp(0, 1))).all()


@pytest.mark.parametrize(
    ("run", "text"), [("tags", "the cat sat."), ("blanks", "the [MASK] sat"), ("bert", "a cat"), ("t5", "some words")]
)
def test_texts(families: Running, root: Path, run: str, text: str) -> None:
    found = ask(families, run, texts=[text], top=2)
    same(found, descend.predict(root / run, text, top=2, text=True))


def test_a_text_is_never_a_file_of_the_server(families: Running, tmp_path: Path) -> None:
    (tmp_path / "secret.txt").write_text("the cat\n")
    path = str(tmp_path / "secret.txt")
    (answer,) = ask(families, "bert", texts=[path])
    assert answer["input"] == path
    assert "cat" not in json.dumps(ask(families, "tags", texts=[path])).replace(path, "")


def test_records_of_a_table(families: Running, tmp_path: Path) -> None:
    columns = open_run(RELEASED / "mlp-wine").columns  # type: ignore[union-attr]
    records = [{name: float(i + k) for k, name in enumerate(columns.inputs)} for i in range(2)]
    answers = ask(families, "mlp-wine", records=records)
    (tmp_path / "r.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records))
    expected = descend.predict(RELEASED / "mlp-wine", tmp_path / "r.jsonl")
    told = [{"record": i, "prediction": r["cultivar"], "probability": r["probability"]} for i, r in enumerate(expected)]
    same(answers, told)
    found = httpx.post(f"{families.address}/v1/predict", json={"model": "mlp-wine", "records": [{"ash": 1}]})
    assert found.status_code == 400
    assert "records.jsonl has no column 'alcohol'" in found.json()["error"]["message"]


def test_graphs(families: Running, root: Path, tmp_path: Path) -> None:
    graphs = [ring(5), ring(6)]
    answers = ask(families, "graphs", graphs=graphs)
    expected = descend.predict(root / "graphs", write(tmp_path / "b.jsonl", graphs))
    assert [answer["values"]["prediction"] for answer in answers] == [row["prediction"] for row in expected]
    assert [a["values"]["probability"] for a in answers] == pytest.approx([row["probability"] for row in expected])
    chain = {"nodes": 5, "edges": [[0, 1], [1, 2], [2, 3], [3, 4]], "names": ["a", "b", "c", "d", "e"]}
    answers = ask(families, "links", graphs=[chain], top=2)
    (tmp_path / "edges.csv").write_text("source,target\na,b\nb,c\nc,d\nd,e\n")
    expected = descend.predict(root / "links", tmp_path / "edges.csv", top=2)
    same(answers, [{"graph": 0, **row} for row in expected])


def test_classes_of_nodes(families: Running, root: Path) -> None:
    names = [f"n{i}" for i in range(12)]
    graph = {
        "nodes": [[i % 3, i % 5] for i in range(12)], "edges": [[i, (i + 1) % 12] for i in range(12)], "names": names,
    }  # fmt: skip
    answers = ask(families, "nodes", graphs=[graph])
    expected = descend.predict(root / "nodes", root / "readers")
    assert [answer["node"] for answer in answers] == names
    assert [answer["prediction"] for answer in answers] == [row["prediction"] for row in expected]
    told = [row["probability"] for row in expected]
    assert [answer["probability"] for answer in answers] == pytest.approx(told, rel=1e-5)


def test_neighbours_of_words(families: Running, root: Path) -> None:
    same(ask(families, "words", texts=["cat"], top=2), descend.predict(root / "words", "cat", top=2, text=True))


def test_the_one_object_of_an_image(families: Running, photo: Path, root: Path) -> None:
    (answer,) = ask(families, "localise", images=[encoded()], top=3)
    (expected,) = descend.predict(root / "localise", photo, top=3)
    assert len(answer["box"]) == 4
    same(answer, {**expected, "input": "image-0"})


def test_objects_that_are_named(families: Running, photo: Path, root: Path) -> None:
    labels = ["a cat", "a dog"]
    (answer,) = ask(families, "owl", images=[encoded()], labels=labels, threshold=0.0)
    (expected,) = descend.predict(root / "owl", photo, labels=labels, threshold=0.0)
    assert {one["label"] for one in answer["objects"]} <= set(labels)
    same(answer, {**expected, "input": "image-0"})


def test_images_that_are_made(families: Running, root: Path) -> None:
    from descend.report.sheet import to_bytes

    answers = ask(families, "dcgan", count=2, seed=5)
    expected = descend.sample(root / "dcgan", 2, 5)
    for answer, x in zip(answers, expected, strict=True):
        assert (pixels(answer["image"]) == to_bytes(x.clamp(0, 1))).all()


def test_samples(families: Running) -> None:
    answers = ask(families, "gan-mixture", count=3, seed=4)
    same([answer["values"] for answer in answers], descend.sample(RELEASED / "gan-mixture", 3, 4).tolist())


def test_actions(families: Running) -> None:
    seen = [[0.1, 0.2, -0.1, 0.3], [-0.5, 0.0, 0.4, 0.1]]
    player: Any = open_run(RELEASED / "ppo-cartpole")
    expected = player.act(torch.tensor(seen)).tolist()
    assert [answer["action"] for answer in ask(families, "ppo-cartpole", observations=seen)] == expected


def test_vectors(families: Running, root: Path) -> None:
    with openai.OpenAI(base_url=f"{families.address}/v1", api_key="none", max_retries=0) as client:
        for given in ("float", "base64"):
            found = client.embeddings.create(model="bert", input=["a cat", "the dog"], encoding_format=given)
            told = [one.embedding for one in found.data]
            if given == "base64":
                told = [np.frombuffer(base64.b64decode(text), np.float32).tolist() for text in told]
            assert torch.allclose(torch.tensor(told), descend.embed(root / "bert", "a cat", "the dog", text=True))
        plain = client.embeddings.create(model="clip", input="a red ring")
        assert torch.allclose(torch.tensor(plain.data[0].embedding), descend.embed(root / "clip", "a red ring")[0])
        with pytest.raises(openai.BadRequestError, match=r"cnn-digits holds a .*, which answers at /v1/predict"):
            client.embeddings.create(model="cnn-digits", input="x")
        with pytest.raises(openai.BadRequestError, match="a text is empty"):
            client.embeddings.create(model="bert", input="")


WRONG: list[tuple[dict[str, Any], str]] = [
    ({"model": "cnn-digits", "images": ["%%%"]}, "image 0 is not base64"),
    ({"model": "cnn-digits", "images": ["aGVsbG8="]}, "image-0 cannot be read as an image"),
    ({"model": "cnn-digits", "images": []}, "images: "),
    ({"model": "cnn-digits"}, "images: field required"),
    ({"model": "cnn-digits", "image": "x"}, "Did you mean 'images'"),
    ({"model": "ppo-cartpole", "observations": [[1.0]]}, "observation 0 has 1 numbers, but this policy sees 4"),
    ({"model": "links", "graphs": [{"nodes": 2, "edges": [[0, 5]]}]}, "graph-0.json"),
    ({"model": "links", "graphs": [{"nodes": 10**9, "edges": []}]}, "graphs.0"),
    ({"model": "blanks", "texts": ["no blank"]}, "has no blank"),
    ({"model": "clip", "images": ["x"]}, "labels: field required"),
    ({"images": []}, "model: give the name of a model"),
]


@pytest.mark.parametrize(("body", "said"), WRONG)
def test_what_is_wrong_is_named(families: Running, body: dict[str, Any], said: str) -> None:
    found = httpx.post(f"{families.address}/v1/predict", json=body)
    assert found.status_code == 400
    assert said in found.json()["error"]["message"]
    assert "/tmp" not in found.json()["error"]["message"]


def test_a_damaged_run_is_refused_before_the_server_begins(tmp_path: Path) -> None:
    shutil.copytree(RELEASED / "cnn-digits" / "checkpoints" / "best", tmp_path / "run")
    (tmp_path / "run" / "model.safetensors").write_bytes(b"damaged")
    with pytest.raises(Mistake, match=r"model\.safetensors"):
        descend.serve(str(tmp_path / "run"), check=True)
