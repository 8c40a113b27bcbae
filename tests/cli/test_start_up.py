"""What lists and explains imports no torch, and says what the imported laws and specs say."""

import subprocess
import sys
from dataclasses import fields

import pytest

from gradspec._registry._declared import declared_laws
from gradspec._registry._laws import listed_laws
from gradspec._registry._registry import installed_specs, listed_specs
from gradspec.cli import main
from gradspec.cli._tables import law_page
from gradspec.laws import LAWS

COMMANDS = sorted(main.list_commands(None))


def test_the_declared_laws_are_the_imported_ones():
    shown = [part.name for part in fields(LAWS[0]) if part.name != "check"]

    assert [[getattr(law, name) for name in shown] for law in declared_laws()] == [
        [getattr(law, name) for name in shown] for law in LAWS
    ]
    assert [law_page(law) for law in listed_laws()] == [law_page(law) for law in LAWS]


def test_the_declared_specs_are_the_imported_ones():
    listed, installed = (
        [(path, spec.name, spec.kind, spec.headline) for path, spec in pairs]
        for pairs in (listed_specs(), installed_specs())
    )
    assert listed == installed


def test_a_declared_law_cannot_be_checked():
    with pytest.raises(NotImplementedError, match="to be shown"):
        declared_laws()[0].check(None)


@pytest.mark.parametrize(
    "words",
    [("--help",), ("list",), ("explain", "vjp"), ("explain", "vjpp"), *((name, "--help") for name in COMMANDS)],
    ids=" ".join,
)
def test_it_imports_no_torch(words):
    command = [sys.executable, "-X", "importtime", "-m", "gradspec", *words]
    done = subprocess.run(command, capture_output=True, text=True, check=False)

    assert done.returncode == (2 if "vjpp" in words else 0)
    assert "| torch\n" not in done.stderr
    assert "| gradspec.cli" in done.stderr
