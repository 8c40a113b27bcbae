"""The commands that say what there is: `list` and `explain`. They read the files of ours, and import no torch."""

from __future__ import annotations

import json
from dataclasses import asdict

import click

from gradspec._registry._laws import listed_laws, select_laws
from gradspec._symptoms import SYMPTOMS
from gradspec.cli._say import say
from gradspec.cli._shared import block, one_line_errors


@click.command("list", epilog=block("Examples", "gradspec list", "gradspec list my_package.specs"))
@click.argument("targets", nargs=-1, metavar="[TARGET...]")
def list_(targets: tuple[str, ...]) -> None:
    """List the specs that can be checked, and the laws.

    Without a TARGET: those of gradspec and of installed packages (entry points `gradspec.specs`).
    """
    from gradspec._registry._registry import listed_specs, resolve_all
    from gradspec.cli import _screen, _tables

    with one_line_errors():
        pairs = resolve_all(targets) if targets else listed_specs()
        known = listed_laws()
    console = _screen.console()
    _screen.put(console, _tables.specs(pairs))
    _screen.put(console, _tables.laws(known))


@click.command(
    epilog=block("Examples", "gradspec explain vjp", "gradspec explain factor", "gradspec explain --format json")
)
@click.argument("name", required=False)
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text", help="Default: text.")
def explain(name: str | None, form: str) -> None:
    """Explain a law: what it states, why it matters, what breaks it, the remedy.

    NAME is a law, or the kind of a reason that a report names: its symptom, cause and remedy. Without a NAME,
    list all of these.
    """
    from gradspec.cli import _tables

    rows = [symptom for symptom in SYMPTOMS if name in (None, symptom.kind)]
    if rows:
        text = _as_json([asdict(symptom) for symptom in rows]) if form == "json" else _tables.symptoms(rows)
    else:
        with one_line_errors():
            (law,) = select_laws([str(name)], listed_laws())
        text = _as_json({"name": law.name, **law.sheet}) if form == "json" else _tables.law_page(law)
    say(text, nl=False)


def _as_json(data: object) -> str:
    return json.dumps(data, indent=1, ensure_ascii=False) + "\n"
