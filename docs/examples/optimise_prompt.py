"""Optimise a prompt by feedback in words: answer, score, criticise what was wrong, rewrite, and look at the score."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import click
from _help_desk import LABELS, MODEL, Example, load_split

from gradspec.text import Function, Variable, backward, no_grad
from gradspec.text.lm import Client, Message, OpenAIModel, complete

START = f"Answer with one of: {', '.join(LABELS)}."

EXAMPLES = """\b
Examples:
  python docs/examples/optimise_prompt.py --steps 2 --seeds 1
  python docs/examples/optimise_prompt.py --out docs/records/examples/optimise_prompt.json
  python docs/examples/optimise_prompt.py --model llama3.2 --base-url http://localhost:11434/v1
"""


class Answer(Function):
    """Ask a model to answer a message as the prompt says; in backward, ask it how the prompt should change."""

    io_bound = True  # a backward pass may have many of these under way at once

    @staticmethod
    def forward(ctx: Any, prompt: Variable, message: str, model: Any) -> Variable:
        """Return the answer."""
        ctx.save_for_backward(prompt)
        ctx.message, ctx.model = message, model
        chat = [Message(role="system", content=prompt.data), Message(role="user", content=message)]
        return Variable(complete(model, chat).text.strip(), role="answer")

    @staticmethod
    def backward(ctx: Any, right: Variable) -> tuple[Variable, None, None]:
        """Return what should change in the prompt, given the right answer."""
        (prompt,) = ctx.saved_variables
        question = (
            f"The prompt is: {prompt.data}\n\nMessage: {ctx.message}\nRight answer: {right.data}\n"
            "How should the prompt change?"
        )
        return Variable(complete(ctx.model, question).text, role="feedback on the prompt"), None, None


def step(prompt: Variable, examples: Sequence[Example], model: Any, hints: int) -> None:
    """Rewrite the prompt by the feedback on the answers that are wrong."""
    answers = [(Answer.apply(prompt, example.message, model), example.label) for example in examples]
    wrong = [(answer, Variable(label, role="right answer")) for answer, label in answers if answer.data != label]
    if not wrong:
        return
    backward(*map(list, zip(*wrong, strict=True)), max_concurrency=16)
    rewritten = complete(
        model,
        f"Rewrite this prompt by the feedback on it. Keep what works, and add at most {hints} hints, one a line:\n"
        f"- word: answer\nReturn the prompt alone.\n"
        f"<prompt>{prompt.data}</prompt>\n<feedback>{prompt.grad.data}</feedback>",
    )
    prompt.data, prompt.grad = rewritten.text, None


@no_grad()
def share_right(prompt: Variable, examples: Sequence[Example], model: Any) -> float:
    """Return the share of the messages that are answered rightly."""
    right = [Answer.apply(prompt, example.message, model).data == example.label for example in examples]
    return sum(right) / len(right)


def optimise(seed: int, *, steps: int, hints: int, model: Any) -> Iterator[tuple[float, float, str]]:
    """Yield the scores on the messages to learn from and on the others, and the prompt: before, and after each step."""
    train, test = load_split(seed)
    prompt = Variable(START, role="the prompt of a help desk", requires_grad=True)
    yield share_right(prompt, train, model), share_right(prompt, test, model), prompt.data
    for _ in range(steps):
        step(prompt, train, model, hints)
        yield share_right(prompt, train, model), share_right(prompt, test, model), prompt.data


@click.command(epilog=EXAMPLES)
@click.option("--steps", type=click.IntRange(min=1), default=8, show_default=True, help="Rewrites of the prompt.")
@click.option("--seeds", type=click.IntRange(min=1), default=5, show_default=True, help="Splits of the messages.")
@click.option("--hints", type=click.IntRange(min=1), default=4, show_default=True, help="New hints a rewrite, at most.")
@click.option("--model", "name", help="The model of a server; without it, the rules of _help_desk.py answer.")
@click.option("--base-url", help="The address of that server.")
@click.option("--show", is_flag=True, help="Print the last prompt.")
@click.option("--out", type=click.Path(dir_okay=False, path_type=Path), help="Write what was measured as JSON.")
def main(
    steps: int, seeds: int, hints: int, name: str | None, base_url: str | None, show: bool, out: Path | None
) -> None:
    """Optimise the prompt of a help desk that sorts messages into four departments.

    Each seed splits the 80 messages into 48 to learn from and 32 to test on. The same options give the same numbers.
    """
    if base_url and not name:
        raise click.UsageError("--base-url names a server; say with --model which of its models to ask")
    model = MODEL if name is None else Client(OpenAIModel(name, base_url=base_url), options={"temperature": 0})
    if out:
        import _record  # it needs torch, and nothing else here does

        _record.check_writable(out)
    run = partial(optimise, steps=steps, hints=hints, model=model)
    runs = []
    for seed in range(seeds):
        runs.append(list(run(seed)))
        first, last = runs[-1][0], runs[-1][-1]
        click.echo(f"split {seed}: {first[1]:.1%} of the test messages before, {last[1]:.1%} after {steps} steps")
    if show:
        click.echo(runs[-1][-1][2])
    if out:
        save(runs, {"steps": steps, "hints": hints}, out)


def save(runs: Sequence[Sequence[tuple[float, float, str]]], settings: dict[str, int], out: Path) -> None:
    """Write the scores of each step and split, and where they come from."""
    import _record

    from gradspec.source import fingerprint, package_root

    lines = {
        label: [[scores[place] for scores in run] for run in runs]
        for place, label in enumerate(("train messages", "test messages"))
    }
    figure = _record.figure("Messages answered rightly", "right answers", lines, format=".1%")
    figure["x"] = {"label": "step", "values": list(range(settings["steps"] + 1))}
    here = Path(__file__).parent
    scripts = [here / "_help_desk.py", here / Path(__file__).name]
    ends = {
        label.split()[0]: {name: _record.spread([run[i] for run in found]) for name, i in (("first", 0), ("last", -1))}
        for label, found in lines.items()
    }
    names = [Path(os.path.relpath(path, out.resolve().parent)).as_posix() for path in scripts]
    ours = sorted(f"text/{file}" for file in ("_backward.py", "_function.py", "_variable.py", "lm/_rules.py"))
    record = {
        "name": "optimise_prompt",
        "what": "share of messages answered rightly, by step of the optimisation of a prompt",
        "provenance": {k: v for k, v in _record.provenance(len(runs)).items() if k not in ("torch", "scikit-learn")},
        "settings": settings,
        "numbers": ends,
        "figures": {"right": figure},
        "sources": [
            {"package": "gradspec", "files": ours, "hash": fingerprint(ours, package_root("gradspec"))},
            {"package": "", "files": names, "hash": fingerprint(map(str, scripts), None)},
        ],
    }
    _record.write(record, out)


if __name__ == "__main__":
    main()
