"""Optimise a prompt by feedback in words: answer, score, criticise what was wrong, rewrite, and look at the score."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

import click
from _help_desk import LABELS, MODEL, Example, load_split

from gradspec.text import Variable, concurrency, no_grad, ops
from gradspec.text.lm import Client, Model, ModelError, OpenAIModel
from gradspec.text.optim import TextualGradientDescent

START = f"Answer with one of: {', '.join(LABELS)}."

EXAMPLES = """\b
Examples:
  python docs/examples/optimise_prompt.py --steps 2 --seeds 1
  python docs/examples/optimise_prompt.py --out docs/records/examples/optimise_prompt.json
  python docs/examples/optimise_prompt.py --model llama3.2 --base-url http://localhost:11434/v1
"""


def answer(prompt: Variable, examples: Sequence[Example], model: Model) -> Variable:
    """Return what the model answers to each message under the prompt: one Variable with a list of texts."""
    messages = Variable([example.message for example in examples], role="messages to the help desk")
    said = [{"role": "system", "content": prompt}, {"role": "user", "content": messages}]
    return ops.chat(model, said, role="departments")


def score(answers: Variable, examples: Sequence[Example]) -> Variable:
    """Return the share of right answers; its feedback on a wrong one says what is right, on a right one nothing."""
    share, _ = ops.exact_match(answers, [example.label for example in examples])
    return share


def make_optimizer(prompt: Variable, model: Model, hints: int) -> TextualGradientDescent:
    """Return what rewrites the prompt by the feedback on it, and how far it may go in one step."""
    rule = f"Add at most {hints} hints, one a line, in the form `- word: answer`, and leave the rest as it is."
    return TextualGradientDescent([prompt], model, constraints=[rule])


def step(optimizer: TextualGradientDescent, prompt: Variable, examples: Sequence[Example], model: Model) -> None:
    """Answer, score, pass the feedback back, and rewrite: the loop of every training."""
    optimizer.zero_grad()
    with concurrency(16):  # sixteen calls of the model under way at once, in each of the three
        share = score(answer(prompt, examples, model), examples)
        share.backward()
        optimizer.step()


@no_grad()
def share_right(prompt: Variable, examples: Sequence[Example], model: Model) -> float:
    """Return the share of the messages that are answered rightly."""
    return float(score(answer(prompt, examples, model), examples).data)  # type: ignore[arg-type]  # it is a number


def optimise(seed: int, *, steps: int, hints: int, model: Model) -> Iterator[tuple[float, float, str]]:
    """Yield the scores on the messages to learn from and on the others, and the prompt: before, and after each step."""
    train, test = load_split(seed)
    prompt = Variable(START, role="prompt of a help desk", requires_grad=True)
    optimizer = make_optimizer(prompt, model, hints)
    yield share_right(prompt, train, model), share_right(prompt, test, model), str(prompt.data)
    for _ in range(steps):
        step(optimizer, prompt, train, model)
        yield share_right(prompt, train, model), share_right(prompt, test, model), str(prompt.data)


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
    try:
        model = MODEL if name is None else Client(OpenAIModel(name, base_url=base_url), options={"temperature": 0})
    except ValueError as error:
        raise click.UsageError(str(error)) from None
    if out:
        import _record  # it needs torch, and nothing else here does

        _record.check_writable(out)
    run = partial(optimise, steps=steps, hints=hints, model=model)
    runs = []
    for seed in range(seeds):
        try:
            runs.append(list(run(seed)))
        except (ModelError, ValueError) as error:  # no answer, or no text between the tags
            raise click.ClickException(str(error)) from None
        first, last = runs[-1][0], runs[-1][-1]
        click.echo(f"split {seed}: {first[1]:.1%} of the test messages before, {last[1]:.1%} after {steps} steps")
    if show:
        click.echo(runs[-1][-1][2])
    if out:
        save(runs, {"steps": steps, "hints": hints}, out)


def save(runs: Sequence[Sequence[tuple[float, float, str]]], settings: dict[str, int], out: Path) -> None:
    """Write the scores of each step and split, and where they come from."""
    import _record

    lines = {
        label: [[scores[place] for scores in run] for run in runs]
        for place, label in enumerate(("train messages", "test messages"))
    }
    figure = _record.figure("Messages answered rightly", "right answers", lines, format=".1%")
    figure["x"] = {"label": "step", "values": list(range(settings["steps"] + 1))}
    ends = {
        label.split()[0]: {name: _record.spread([run[i] for run in found]) for name, i in (("first", 0), ("last", -1))}
        for label, found in lines.items()
    }
    record = {
        "name": "optimise_prompt",
        "what": "share of messages answered rightly, by step of the optimisation of a prompt",
        "provenance": {k: v for k, v in _record.provenance(len(runs)).items() if k != "torch"},
        "settings": settings,
        "numbers": ends,
        "figures": {"right": figure},
    }
    _record.write(record, out)


if __name__ == "__main__":
    main()
