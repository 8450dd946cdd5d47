"""A folder of documents as an index: passages, where each comes from, and what finds them: keywords or an encoder.

    index = update_index("docs/", "index/", by="minilm/")    made, or brought up to date: changed files are read anew
    PassageIndex.open("index/").search("how do I resume?", 5)

    index/  index.json              files and their checksums, the embedder and its checksum, how passages are cut
            passages-ID.jsonl       a passage a line, with file and lines
            vectors-ID.safetensors  x (n, d) of an encoder; keyword search (BM25) has none

The query is encoded by the SAME model as the passages (DLN-B.84): the index names it by the checksum of its weights,
and another one is refused. index.json is written last, so an index is whole or is still the one before.

Systems: rag, sentence-similarity
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Protocol

import torch
import xxhash
from safetensors.torch import load_file
from torch import Tensor

from descend.classic.bm25 import BM25
from descend.classic.nearest import CosineSearch
from descend.data.reading import digest, is_folder, read_objects, show
from descend.data.text.passages import LEAST, MOST, Passage, cut_file, list_documents
from descend.engine.frozen import checksum
from descend.errors import Mistake
from descend.files import entries, field, read_json, sync, write_json, write_text
from descend.inference.encoder import Encoder, encodes_texts
from descend.weights.tensor_file import read_header, write_tensors

HEADER, FORMAT = "index.json", 1
KEYWORDS = "bm25"


class Searches(Protocol):
    """What finds vectors: exact (`classic.nearest`) or approximate (`classic.approximate`)."""

    def search(self, queries: Tensor, k: int) -> tuple[Tensor, Tensor]: ...


@dataclass(frozen=True)
class Embedder:
    """What finds the passages: BM25, or an encoder known by the checksum of its weights and tokenizer."""

    by: str
    checksum: str = ""
    model: str = ""

    def describe(self) -> str:
        return "keywords (bm25)" if not self.checksum else f"{self.by} ({self.model}, checksum {self.checksum[:12]})"


@dataclass(frozen=True)
class Found:
    """A passage and how well it fits: a cosine, or BM25's sum."""

    passage: Passage
    score: float


@dataclass(frozen=True)
class Update:
    """What became of the files of a folder."""

    added: tuple[str, ...]
    changed: tuple[str, ...]
    removed: tuple[str, ...]
    unchanged: int
    passages: int
    embedded: int
    """Passages that were new to the index."""
    embedder: str


@dataclass(frozen=True)
class Kept:
    """What an index holds: passages by file, and the vector of each passage."""

    folder: str
    embedder: Embedder
    least: int
    most: int
    files: dict[str, str]
    """Name -> checksum."""
    passages: dict[str, list[Passage]]
    x: dict[str, Tensor]


def open_encoder(by: str) -> tuple[Embedder, Encoder | None]:
    """The embedder of this name: "bm25", or a run or model folder that embeds texts."""
    if by == KEYWORDS:
        return Embedder(KEYWORDS), None
    encoder = Encoder.open(by)
    if not encodes_texts(encoder.trained):
        raise Mistake(f"--by {by} holds a {encoder.trained.kind}, which does not embed texts; give an encoder, or bm25")
    found = xxhash.xxh3_128(checksum(encoder.trained.model).encode())
    found.update(digest(encoder.trained.folder / "tokenizer.json").encode())
    return Embedder(str(Path(by).resolve()), found.hexdigest(), encoder.trained.kind), encoder


def embed_passages(encoder: Encoder, texts: Sequence[str]) -> Tensor:
    """x (n, d), texts of like length side by side so that little is padding."""
    if not texts:
        return torch.empty(0, 0)
    order = sorted(range(len(texts)), key=lambda i: len(texts[i]))
    x = encoder.encode_texts([texts[i] for i in order])
    return x[torch.tensor(order).argsort()]


def update_index(
    folder: str | Path, out: str | Path, by: str = "", least: int = 0, most: int = 0, replace: bool = False
) -> Update:
    """Make an index of a folder, or bring it up to date; `by`, `least` and `most` are those it was made with unless
    given. Another embedder, or passages of other lengths, need `replace`."""
    out, root = Path(out), Path(folder)
    documents = list_documents(root)
    inside = root.resolve() if is_folder(root) else root.resolve().parent
    if out.resolve().is_relative_to(inside):
        raise Mistake(f"--out {out} lies in {show(root)}, which is indexed; give a place beside it")
    before = read_before(out, replace)
    by = by or (before.embedder.by if before else KEYWORDS)
    embedder, encoder = open_encoder(by)
    sizes = least or (before.least if before else LEAST), most or (before.most if before else max(MOST, least))
    if before is not None:
        check_same(before, embedder, sizes, out)
    old = before or Kept("", embedder, *sizes, {}, {}, {})
    files = {name: digest(path) for name, path in documents.items()}
    new = [name for name, sum_ in files.items() if old.files.get(name) != sum_]
    cut = {name: cut_file(documents[name], name, *sizes) for name in new}
    passages = {name: cut.get(name, old.passages.get(name, [])) for name in files}
    if not any(passages.values()):
        raise Mistake(f"{show(folder)}: its {len(files)} documents hold no word to index")
    x: dict[str, Tensor] = {}
    if encoder is not None:
        fresh = embed_passages(encoder, [passage.text for name in new for passage in cut[name]])
        x = {name: old.x[name] for name in files if name not in cut}
        x |= dict(zip(new, fresh.split([len(cut[name]) for name in new]), strict=True)) if len(fresh) else {}
    write_index(out, Kept(str(root.resolve()), embedder, *sizes, files, passages, x))
    return Update(
        tuple(name for name in new if name not in old.files),
        tuple(name for name in new if name in old.files),
        tuple(name for name in old.files if name not in files),
        len(files) - len(new),
        sum(map(len, passages.values())),
        sum(map(len, cut.values())),
        embedder.describe(),
    )


def read_before(out: Path, replace: bool) -> Kept | None:
    """The index that is there, unless it is to be replaced; any other folder with something in it is left alone."""
    if not out.exists():
        return None
    if not out.is_dir() or ((any(out.iterdir())) and not (out / HEADER).exists()):
        raise Mistake(f"--out {out} exists and is no index; give another name")
    return None if replace or not (out / HEADER).exists() else read_index(out)


def check_same(before: Kept, embedder: Embedder, sizes: tuple[int, int], out: Path) -> None:
    """Refuse to mix vectors of two models, or passages of two lengths."""
    if before.embedder.checksum != embedder.checksum:
        raise Mistake(
            f"{out} was made by {before.embedder.describe()}, not by {embedder.describe()}; "
            f"give --replace to index anew"
        )
    if (before.least, before.most) != sizes:
        raise Mistake(
            f"{out} has passages of {before.least} to {before.most} words, not {sizes[0]} to {sizes[1]}; "
            f"give --replace to index anew"
        )


def write_index(out: Path, kept: Kept) -> None:
    """The data first, index.json last; then what the index before had is removed."""
    out.mkdir(parents=True, exist_ok=True)
    lines = [json.dumps(asdict(p), ensure_ascii=False) for name in kept.files for p in kept.passages[name]]
    page = "\n".join(lines) + "\n"
    identity = xxhash.xxh3_64(f"{kept.embedder.checksum} {page}".encode()).hexdigest()
    data = [f"passages-{identity}.jsonl"]
    write_text(out / data[0], page)
    if kept.x:
        data.append(f"vectors-{identity}.safetensors")
        write_tensors(out / data[1], {"x": torch.cat([kept.x[name] for name in kept.files if len(kept.x[name])])})
        sync(out / data[1])
    header = {
        "format": FORMAT, "folder": kept.folder, "embedder": asdict(kept.embedder), "least": kept.least,
        "most": kept.most, "files": kept.files, "data": {name: digest(out / name) for name in data},
    }  # fmt: skip
    write_json(out / HEADER, header)
    for path in out.iterdir():
        if path.name.startswith(("passages-", "vectors-")) and path.name not in data:
            path.unlink()


def read_index(path: Path) -> Kept:
    """All that an index holds; a damaged file is named."""
    where = path / HEADER
    if not where.exists():
        raise Mistake(f"{path} is no index (it has no {HEADER}); make one: descend index FOLDER --out {path}")
    header = read_json(where)
    if field(header, "format", int, where) != FORMAT:
        raise Mistake(f"{where}: an index of format {header['format']}, not {FORMAT}; make it again: descend index")
    for name, expected in entries(header, "data", str, where).items():
        if "/" in name or not (path / name).is_file() or digest(path / name) != expected:
            raise Mistake(
                f"{path / name} is damaged or missing; make the index again: "
                f"descend index {field(header, 'folder', str, where)} --out {path} --replace"
            )
    files = entries(header, "files", str, where)
    passages: dict[str, list[Passage]] = {name: [] for name in files}
    names = entries(header, "data", str, where)
    for line, record in read_objects(path / next(name for name in names if name.startswith("passages-"))):
        at = f"{path}, passage {line}"
        one = Passage(*(field(record, key, kind, at) for key, kind in PASSAGE.items()))
        passages[one.file].append(one)
    inner = field(header, "embedder", dict, where)
    embedder = Embedder(*(field(inner, name, str, where) for name in ("by", "checksum", "model")))
    folder, least, most = (
        field(header, "folder", str, where), field(header, "least", int, where), field(header, "most", int, where),
    )  # fmt: skip
    return Kept(folder, embedder, least, most, files, passages, read_vectors(path, list(names), passages))


PASSAGE: dict[str, Any] = {"text": str, "file": str, "line": int, "last": int}


def read_vectors(path: Path, names: list[str], passages: dict[str, list[Passage]]) -> dict[str, Tensor]:
    """The vectors of each file's passages."""
    found = [name for name in names if name.startswith("vectors-")]
    if not found:
        return {}
    read_header(path / found[0])
    x, counts = load_file(path / found[0]).get("x"), [len(some) for some in passages.values()]
    if x is None or x.dim() != 2 or len(x) != sum(counts):
        raise Mistake(f"{path / found[0]} does not hold a vector for each of {sum(counts)} passages; index anew")
    return dict(zip(passages, x.split(counts), strict=True))


@dataclass(frozen=True)
class PassageIndex:
    """An index that answers."""

    passages: list[Passage]
    embedder: Embedder
    folder: str
    files: dict[str, str]
    keyword: BM25 | None = None
    encoder: Encoder | None = None
    vectors: Searches | None = None

    @classmethod
    def open(
        cls, path: str | Path, embedder: str = "", search: Callable[[Tensor], Searches] = CosineSearch
    ) -> PassageIndex:
        """From its folder; `embedder` says where the encoder is now, if it was moved. Vectors are found by `search`:
        exact, or one of `classic.approximate`, which is worth its building where many questions are asked."""
        kept = read_index(Path(path))
        passages = [passage for some in kept.passages.values() for passage in some]
        rest = kept.embedder, kept.folder, kept.files
        if not kept.embedder.checksum:
            return cls(passages, *rest, keyword=BM25().fit([passage.text for passage in passages]))
        by = embedder or kept.embedder.by
        if not Path(by).exists():
            raise Mistake(f"{path} was made by {kept.embedder.describe()}, which is not there; give --embedder FOLDER")
        now, encoder = open_encoder(by)
        if now.checksum != kept.embedder.checksum:
            raise Mistake(
                f"{path} was made by {kept.embedder.describe()}, not by {now.describe()}; "
                f"give --embedder FOLDER of the right one, or index anew with --replace"
            )
        return cls(passages, *rest, encoder=encoder, vectors=search(torch.cat(list(kept.x.values()))))

    def search(self, question: str, k: int) -> list[Found]:
        """The k passages that fit best, best first; of equals the one that comes first in the documents."""
        if not question.strip():
            raise Mistake("the question is empty")
        if k < 1:
            raise Mistake(f"--top {k}: ask for at least one passage")
        k = min(k, len(self.passages))
        if self.keyword is not None:
            scores, numbers = self.keyword.search([question], k)
        else:
            assert self.encoder is not None
            assert self.vectors is not None
            scores, numbers = self.vectors.search(self.encoder.encode_texts([question]), k)
        return [Found(self.passages[i], s) for s, i in zip(scores[0].tolist(), numbers[0].tolist(), strict=True)]

    def find_changes(self) -> list[str]:
        """Files of the folder that are not as the index has them: new, changed or gone."""
        try:
            now = {name: digest(path) for name, path in list_documents(self.folder).items()}
        except Mistake:
            return []
        return sorted(name for name in now.keys() | self.files.keys() if now.get(name) != self.files.get(name))
