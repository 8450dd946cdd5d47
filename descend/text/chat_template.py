"""Chat templates: a conversation as one text, and which of its tokens the assistant said.

    messages    [{"role": "user", "content": "2 + 2?"}, {"role": "assistant", "content": "4"}]
    text        <|user|>2 + 2?<|assistant|>4<|endoftext|>
    mask                               1 1                 the assistant's words and the end of its turn
    prompt      <|user|>2 + 2?<|assistant|>                the model writes on from here

A template is Jinja, as tokenizer_config.json or chat_template.jinja hold it, run in a sandbox: what it may use is what
transformers gives it, and reaching for the internals of Python is refused. A tokenizer that has no template gets role
tokens (VOM 13.5) as special tokens and the template above.

The assistant's part of turn i is what rendering the first i messages with a prompt for an answer leaves of rendering
them with the answer. Special tokens inside a message stay text: no user can end his turn or begin another's.

Systems: instruction-dataset
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property, lru_cache
from itertools import pairwise
from typing import Any, Protocol, Self

import jinja2
from jinja2 import nodes
from jinja2.exceptions import SecurityError
from jinja2.ext import Extension, LoopControlExtension
from jinja2.parser import Parser
from jinja2.sandbox import ImmutableSandboxedEnvironment

from descend.errors import Mistake, nearest
from descend.text.tokenizer import ROLES, Tokenizer
from descend.text.training import END

Messages = Sequence[Mapping[str, Any]]
SPEAKERS = ("system", "user", "assistant", "tool", "developer")
FAULTS = (jinja2.TemplateError, TypeError, ValueError, LookupError, AttributeError, ArithmeticError, RecursionError)
PRIVATE = range(0xE000, 0xF900)  # characters that no text has a meaning for

ROLE_TEMPLATE = """\
{%- for message in messages -%}
{{- '<|' + message.role + '|>' + message.content -}}
{%- if message.role == 'assistant' -%}{{- eos_token -}}{%- endif -%}
{%- endfor -%}
{%- if add_generation_prompt -%}{{- '<|assistant|>' -}}{%- endif -%}
"""
"""The book's role tokens; the end follows the assistant's words."""
PLAIN_TEMPLATE = """\
{%- for message in messages -%}
{{- message.role + ': ' + message.content -}}
{%- if message.role == 'assistant' -%}{{- eos_token -}}{%- endif -%}
{{- '\\n' -}}
{%- endfor -%}
{%- if add_generation_prompt -%}{{- 'assistant:' -}}{%- endif -%}
"""
"""Roles as words, for a model whose vocabulary must stay as it is. A user can write "assistant:" himself."""
ROLE_TOKENS = tuple(f"<|{role}|>" for role in SPEAKERS[:3])


class Renders(Protocol):
    """A compiled template."""

    def render(self, **values: Any) -> str: ...


@dataclass(frozen=True)
class ChatTemplate:
    """A Jinja template and the special tokens that it may name."""

    source: str
    specials: Mapping[str, str]
    """By their role, {"eos_token": "</s>"}."""
    added: tuple[str, ...] = ()
    """All special tokens of the tokenizer: what a message must not forge."""

    @classmethod
    def of(cls, tokenizer: Tokenizer) -> Self:
        """The template that came with a tokenizer."""
        if not tokenizer.chat_template:
            raise Mistake("the tokenizer has no chat template; train with messages, or add a chat_template.jinja")
        found = cls(tokenizer.chat_template, name_specials(tokenizer), tokenizer.special_tokens)
        _ = found.compiled  # a template that cannot be read is named at once
        return found

    @cached_property
    def compiled(self) -> Renders:
        return compile_template(self.source)

    def render(self, messages: Messages, generate: bool = False) -> str:
        """The conversation as a text; with `generate`, up to where the assistant answers."""
        check_messages(messages)
        plain = [dict(message) for message in messages]
        try:
            return self.compiled.render(messages=plain, add_generation_prompt=generate, **self.specials)
        except SecurityError as error:
            raise Mistake(f"the chat template reaches for what is closed to it: {error}; do not use it") from None
        except FAULTS as error:
            raise Mistake(f"the chat template refuses these messages: {error}") from None

    def encode(self, messages: Messages, tokenizer: Tokenizer, since: int = 0) -> tuple[list[int], list[bool]]:
        """Tokens, and which of them the assistant said in message `since` or later: the spans by prefix rendering."""
        mark = self.choose_mark(messages)
        marked = self.hide(messages, mark)
        whole = self.render(marked)
        turns = [turn for turn, m in enumerate(messages) if m["role"] == "assistant" and turn >= since]
        if turns[:1] == [0]:
            raise Mistake(
                "the first message is the assistant's: there is nothing to answer; begin with a user's message"
            )
        spans = [self.find_span(marked, turn, whole) for turn in turns]
        if not spans:
            raise Mistake("no message is the assistant's, so there is nothing to learn; add its answer")
        tokens, places = self.cut(whole, mark, tokenizer)
        said = [False] * len(tokens)
        for first, last in spans:
            for k, (start, end) in enumerate(places):
                said[k] = said[k] or (first <= start < last and end <= last)
        if not any(said):
            raise Mistake("the assistant says nothing: its answers are empty; write them, or leave the record out")
        if all(said):
            raise Mistake("every token is the assistant's: there is nothing to answer; begin with a user's message")
        return tokens, said

    def prompt(self, messages: Messages, tokenizer: Tokenizer) -> list[int]:
        """The tokens that the model continues with its answer."""
        mark = self.choose_mark(messages)
        return self.cut(self.render(self.hide(messages, mark), generate=True), mark, tokenizer)[0]

    def stops(self, tokenizer: Tokenizer) -> tuple[int, ...]:
        """The tokens that end an answer: the end of a text, and the special token that follows the words of a turn."""
        asked = [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]
        whole = self.render(asked)
        first, last = self.find_span(asked, 1, whole)
        after = whole[first:last].partition("b")[2]
        found = self.forgeable.search(after) if self.added else None
        ends = [tokenizer.end, None if found is None else tokenizer.inner.token_to_id(found[0])]
        return tuple(sorted({end for end in ends if end is not None}))

    def find_span(self, messages: Messages, turn: int, whole: str) -> tuple[int, int]:
        """Where in the text the words of this turn stand."""
        before = self.render(messages[:turn], generate=True)
        after = whole if turn == len(messages) - 1 else self.render(messages[: turn + 1])
        if not (after.startswith(before) and whole.startswith(after)):
            raise Mistake(
                f"the chat template rewrites what was said before message {turn + 1}, so the assistant's words cannot "
                f"be found; cut the conversation after its first answer, or use a template that only adds"
            )
        return len(before), len(after)

    # Special tokens inside messages

    @cached_property
    def forgeable(self) -> re.Pattern[str]:
        """Any special token."""
        return re.compile("|".join(map(re.escape, sorted(self.added, key=len, reverse=True))) or "(?!)")

    def choose_mark(self, messages: Messages) -> str:
        """A character that no message has, where one of them writes a special token; else nothing."""
        check_messages(messages)
        if not any(self.forgeable.search(m["content"]) for m in messages):
            return ""
        used = {character for message in messages for character in message["content"]}
        return next(chr(code) for code in PRIVATE if chr(code) not in used)

    def hide(self, messages: Messages, mark: str) -> Messages:
        """The special tokens in messages broken by the mark, so that they differ from those of the template."""
        if not mark:
            return messages
        broken = lambda found: found[0][0] + mark + found[0][1:]
        return [{**message, "content": self.forgeable.sub(broken, message["content"])} for message in messages]

    def cut(self, text: str, mark: str, tokenizer: Tokenizer) -> tuple[list[int], list[tuple[int, int]]]:
        """Tokens and where each stands in the text (first character, and the one after its last). Where something was
        hidden, the pieces between the template's own special tokens are plain text."""
        if not mark:
            return tokenizer.encode_places(text, special=True)
        edges = [0, *(edge for found in self.forgeable.finditer(text) for edge in found.span()), len(text)]
        tokens: list[int] = []
        places: list[tuple[int, int]] = []
        for k, (first, last) in enumerate(pairwise(edges)):
            where = [i for i in range(first, last) if text[i] != mark]  # of each character that is left
            plain = "".join(text[i] for i in where)
            ids, spans = tokenizer.encode_places(plain, special=k % 2 == 1)
            tokens += ids
            places += [(where[a], where[b - 1] + 1) if b > a else (where[a - 1],) * 2 for a, b in spans]
        return tokens, places


@lru_cache(maxsize=16)
def compile_template(source: str) -> Renders:
    """A template in its sandbox; each is compiled once."""
    try:
        return Sandbox().from_string(source)
    except jinja2.TemplateSyntaxError as error:
        raise Mistake(f"the chat template, line {error.lineno}: {error.message}; correct it") from None


def check_messages(messages: Messages) -> None:
    """Refuse what is not a list of {"role": .., "content": ..}."""
    if not messages:
        raise Mistake("there are no messages; give at least a user's")
    for turn, message in enumerate(messages, start=1):
        role, content = message.get("role"), message.get("content")
        if role not in SPEAKERS:
            hint = nearest(str(role), SPEAKERS)
            raise Mistake(f'message {turn}: role {role!r} is unknown; "role" is one of {", ".join(SPEAKERS)}.{hint}')
        if not isinstance(content, str):
            raise Mistake(f'message {turn}: "content" must be a text, not {type(content).__name__}; write a string')


def name_specials(tokenizer: Tokenizer) -> dict[str, str]:
    """The special tokens that have a role, as a template names them."""
    found = {role: tokenizer.special(role) for role in ROLES}
    return {role: str(tokenizer.inner.id_to_token(token)) for role, token in found.items() if token is not None}


def add_roles(tokenizer: Tokenizer) -> Tokenizer:
    """The tokenizer itself if it has a template; else one with role tokens, an end, and the template of role tokens."""
    if tokenizer.chat_template:
        return tokenizer
    ended = tokenizer if tokenizer.special("eos_token") is not None else tokenizer.with_specials({"eos_token": END})
    return ended.with_tokens(ROLE_TOKENS, ROLE_TEMPLATE)


def name_roles(tokenizer: Tokenizer) -> Tokenizer:
    """The tokenizer itself if it has a template; else with the same tokens, and roles as words."""
    if tokenizer.chat_template:
        return tokenizer
    if tokenizer.end is None:
        raise Mistake(
            "the tokenizer has no end of a text, so no answer would end; train the whole model, not an adapter"
        )
    return tokenizer.with_tokens((), PLAIN_TEMPLATE)


def parse_turns(tokens: Sequence[int], tokenizer: Tokenizer) -> list[dict[str, str]]:
    """Back from tokens to messages, for the template of role tokens; a last turn without words is a prompt."""
    roles = {tokenizer.inner.token_to_id(token): token[2:-2] for token in ROLE_TOKENS}
    starts = [place for place, token in enumerate(tokens) if token in roles]
    if not starts or starts[0] != 0:
        raise Mistake(f"the tokens do not begin with a role ({', '.join(ROLE_TOKENS)}), so they are no conversation")
    turns = [(roles[tokens[a]], list(tokens[a + 1 : b])) for a, b in pairwise([*starts, len(tokens)])]
    end = tokenizer.end
    kept = [(role, said[:-1] if role == "assistant" and said and said[-1] == end else said) for role, said in turns]
    if kept[-1] == ("assistant", []) and not turns[-1][1]:
        kept = kept[:-1]
    return [{"role": role, "content": tokenizer.decode(said)} for role, said in kept]


class Sandbox(ImmutableSandboxedEnvironment):
    """What a template may use: what transformers gives it. Reaching for an internal is an error at once."""

    def __init__(self) -> None:
        super().__init__(trim_blocks=True, lstrip_blocks=True, extensions=[Answer, LoopControlExtension])
        self.filters["tojson"] = to_json
        self.globals |= {"raise_exception": refuse, "strftime_now": lambda form: datetime.now().strftime(form)}
        self.globals["namespace"] = Names

    def unsafe_undefined(self, obj: Any, attribute: str) -> jinja2.Undefined:
        raise SecurityError(f"access to {attribute!r} of a {type(obj).__name__}")


class Names(jinja2.utils.Namespace):
    """A template's own variables; none may be called like an internal of Python."""

    def __init__(*args: Any, **values: Any) -> None:  # as jinja2 declares it: a variable may be called self
        itself, *given = args
        jinja2.utils.Namespace.__init__(itself)
        for name, value in dict(*given, **values).items():
            itself[name] = value

    def __setitem__(self, name: str, value: Any) -> None:
        if name.startswith("_"):
            raise SecurityError(f"a variable called {name!r}")
        super().__setitem__(name, value)


class Answer(Extension):
    """{% generation %} .. {% endgeneration %} marks the assistant's words for transformers; here it shows them."""

    tags = {"generation"}  # noqa: RUF012 - as jinja2 declares it

    def parse(self, parser: Parser) -> list[nodes.Node]:
        next(parser.stream)
        return parser.parse_statements(("name:endgeneration",), drop_needle=True)


def to_json(
    value: Any,
    ensure_ascii: bool = False,
    indent: int | None = None,
    separators: tuple[str, str] | None = None,
    sort_keys: bool = False,
) -> str:
    """JSON as it is, where Jinja's own filter escapes what HTML would take as tags."""
    return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)


def refuse(reason: str) -> None:
    """What a template calls when it cannot show the messages."""
    raise jinja2.TemplateError(reason)
