"""Text to numbers and back, on the `tokenizers` package: one interface for the kinds of `text/training.py`.

A tokenizer is a folder's `tokenizer.json`, with the roles of its special tokens in `tokenizer_config.json` and, where
there is one, the template of a conversation in `chat_template.jinja`: the files that transformers reads and writes.
What is not understood here is kept and written back.

Special tokens in a text are plain characters for `encode`, so that any text survives the round trip and no text can
forge them; `encode_special` recognises them.

Systems: byte-level-bpe
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Self

import tokenizers

from descend.errors import Mistake, nearest
from descend.files import read_json, read_text
from descend.text.training import BYTES, END, LEARNERS, MOST_TOKENS, UNKNOWN, cut_runs, lower_case_words

__all__ = ["BYTES", "END", "ROLES", "Tokenizer"]

ROLES = ("bos_token", "eos_token", "unk_token", "sep_token", "pad_token", "cls_token", "mask_token")
CLASS = {"tokenizer_class": "PreTrainedTokenizerFast", "clean_up_tokenization_spaces": False}


class Tokenizer:
    """encode(text) -> numbers, decode(numbers) -> the text; `end` marks the end of a document."""

    def __init__(self, inner: tokenizers.Tokenizer, settings: Mapping[str, Any] | None = None, chat_template: str = ""):
        self.inner = inner
        self.inner.encode_special_tokens = True
        self.settings = dict(settings or {})
        self.chat_template = chat_template
        end = self.special("eos_token")
        self.end: int | None = inner.token_to_id(END) if end is None else end

    # Learning

    @classmethod
    def learn(cls, texts: str | Iterable[str], kind: str = "bpe", vocab: int = 512) -> Self:
        """A tokenizer of a kind (`training.LEARNERS`), learned from a text or several, with at most `vocab` tokens."""
        if kind not in LEARNERS:
            raise Mistake(f"--data.tokenizer {kind}: choose {', '.join(LEARNERS)}.{nearest(kind, LEARNERS)}")
        if not 0 <= vocab <= MOST_TOKENS:
            raise Mistake(f"--data.vocab {vocab}: a vocabulary has at most {MOST_TOKENS:,} tokens")
        texts = [texts] if isinstance(texts, str) else texts
        try:
            inner = LEARNERS[kind](cut_runs(texts), vocab)
        except UnicodeEncodeError as error:
            raise Mistake(not_unicode(error.object)) from None
        settings = {"eos_token": END}
        if inner.token_to_id(UNKNOWN) is not None:
            settings["unk_token"] = UNKNOWN
        return cls(inner, settings)

    @classmethod
    def bpe(cls, text: str, vocab: int) -> Self:
        """Byte-level BPE learned from a text, with at most `vocab` tokens."""
        return cls.learn(text, "bpe", vocab)

    @classmethod
    def characters(cls, text: str) -> Self:
        """One token for each character of a text, and the 256 bytes for all others."""
        return cls.learn(text, "characters")

    @classmethod
    def of_words(cls, known: Sequence[str]) -> Self:
        """One token for each of these lower-case words, in their order, and `<unk>` after them."""
        return cls(lower_case_words(known), {"unk_token": UNKNOWN})

    # Files

    @classmethod
    def load(cls, folder: str | Path) -> Self:
        """The tokenizer of a model folder, written by descend or by transformers."""
        folder = Path(folder)
        path = folder / "tokenizer.json"
        if not path.exists():
            raise Mistake(f"{path} does not exist; text needs the tokenizer that the model was trained with")
        text = read_text(path)
        try:
            inner = tokenizers.Tokenizer.from_str(text)
        except Exception as error:  # the package raises plain Exception
            raise Mistake(f"{path} is not a tokenizer file: {error}") from None
        settings = read_settings(folder / "tokenizer_config.json")
        template, beside = settings.pop("chat_template", ""), folder / "chat_template.jinja"
        return cls(inner, settings, read_text(beside) if beside.exists() else choose_template(template, folder))

    def save(self, folder: str | Path) -> None:
        """Write tokenizer.json and what belongs to it into a model folder."""
        folder = Path(folder)
        self.inner.save(str(folder / "tokenizer.json"))
        settings = json.dumps(CLASS | self.settings, indent=2, ensure_ascii=False)
        (folder / "tokenizer_config.json").write_text(settings + "\n", encoding="utf-8")
        if self.chat_template:
            (folder / "chat_template.jinja").write_text(self.chat_template, encoding="utf-8")

    # Special tokens

    def special(self, role: str) -> int | None:
        """The number of the token with this role ("pad_token"), or None."""
        named = self.settings.get(role)
        content = named.get("content") if isinstance(named, dict) else named
        return None if content is None else self.inner.token_to_id(str(content))

    def with_specials(self, roles: Mapping[str, str]) -> Self:
        """The same tokenizer with tokens for these roles, {"pad_token": "<pad>"}; new ones come after the others."""
        for role in roles:
            if role not in ROLES:
                raise Mistake(
                    f"no special token has the role {role!r}.{nearest(role, ROLES)} Roles: {', '.join(ROLES)}"
                )
        inner = tokenizers.Tokenizer.from_str(self.inner.to_str())
        inner.add_special_tokens(list(dict.fromkeys(roles.values())))
        return type(self)(inner, {**self.settings, **roles}, self.chat_template)

    def with_tokens(self, tokens: Sequence[str], chat_template: str) -> Self:
        """The same tokenizer with more special tokens, which come after the others, and a template that uses them."""
        inner = tokenizers.Tokenizer.from_str(self.inner.to_str())
        inner.add_special_tokens(list(tokens))
        return type(self)(inner, self.settings, chat_template)

    @property
    def special_tokens(self) -> tuple[str, ...]:
        """All of them, by their numbers."""
        added = self.inner.get_added_tokens_decoder()
        return tuple(token.content for _, token in sorted(added.items()) if token.special)

    # Use

    @property
    def vocab(self) -> int:
        return int(self.inner.get_vocab_size())

    def encode(self, text: str) -> list[int]:
        """Special tokens in the text are taken as plain characters."""
        try:
            return self.inner.encode(text, add_special_tokens=False).ids
        except TypeError:
            raise Mistake(not_unicode(text)) from None

    def encode_many(self, texts: Sequence[str]) -> list[list[int]]:
        """The same for each text, in parallel."""
        try:
            return [found.ids for found in self.inner.encode_batch_fast(texts, add_special_tokens=False)]
        except TypeError:
            record = next((i for i, text in enumerate(texts) if not_unicode(text)), 0)
            raise Mistake(f"text {record}: {not_unicode(texts[record])}") from None

    def encode_special(self, text: str) -> list[int]:
        """Special tokens in the text are recognised: for text that a template made, never for a user's own."""
        self.inner.encode_special_tokens = False
        try:
            return self.encode(text)
        finally:
            self.inner.encode_special_tokens = True

    def encode_places(self, text: str, special: bool) -> tuple[list[int], list[tuple[int, int]]]:
        """Tokens, and the characters of each: the first, and the one after the last. `special`: as `encode_special`."""
        self.inner.encode_special_tokens = not special
        try:
            found = self.inner.encode(text, add_special_tokens=False)
        except TypeError:
            raise Mistake(not_unicode(text)) from None
        finally:
            self.inner.encode_special_tokens = True
        return found.ids, found.offsets

    def decode(self, ids: Sequence[int]) -> str:
        """The text, special tokens included."""
        return self._text(ids, skip=False)

    def decode_plain(self, ids: Sequence[int]) -> str:
        """The text without special tokens."""
        return self._text(ids, skip=True)

    def _text(self, ids: Sequence[int], skip: bool) -> str:
        """The package leaves unknown numbers out in silence; here the first one is named."""
        ids = ids if isinstance(ids, list) else list(ids)
        try:
            if max(ids, default=0) < self.vocab or all(self.inner.id_to_token(i) is not None for i in ids):
                return self.inner.decode(ids, skip_special_tokens=skip)
        except OverflowError:  # a negative number
            pass
        strange = next(i for i in ids if not 0 <= i < 2**32 or self.inner.id_to_token(i) is None)
        raise Mistake(
            f"token {strange} is unknown: this tokenizer has the tokens 0..{self.vocab - 1}; "
            f"load the tokenizer.json that was saved with the model"
        )

    def check_fits(self, rows: int) -> None:
        """Refuse a model whose embedding has fewer rows than there are tokens."""
        if self.vocab > rows:
            raise Mistake(
                f"the tokenizer has {self.vocab} tokens, but the model's embedding has {rows} rows: they do not belong "
                f"together; load the tokenizer.json that was saved with the model, or train the model with this one"
            )


def read_settings(path: Path) -> dict[str, Any]:
    """tokenizer_config.json, or nothing where there is none."""
    if not path.exists():
        return {}
    try:
        return read_json(path)
    except Mistake as mistake:
        raise Mistake(f"{mistake}; correct it, or delete it") from None


def choose_template(found: object, folder: Path) -> str:
    """The chat template of tokenizer_config.json: a text, or a list of named ones, of which the default counts."""
    if isinstance(found, list):
        named = {str(entry.get("name")): entry.get("template") for entry in found if isinstance(entry, dict)}
        found = named.get("default", "")
    if found is not None and not isinstance(found, str):
        raise Mistake(f'{folder / "tokenizer_config.json"}: "chat_template" must be a text; correct it, or delete it')
    return found or ""


def not_unicode(text: object) -> str:
    """What keeps a text from being UTF-8; empty if nothing does."""
    if not isinstance(text, str):
        return f"a text must be a str, not {type(text).__name__}; decode bytes first (bytes.decode)"
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as error:
        return (
            f"character {error.start} is a lone surrogate (U+{ord(text[error.start]):04X}), not valid UTF-8; "
            f"read the file with errors='replace', or convert it first"
        )
    return ""
