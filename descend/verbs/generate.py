"""descend generate: let a trained model write: on from a prompt, or the answer to a source text (translation)."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

from descend.data.reading import read_records, show
from descend.inference.inputs import PlainText, is_file, read_texts
from descend.inference.writer import SOURCE, Writer
from descend.own_code import use_code
from descend.sampling.filters import TokenSampler
from descend.sampling.stop import until


def generate(
    run: str | Path,
    prompt: str | Path,
    tokens: int = 100,
    temperature: float = 0.8,
    top_k: int = 0,
    top_p: float = 1.0,
    min_p: float = 0.0,
    repetition: float = 1.0,
    stop: tuple[str, ...] = (),
    seed: int = 0,
    beams: int = 1,
    checkpoint: str | int = "best",
) -> str:
    """The prompt and what the model writes after it.

    A model that reads a source text and writes another (T5, the Transformer, Seq2Seq) gives its answer alone.

    Args:
        run: a run's folder, or a model folder with a tokenizer.json.
        prompt: the text to continue, or the source to answer; a Path is a file of it (for sources: one on each line,
            and so are the answers).
        tokens: how many tokens to write at most.
        temperature: 0 takes the most likely token each time, 1 samples from the model's own distribution.
        top_k: only the k most likely tokens; 0: all.
        top_p: nucleus sampling: only the most likely tokens that together exceed this probability; 1: all.
        min_p: only tokens at least this fraction as likely as the most likely one; 0: all.
        repetition: penalty on tokens that the text already has; 1: none, 1.2 is usual.
        stop: end before the first of these texts.
        seed: of the random choices.
        beams: above 1: beam search with this many beams; nothing is sampled, so the sampling options do not apply.
        checkpoint: best, last or a step.
    """
    writer, sampler = Writer.open(run, checkpoint), TokenSampler(temperature, top_k, top_p, min_p, repetition)
    prompts = read_prompts(writer, str(prompt)) if isinstance(prompt, Path) else [prompt]
    return "\n".join("".join(write_pieces(writer, one, tokens, sampler, stop, seed, beams)) for one in prompts)


def read_prompts(writer: Writer, prompt: str) -> list[str]:
    """The prompt itself, or what a file of this name holds: one text to continue, without the line's end after it; of
    sources one on each line, or the column `source` of a table."""
    if not is_file(prompt):
        return [prompt]
    return [read_records(Path(prompt)).removesuffix("\n")] if writer.continues else read_texts([prompt], SOURCE).texts


def write_pieces(
    writer: Writer, prompt: str, tokens: int, sampler: TokenSampler, stop: tuple[str, ...], seed: int, beams: int
) -> Iterator[str]:
    """The text as it comes, after the prompt where it continues it. A mistake is raised before the first piece."""
    waiting = prompt if writer.continues else ""
    found = iter([writer.search(prompt, tokens, beams)]) if beams != 1 else writer.write(prompt, tokens, sampler, seed)
    for piece in until(found, stop):
        yield waiting + piece
        waiting = ""
    yield waiting


def command(
    run: str,
    prompt: str = "",
    /,
    *,
    tokens: int = 100,
    temperature: float = 0.8,
    top_k: int = 0,
    top_p: float = 1.0,
    min_p: float = 0.0,
    repetition: float = 1.0,
    stop: tuple[str, ...] = (),
    seed: int = 0,
    beams: int = 1,
    checkpoint: str = "best",
    code: str = "",
    text: bool = False,
) -> None:
    """Continue a prompt, or answer a source text, with a run or any model folder that has a tokenizer.json.

    Args:
        run: a run's folder, or a model folder.
        prompt: the text to continue, or the source to answer; or a file of it (for sources, one on each line).
        tokens: how many tokens to write at most.
        temperature: 0 takes the most likely token each time, 1 samples from the model's own distribution.
        top_k: only the k most likely tokens; 0: all.
        top_p: nucleus sampling: only the most likely tokens that together exceed this probability; 1: all.
        min_p: only tokens at least this fraction as likely as the most likely one; 0: all.
        repetition: penalty on tokens that the text already has; 1: none, 1.2 is usual.
        stop: end before the first of these texts.
        seed: of the random choices.
        beams: above 1: beam search with this many beams; the sampling flags then do not apply.
        checkpoint: best, last or a step.
        code: the file of a recipe or model of your own, where it is not found by its name.
        text: the prompt is a text, even where there is a file of this name.

    Examples:
        descend generate runs/demo "The for statement"
        descend generate runs/demo beginning.txt --tokens 200
        descend generate runs/demo "def " --tokens 200 --temperature 0.7 --top-k 40 --seed 3
        descend generate runs/demo "def " --min-p 0.05 --repetition 1.2 --stop "def " "class "
        descend generate runs/translate "Ein Mann schläft." --beams 4
    """
    use_code(code)
    writer, sampler = Writer.open(run, checkpoint), TokenSampler(temperature, top_k, top_p, min_p, repetition)
    given = PlainText(prompt) if text else prompt
    if is_file(given):
        print(f"reading the file {show(given)}; for the text itself give --text", file=sys.stderr)
    for one in read_prompts(writer, given):
        for piece in write_pieces(writer, one, tokens, sampler, stop, seed, beams):
            sys.stdout.write(piece)
            sys.stdout.flush()
        print()
