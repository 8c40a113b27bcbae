"""The tester tested: each law holds on honest functions, and breaks on its diseases, in the words that it should.

Nothing is taken from a record: each specimen is held to its own law afresh.
"""

import pytest
import torch

from gradspec._engine._plan import with_required
from gradspec._engine._verify import verify
from gradspec.law import Status
from gradspec.laws import LAWS
from gradspec_lab.selftest._judging import NEEDS_CUDA, other_words
from gradspec_lab.specimens import DISEASED, HONEST, breaking

BY_NAME = {law.name: law for law in LAWS}
#: The laws that measure nothing here.
UNMEASURED = () if torch.cuda.is_available() else NEEDS_CUDA


@pytest.mark.slow
@pytest.mark.parametrize("law", BY_NAME)
def test_an_honest_function_is_never_broken(law):
    # Law by law: the workers of a run share them.
    verdicts = verify(HONEST, [BY_NAME[law]]).verdicts

    assert [(v.spec, v.case, v.finding) for v in verdicts if v.status.is_failure] == []
    # Not vacuous: the law says `holds` somewhere.
    assert (Status.NOT_MEASURED if law in UNMEASURED else Status.HOLDS) in {v.status for v in verdicts}


@pytest.mark.slow
@pytest.mark.parametrize(("law", "name"), [(law.name, name) for law in LAWS for name in breaking(law.name)])
def test_a_disease_is_caught_by_its_law(law, name):
    if law in UNMEASURED:
        pytest.skip("no CUDA device on this machine")
    disease = DISEASED[name]
    # Behind the laws that it requires: it judges nothing that one of them could not.
    every = verify([disease.spec], with_required([BY_NAME[law]], LAWS)).verdicts
    verdicts = [v for v in every if v.law == law]

    broken = [v for v in verdicts if v.status is Status.BROKEN]
    assert broken, f"{law} lets {name} pass: {[(v.case, v.status) for v in verdicts]}"
    assert other_words(verdicts, disease.caught_by[law]) == ""


def test_every_law_has_a_disease_and_every_disease_a_law():
    assert [law.name for law in LAWS if not breaking(law.name)] == []
    assert {law for disease in DISEASED.values() for law in disease.caught_by} <= BY_NAME.keys()


@pytest.mark.parametrize("law", LAWS, ids=lambda law: law.name)
def test_the_page_of_a_law_says_why_what_breaks_it_and_what_to_do(law):
    assert law.doc.strip()
    assert all(law.section(heading) for heading in ("Why it matters", "What breaks it", "Remedy"))


def test_a_law_comes_after_the_laws_that_it_requires():
    names = [law.name for law in LAWS]

    assert [
        f"{law.name} comes before {needed}, which it requires: move it down in the list of laws"
        for law in LAWS
        for needed in law.requires
        if names.index(needed) > names.index(law.name)
    ] == []
