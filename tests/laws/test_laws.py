"""The tester tested: each law holds on honest functions, and breaks on its diseases, in the words that it should.

What the committed kill matrix says is taken from there, as long as nothing has changed that can change it, and on the
versions on which it was made. Everything else is measured.
"""

from dataclasses import asdict
from pathlib import Path

import pytest
import torch

from gradspec._engine._verify import verify
from gradspec._record import provenance
from gradspec.law import Status
from gradspec.laws import LAWS
from gradspec.profile import device_name, load_profile
from gradspec_lab.selftest._judging import NEEDS_CUDA, other_words
from gradspec_lab.selftest._record import read_matrix
from gradspec_lab.selftest._standing import Standing, sources, specimens_of
from gradspec_lab.specimens import DISEASED, HONEST, breaking

PROFILE = load_profile("quick")
RECORD = Path(__file__).parents[2] / "docs" / "records" / "kill_matrix.json"
BY_NAME = {law.name: law for law in LAWS}
#: The laws that measure nothing here.
UNMEASURED = () if torch.cuda.is_available() else NEEDS_CUDA


@pytest.fixture(scope="session")
def recorded():
    """Return a function that returns what the matrix holds of a specimen under a law; None if that is not current."""
    facts = provenance(device=device_name(PROFILE.device), seed=0, profile=asdict(PROFILE))
    standing = Standing.of(read_matrix(RECORD), sources(), facts, LAWS)

    def row(name, kind, law):
        known, moved = standing.of_laws(name, specimens_of(kind))
        return None if law in moved or law in NEEDS_CUDA else known

    return row


@pytest.mark.parametrize("law", BY_NAME)
def test_an_honest_function_is_never_broken(law, recorded):
    rows = [(spec, recorded(spec.name, spec.kind, law)) for spec in HONEST]
    known = [row for _, row in rows if row is not None]
    unknown = [spec for spec, row in rows if row is None]
    # Law by law: the workers of a run share them.
    verdicts = verify(unknown, [BY_NAME[law]]).verdicts if unknown else ()

    assert [(v.spec, v.case, v.finding) for v in verdicts if v.status.is_failure] == []
    assert [row.name for row in known if law in row.killed_by] == []
    # Not vacuous: the law says `holds` somewhere.
    said = {v.status for v in verdicts} | {Status.HOLDS for row in known if law in row.held}
    assert (Status.NOT_MEASURED if law in UNMEASURED else Status.HOLDS) in said


@pytest.mark.parametrize(("law", "name"), [(law.name, name) for law in LAWS for name in breaking(law.name)])
def test_a_disease_is_caught_by_its_law(law, name, recorded):
    if law in UNMEASURED:
        pytest.skip("no CUDA device on this machine")
    disease = DISEASED[name]
    if row := recorded(name, disease.spec.kind, law):
        assert (law in row.killed_by, row.fault) == (True, "")
        return
    verdicts = verify([disease.spec], [BY_NAME[law]]).verdicts

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
