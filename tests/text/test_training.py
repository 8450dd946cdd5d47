"""Every kind of tokenizer: what it promises about any text, its vocabulary, and its files both ways."""

from __future__ import annotations

import json
import re
import time
from pathlib import Path

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from descend.errors import Mistake
from descend.text import training
from descend.text.special import batch
from descend.text.tokenizer import END, Tokenizer
from descend.text.training import LEARNERS, space_for

TEXT = "the cat sat on the mat. cooks cooked cooking; Ünïcode café, 42 dogs!\n\tdef f(x): return x < 0x41\n" * 5
KINDS = list(LEARNERS)
LOSSLESS = ["bpe", "characters", "plain-bpe", "unigram"]
VOCAB = 340
LEARNED = {kind: Tokenizer.learn(TEXT, kind, VOCAB if kind in LOSSLESS else 90) for kind in KINDS}
ANY_TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)
SLUG = "wordpiece-sentencepiece"


@pytest.mark.system("wordpiece-sentencepiece", "raw-text")
@pytest.mark.system(SLUG)
@pytest.mark.system("bpe")
@pytest.mark.system("bpe", "round-trip")
@pytest.mark.parametrize("kind", LOSSLESS)
@given(text=ANY_TEXT)
@settings(deadline=None, max_examples=60, derandomize=True)
def test_any_unicode_survives_where_promised(kind: str, text: str) -> None:
    assert LEARNED[kind].decode(LEARNED[kind].encode(text)) == text


@pytest.mark.system("wordpiece-sentencepiece", "raw-text")
@pytest.mark.system(SLUG)
@pytest.mark.parametrize("kind", LOSSLESS)
@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        "\r\n \t",
        "👩‍👩‍👧 e\u0301",
        END,
        "<0x41>",
        "☃<0x41> <0xE2><0x98><0x83>",
        "a▁b ▁",
        "\x00\x7f",
        "日本語 text",
    ],
)
def test_hard_texts_survive(kind: str, text: str) -> None:
    assert LEARNED[kind].decode(LEARNED[kind].encode(text)) == text


@pytest.mark.system("wordpiece-sentencepiece", "space")
@pytest.mark.system("bpe", "white-space")
@pytest.mark.system(SLUG)
@pytest.mark.parametrize("kind", ["plain-bpe", "unigram"])
def test_white_space_only_begins_a_token(kind: str) -> None:
    tokens = [token for token in LEARNED[kind].inner.get_vocab() if not token.startswith("<")]
    assert any(token.startswith(" ") and len(token) > 2 for token in tokens)
    assert not any(character.isspace() for token in tokens for character in token[1:])


@pytest.mark.system("word-char-ngram-tokenizers")
@pytest.mark.system("word-char-ngram-tokenizers", "words")
def test_words_and_pieces_know_what_they_do_not_know() -> None:
    words, pieces = LEARNED["words"], LEARNED["wordpiece"]
    unknown = words.special("unk_token")
    assert words.encode("the zebra") == [words.inner.token_to_id("the"), unknown]
    assert words.decode(words.encode("the cat")) == "the cat"
    assert pieces.inner.encode("cooked").tokens[0].startswith("c")
    assert pieces.encode("☃") == [pieces.special("unk_token")]
    assert pieces.decode(pieces.encode("the cooked cat")) == "the cooked cat"


@pytest.mark.parametrize("kind", KINDS)
def test_vocabulary_is_at_most_what_was_asked_for_and_learning_repeats(kind: str) -> None:
    tokenizer = LEARNED[kind]
    assert tokenizer.vocab <= (VOCAB if kind in LOSSLESS else 90)
    assert (
        Tokenizer.learn(TEXT, kind, VOCAB if kind in LOSSLESS else 90).inner.get_vocab() == tokenizer.inner.get_vocab()
    )
    assert tokenizer.end == tokenizer.inner.token_to_id(END)
    assert tokenizer.encode_many([TEXT, "cat"]) == [tokenizer.encode(TEXT), tokenizer.encode("cat")]


@pytest.mark.parametrize("kind", KINDS)
def test_transformers_opens_the_folder_and_the_folder_of_transformers_opens_here(kind: str, tmp_path: Path) -> None:
    transformers = pytest.importorskip("transformers")
    ours = LEARNED[kind].with_specials({"pad_token": "<pad>", "cls_token": "<cls>", "sep_token": "<sep>"})
    ours.chat_template = "{% for m in messages %}{{ m['content'] }}<sep>{% endfor %}"
    ours.save(tmp_path)
    theirs = transformers.PreTrainedTokenizerFast.from_pretrained(tmp_path)
    text = "the cooked café sat on 猫."
    assert theirs(text, add_special_tokens=False)["input_ids"] == ours.encode(text)
    assert theirs.pad_token_id == ours.special("pad_token")
    assert theirs.eos_token == END
    assert theirs.chat_template == ours.chat_template
    said = theirs.apply_chat_template([{"role": "user", "content": "the cat"}], tokenize=False)
    assert theirs(said, add_special_tokens=False)["input_ids"] == ours.encode_special(said)
    ids, mask = batch(ours, [text, "cat"])
    padded = theirs([theirs.decode(row[:n]) for row, n in zip(ids, mask.sum(1), strict=True)], padding=True)
    assert mask.long().tolist() == padded["attention_mask"] or kind in ("words", "wordpiece")
    theirs.save_pretrained(tmp_path / "again")
    again = Tokenizer.load(tmp_path / "again")
    assert again.encode(text) == ours.encode(text)
    assert again.chat_template == ours.chat_template
    assert [again.special(f"{r}_token") for r in ("pad", "cls", "eos")] == [
        ours.special(f"{r}_token") for r in ("pad", "cls", "eos")
    ]


def test_settings_that_are_not_understood_are_kept(tmp_path: Path) -> None:
    LEARNED["bpe"].save(tmp_path)
    path = tmp_path / "tokenizer_config.json"
    values = json.loads(path.read_text()) | {"model_max_length": 77, "eos_token": {"content": END, "lstrip": False}}
    path.write_text(json.dumps(values | {"chat_template": "hi"}))
    loaded = Tokenizer.load(tmp_path)
    assert loaded.end == LEARNED["bpe"].end
    assert loaded.chat_template == "hi"
    (tmp_path / "b").mkdir()
    loaded.save(tmp_path / "b")
    assert json.loads((tmp_path / "b" / "tokenizer_config.json").read_text()) == values


@pytest.mark.system("bpe", "special")
def test_special_tokens_in_a_text_are_plain_unless_asked_for() -> None:
    tokenizer = LEARNED["bpe"]
    assert tokenizer.end not in tokenizer.encode(f"cat{END}")
    assert tokenizer.encode_special(f"cat{END}")[-1] == tokenizer.end
    assert tokenizer.end not in tokenizer.encode(END)  # the switch is back
    assert tokenizer.decode_plain([*tokenizer.encode("cat"), int(tokenizer.end or 0)]) == "cat"


@pytest.mark.parametrize("kind", ["plain-bpe", "unigram", "words", "wordpiece"])
def test_empty_text_teaches_nothing(kind: str) -> None:
    with pytest.raises(Mistake, match="text is empty"):
        Tokenizer.learn("", kind, 400)


def test_mistakes_name_the_fix(tmp_path: Path) -> None:
    tokenizer = LEARNED["bpe"]
    with pytest.raises(Mistake, match=rf"token 9999 is unknown.*0\.\.{tokenizer.vocab - 1}; .*saved with the model"):
        tokenizer.decode([1, 9999])
    with pytest.raises(Mistake, match="token -1 is unknown"):
        tokenizer.decode([-1])
    for call in (tokenizer.encode, lambda text: tokenizer.encode_many([text])):
        with pytest.raises(Mistake, match=r"character 1 is a lone surrogate \(U\+D800\)"):
            call("a\ud800b")
    with pytest.raises(Mistake, match="lone surrogate"):
        Tokenizer.learn("a\ud800b", "bpe", 300)
    with pytest.raises(Mistake, match="must be a str, not bytes"):
        tokenizer.encode(b"cat")  # type: ignore[arg-type]
    with pytest.raises(Mistake, match=f"{tokenizer.vocab} tokens, but the model's embedding has 256 rows"):
        tokenizer.check_fits(256)
    with pytest.raises(Mistake, match="Did you mean 'unigram'"):
        Tokenizer.learn(TEXT, "unigran")
    with pytest.raises(Mistake, match="Did you mean 'pad_token'"):
        tokenizer.with_specials({"pad": "<pad>"})
    for kind in ("plain-bpe", "unigram"):
        with pytest.raises(Mistake, match=r"--data\.vocab 200"):
            Tokenizer.learn(TEXT, kind, 200)
    with pytest.raises(Mistake, match=r"--data\.vocab 260: the text has \d+ characters; use"):
        Tokenizer.learn(TEXT, "plain-bpe", 260)
    tokenizer.save(tmp_path)
    (tmp_path / "tokenizer_config.json").write_text("[1]")
    with pytest.raises(Mistake, match="holds a list"):
        Tokenizer.load(tmp_path)


def test_the_smallest_vocabulary_beside_the_bytes_and_the_end() -> None:
    assert space_for(259, "it") == 2
    assert space_for(300, "it") == 43
    with pytest.raises(Mistake, match=r"--data\.vocab 258: it reserves 257 tokens"):
        space_for(258, "it")


def test_runs_without_a_space_are_cut_where_they_are_too_long() -> None:
    text = "plain words and " + "ab" * 2500 + " more" + " " * 3000 + "end"
    parts = list(training.cut_runs([text]))
    assert "".join(parts) == text
    assert max(len(run) for part in parts for run in re.findall(r"\S+|\s+", part)) == training.LONGEST
    for usual in (TEXT, "", "x" * training.LONGEST + " y"):
        assert list(training.cut_runs([usual])) == [usual]


@pytest.mark.parametrize("kind", ["bpe", "plain-bpe", "wordpiece"])
def test_a_text_without_spaces_is_learned_in_linear_time(kind: str) -> None:
    letters = torch.randint(4, (200_000,), generator=torch.Generator().manual_seed(0))
    dna = bytes(b"ACGT"[i] for i in letters.tolist()).decode()
    began = time.process_time()
    tokenizer = Tokenizer.learn(dna, kind, 300)
    assert time.process_time() - began < 10, "by the square of its length it takes minutes"
    if kind != "wordpiece":
        assert tokenizer.decode(tokenizer.encode(dna[:5000])) == dna[:5000]


@pytest.mark.parametrize("vocab", [-1, 10**12])
def test_a_vocabulary_beyond_all_bounds_is_refused(vocab: int) -> None:
    with pytest.raises(Mistake, match=f"--data.vocab {vocab}: a vocabulary has at most 10,000,000 tokens"):
        Tokenizer.learn("a text", "bpe", vocab)
