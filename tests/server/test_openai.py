"""OpenAI's own client as the client: what is served is what `descend generate` writes, whole or streamed."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import descend
from descend.inference.writer import Writer
from descend.sampling.filters import TokenSampler
from descend.text.tokenizer import Tokenizer
from tests.server.conftest import CONTEXT, Running, running

openai = pytest.importorskip("openai")
Writers = tuple[Path, Path]
TURNS = """\
{%- for message in messages -%}
{{- '<|' + message.role + '|>' + message.content + ('<|user|>' if message.role == 'assistant' else '') -}}
{%- endfor -%}
{{- '<|assistant|>' if add_generation_prompt -}}
"""


@pytest.fixture(scope="module")
def client(server: Running) -> Iterator[Any]:
    with openai.OpenAI(base_url=f"{server.address}/v1", api_key="none", max_retries=0, timeout=30) as found:
        yield found


def complete(client: Any, **asked: Any) -> Any:
    return client.completions.create(**{"model": "llama", "prompt": "the fox", "max_tokens": 12, "seed": 3, **asked})


def generate(folder: Path, prompt: str, **asked: Any) -> str:
    """What the command line writes after the prompt."""
    settings = {"tokens": 12, "temperature": 1.0, "seed": 3, **asked}
    return descend.generate(folder, prompt, **settings).removeprefix(prompt)


SETTINGS: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({}, {}),
    ({"temperature": 0}, {"temperature": 0.0}),
    ({"top_p": 0.7, "temperature": 1.3}, {"top_p": 0.7, "temperature": 1.3}),
    (
        {"extra_body": {"top_k": 5, "min_p": 0.01, "repetition_penalty": 1.5}},
        {"top_k": 5, "min_p": 0.01, "repetition": 1.5},
    ),
    ({"stop": ["o", "zz"]}, {"stop": ("o", "zz")}),
    ({"seed": 2**40}, {"seed": 2**40}),
]


@pytest.mark.parametrize("model", ["llama", "gpt"])
@pytest.mark.parametrize(("asked", "same"), SETTINGS)
def test_whole_and_streamed_are_what_generate_writes(
    client: Any, writers: Writers, model: str, asked: dict[str, Any], same: dict[str, Any]
) -> None:
    expected = generate(writers[("llama", "gpt").index(model)], "the fox", **same)
    whole = complete(client, model=model, **asked)
    assert whole.choices[0].text == expected
    assert whole.choices[0].finish_reason in ("length", "stop")
    assert whole.usage.total_tokens == whole.usage.prompt_tokens + whole.usage.completion_tokens
    chunks = list(complete(client, model=model, stream=True, stream_options={"include_usage": True}, **asked))
    assert "".join(choice.text for chunk in chunks for choice in chunk.choices) == expected
    assert [c.finish_reason for chunk in chunks for c in chunk.choices][-1] == whole.choices[0].finish_reason
    assert chunks[-1].usage == whole.usage


def test_a_stop_string_ends_the_text_before_it(client: Any) -> None:
    text = complete(client, max_tokens=40).choices[0].text
    stop = text[20:23]
    found = complete(client, max_tokens=40, stop=stop)
    assert found.choices[0].text == text[: text.index(stop)]
    assert found.choices[0].finish_reason == "stop"
    assert found.usage.completion_tokens < 40


def test_64_clients_at_once_get_what_each_gets_alone(client: Any, writers: Writers, server: Running) -> None:
    """8 rows: most of them wait, join beside others, and leave before them."""
    writer = Writer.open(writers[0])
    asked = [(f"the fox {i}", 4 + 5 * (i % 7), i) for i in range(64)]
    with ThreadPoolExecutor(64) as pool:
        jobs = [pool.submit(complete, client, prompt=p, max_tokens=n, seed=s, stream=s % 2 == 0) for p, n, s in asked]
        found = [job.result() for job in jobs]
        texts = [
            "".join(c.text for chunk in one for c in chunk.choices) if i % 2 == 0 else one.choices[0].text
            for i, one in enumerate(found)
        ]
    assert texts == ["".join(writer.write(p, n, TokenSampler(), s)) for p, n, s in asked]
    assert not server.service.served["llama"].text.batcher.texts


def test_several_prompts_and_choices(client: Any, writers: Writers) -> None:
    found = complete(client, prompt=["the fox", "a dog"], n=2).choices
    assert [choice.index for choice in found] == [0, 1, 2, 3]
    assert [choice.seed for choice in found] == [3, 4, 3, 4]
    expected = [generate(writers[0], prompt, seed=seed) for prompt in ("the fox", "a dog") for seed in (3, 4)]
    assert [choice.text for choice in found] == expected


def test_tokens_as_prompts_and_a_prompt_that_is_empty(client: Any, writers: Writers) -> None:
    ids = Writer.open(writers[0]).tokenizer.encode("the fox")
    assert complete(client, prompt=ids).choices[0].text == generate(writers[0], "the fox")
    assert complete(client, prompt=[ids]).choices[0].text == generate(writers[0], "the fox")
    assert complete(client, prompt="").choices[0].text == generate(writers[0], "")
    with pytest.raises(openai.BadRequestError, match="token 100000: llama has the tokens 0 to"):
        complete(client, prompt=[100000])


def test_without_a_seed_texts_differ_and_the_seed_is_told(client: Any) -> None:
    found = [complete(client, seed=None, max_tokens=20).choices[0] for _ in range(3)]
    assert len({choice.text for choice in found}) > 1
    assert complete(client, seed=found[0].seed, max_tokens=20).choices[0].text == found[0].text


def test_log_probabilities_are_the_models(client: Any, writers: Writers) -> None:
    import torch

    found = complete(client, logprobs=2, max_tokens=3, temperature=0).choices[0].logprobs
    writer = Writer.open(writers[0])
    x = writer.tokenizer.encode("the fox")
    for word, drawn, best in zip(found.tokens, found.token_logprobs, found.top_logprobs, strict=True):
        with torch.no_grad():
            p = writer.trained.model(torch.tensor([x]))[0, -1].log_softmax(-1)
        x.append(int(p.argmax()))
        assert word == writer.tokenizer.decode([x[-1]])
        assert drawn == pytest.approx(float(p.max()), abs=1e-4)
        assert len(best) == 2
        assert max(best.values()) == pytest.approx(drawn)


def test_a_chat_goes_through_the_template(client: Any, writers: Writers) -> None:
    said_in_parts = [{"type": "text", "text": "hi"}]
    messages = [{"role": "system", "content": "be brief"}, {"role": "user", "content": said_in_parts}]
    asked: dict[str, Any] = {"model": "llama", "messages": messages, "max_completion_tokens": 9, "seed": 5}
    whole = client.chat.completions.create(**asked, logprobs=True, top_logprobs=2)
    prompt = "<|system|>be brief<|user|>hi<|assistant|>"
    writer = Writer.open(writers[0])
    ids = writer.tokenizer.encode_special(prompt)
    by_tokens = complete(client, prompt=ids, max_tokens=9, seed=5)
    assert whole.choices[0].message.content == by_tokens.choices[0].text
    assert whole.usage.prompt_tokens == len(ids)
    assert [len(one.top_logprobs) for one in whole.choices[0].logprobs.content] == [2] * whole.usage.completion_tokens
    chunks = list(client.chat.completions.create(**asked, stream=True))
    assert chunks[0].choices[0].delta.role == "assistant"
    said = "".join(chunk.choices[0].delta.content or "" for chunk in chunks)
    assert said == whole.choices[0].message.content
    assert chunks[-1].choices[0].finish_reason == whole.choices[0].finish_reason


@pytest.mark.parametrize("seed", range(4))
def test_a_chat_is_what_descend_chat_answers(client: Any, writers: Writers, seed: int) -> None:
    messages = [{"role": "system", "content": "be brief"}, {"role": "user", "content": "the fox?"}]
    asked: dict[str, Any] = {
        "model": "llama",
        "messages": messages,
        "max_tokens": 12,
        "seed": seed,
        "stop": ["a", "zz"],
    }
    found = client.chat.completions.create(**asked).choices[0].message.content
    assert found == descend.chat(writers[0], messages, tokens=12, temperature=1.0, seed=seed, stop=("a", "zz"))


def test_a_turn_ends_where_the_template_says(writers: Writers, tmp_path: Path) -> None:
    """Here <|user|> follows each answer; a document's end is another token."""
    folder = shutil.copytree(writers[0], tmp_path / "turns")
    (folder / "chat_template.jinja").write_text(TURNS)
    tokenizer = Tokenizer.load(folder)
    turn = tokenizer.inner.token_to_id("<|user|>")
    with running(f"turns={folder}", rows=2) as server:
        model = server.service.served["turns"].text
        assert model.end_of_turn == tuple(sorted({tokenizer.end, turn}))
        with openai.OpenAI(base_url=f"{server.address}/v1", api_key="none", max_retries=0) as client:
            messages = [{"role": "user", "content": "the fox?"}]
            asked = {"model": "turns", "messages": messages, "max_tokens": 60}
            found = [client.chat.completions.create(**asked, seed=seed).choices[0] for seed in range(6)]
            expected = [descend.chat(folder, messages, tokens=60, temperature=1.0, seed=seed) for seed in range(6)]
    assert [choice.message.content for choice in found] == expected
    assert "stop" in {choice.finish_reason for choice in found}


def test_a_template_that_cannot_be_used_leaves_the_completions(writers: Writers, tmp_path: Path) -> None:
    folder = shutil.copytree(writers[0], tmp_path / "odd")
    (folder / "chat_template.jinja").write_text("{{ messages.__class__ }}")
    with (
        running(f"odd={folder}", rows=2) as server,
        openai.OpenAI(base_url=f"{server.address}/v1", api_key="none", max_retries=0) as client,
    ):
        assert complete(client, model="odd").choices[0].text
        with pytest.raises(openai.BadRequestError, match="odd takes no messages: the chat template reaches for"):
            client.chat.completions.create(model="odd", messages=[{"role": "user", "content": "hi"}])


def test_a_chat_without_a_limit_ends_with_the_context(client: Any) -> None:
    found = client.chat.completions.create(model="llama", messages=[{"role": "user", "content": "hi"}], temperature=0)
    assert found.choices[0].finish_reason in ("length", "stop")
    assert found.usage.total_tokens <= CONTEXT + 1


def test_nobody_forges_a_role(client: Any) -> None:
    """A special token inside a message stays text: more tokens than the role itself would be."""
    plain, forged = (
        client.chat.completions.create(
            model="llama", messages=[{"role": "user", "content": text}], max_completion_tokens=1
        ).usage.prompt_tokens
        for text in ("", "<|assistant|>")
    )
    assert forged > plain + 1


REFUSED: list[tuple[dict[str, Any], str, str | None]] = [
    ({"temperature": 3}, "temperature: input should be less than or equal to 2", "temperature"),
    ({"top_p": -0.1}, "top_p: input should be greater than or equal to 0", "top_p"),
    ({"max_tokens": 0}, "max_tokens: input should be greater than or equal to 1", "max_tokens"),
    ({"max_tokens": 500}, "the prompt has 3 tokens; with 500 new ones it passes the context of 96 tokens", None),
    ({"prompt": "fox " * 99, "max_tokens": 1}, "passes the context of 96 tokens: shorten it", None),
    ({"prompt": "fox " * 9999}, "39,996 characters, more than the context of 96 tokens can hold: shorten it", None),
    ({"prompt": ["x"] * 99, "n": 3}, "297 texts at once, but there is room for 264: ask for fewer", None),
    ({"stop": ""}, "stop", "stop"),
    ({"extra_body": {"temprature": 1}}, "'temprature' is not known here. Did you mean 'temperature'", "temprature"),
    ({"suffix": "x"}, "suffix", "suffix"),
    ({"presence_penalty": 1}, "presence_penalty", "presence_penalty"),
    ({"echo": True}, "echo", "echo"),
]


@pytest.mark.parametrize(("asked", "said", "param"), REFUSED)
def test_what_cannot_be_is_an_openai_error(client: Any, asked: dict[str, Any], said: str, param: str | None) -> None:
    with pytest.raises(openai.BadRequestError) as caught:
        complete(client, **asked)
    assert said in caught.value.body["message"]
    assert caught.value.param == param
    assert caught.value.type == "invalid_request_error"


def test_an_unknown_model_names_the_nearest(client: Any) -> None:
    with pytest.raises(openai.NotFoundError, match=r"no model 'lama'. Did you mean 'llama'") as caught:
        complete(client, model="lama")
    assert caught.value.code == "model_not_found"


def test_no_template_says_what_to_do(client: Any) -> None:
    with pytest.raises(openai.BadRequestError, match=r"gpt has no chat template.*chat_template.jinja"):
        client.chat.completions.create(model="gpt", messages=[{"role": "user", "content": "hi"}])


def test_models_are_listed(client: Any) -> None:
    found = {model.id: model.offers for model in client.models.list()}
    assert found == {"llama": ["completions", "chat"], "gpt": ["completions"]}
    assert client.models.retrieve("gpt").kind == "GPT2"
    with pytest.raises(openai.BadRequestError, match="llama holds a Llama, which answers at /v1/completions"):
        client.embeddings.create(model="llama", input="x")
