"""The specimens tested: a law that is broken in one place must let one of its own specimens pass.

So each thing that a law can find is held by a specimen, and each specimen is killed by its law and by nothing else.
"""

from __future__ import annotations

import re
import sys

import pytest

from gradspec._engine._check import run_check
from gradspec._engine._plan import plan
from gradspec.law import Law, Status
from gradspec.laws import LAWS
from gradspec.laws.operator import _exported_operator
from gradspec.laws.operator.support import _new_process
from gradspec.laws.tensor.support import _passes
from gradspec.profile import load_profile
from gradspec_lab.selftest._judging import NEEDS_CUDA
from gradspec_lab.specimens import DISEASED, breaking
from laws.lawbreaker import always_holding, blinded, compared_with_itself

PROFILE = load_profile("quick")
#: What only a CUDA device shows.
ON_CUDA = {"no_host_read": ["_on_cuda"]}
#: What finds nothing in its own file: the processes of two ranks are judged in that of both laws.
ON_RANKS = ("ddp", "fsdp2")
HELD = [law for law in LAWS if law.name not in (*NEEDS_CUDA, *ON_RANKS)]
#: Those whose checks take milliseconds, and then the others, of operators and modules too.
BY_COST = [
    law
    if law.cost == "ms" and law.judges("function") and law.name not in ("distribution", "sharded")
    else pytest.param(law, marks=pytest.mark.slow)
    for law in HELD
]
#: The laws that watch a function in several passes.
WATCHING = [law for law in HELD if hasattr(sys.modules[law.check.__module__], "in_each_pass")]


@pytest.fixture(autouse=True)
def asked_once(monkeypatch):
    """Let a new process be asked once for the programs of an operator: what is broken is how its answer is judged."""
    asked, answers = _new_process.run_elsewhere, {}

    def run_elsewhere(programs, operator, modules):
        if operator not in answers:
            try:
                answers[operator] = asked(programs, operator, modules)
            except _new_process.NewProcessError as error:
                answers[operator] = error
        if isinstance(answers[operator], Exception):
            raise answers[operator]
        return answers[operator]

    monkeypatch.setattr(_new_process, "run_elsewhere", run_elsewhere)
    monkeypatch.setattr(_exported_operator, "run_elsewhere", run_elsewhere)


def caught(law: Law) -> set[str]:
    """Return the specimens of a law that it breaks on, in the words that it should."""
    return {name for name in breaking(law.name) if _breaks(law, name)}


def _breaks(law: Law, name: str) -> bool:
    findings = (run_check(check, PROFILE).finding for check in plan([DISEASED[name].spec], [law], PROFILE))
    words = DISEASED[name].caught_by[law.name]
    said = (found.details.get("found", found.message) for found in findings if found.status is Status.BROKEN)
    return any(re.search(words, message) for message in said)


@pytest.mark.parametrize("law", HELD, ids=lambda law: law.name)
def test_nothing_but_the_law_kills_its_specimens(law):
    assert caught(always_holding(law).law) == set()


@pytest.mark.parametrize("law", BY_COST, ids=lambda law: law.name)
def test_each_thing_that_a_law_finds_is_held_by_a_specimen(law):
    every = set(breaking(law.name))
    assert caught(law) == every  # a broken law could not lose what the sound one does not find

    changed = [*blinded(law, but=ON_CUDA.get(law.name, [])), *compared_with_itself(law)]
    assert changed
    unheld = [broken.name for broken in changed if caught(broken.law) == every]
    assert unheld == [], (
        "no specimen needs these lines of the law: add one to src/gradspec_lab/specimens for each `broken(`"
    )


@pytest.mark.parametrize("law", WATCHING, ids=lambda law: law.name)
def test_only_the_pass_in_which_it_is_sick_gives_a_specimen_away(law, monkeypatch):
    monkeypatch.setattr(_passes, "passes", lambda trial: iter((_passes.PLAIN,)))

    hidden = {name for name in breaking(law.name) if name.endswith(("_a_tangent", "_through_backward"))}
    assert hidden
    assert caught(law) == set(breaking(law.name)) - hidden
