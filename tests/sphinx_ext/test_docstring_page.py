"""What a docstring says is shown on the page of a spec, once; ordinary pages of autodoc keep its examples."""

from __future__ import annotations

import inspect
from dataclasses import replace

import pytest

from gradspec.law import Finding, Status
from gradspec.sphinx_ext.autodoc._docstring import remainder
from sphinx_ext.handmade import SHEET, Project, report, verdict

GOOGLE = """Scale a gradient.

    It goes on, see :func:`demo.scale`.

    .. math:: y = x

    Args:
        x: what passes.

    Returns:
        The same.

    Example:
        >>> Scale.apply(2.0, 3.0)
        2.0

    A paragraph after it.

    Note:
        It is odd.
    """
NUMPY = """Scale a gradient.

    It goes on, see :func:`demo.scale`.

    .. math:: y = x

    A paragraph after it.

    Parameters
    ----------
    x : float
        what passes.

    Returns
    -------
    float
        The same.

    Notes
    -----
    It is odd.

    Examples
    --------
    >>> Scale.apply(2.0, 3.0)
    2.0
    """
FIELDS = """Scale a gradient.

    It goes on, see :func:`demo.scale`.

    >>> Scale.apply(2.0, 3.0)
    2.0

    A paragraph after it.

    .. note:: It is odd.

    :param x: what passes.
    :returns: The same.
    """
EVERY = ("arguments", "examples", "formula", "references")


def with_docstring(project: Project, docstring: str, page: str = "") -> Project:
    demo = project.source / "demo.py"
    text = demo.read_text(encoding="utf-8")
    (before, after) = text.split("    def apply", 1)
    head = before[: before.index("class Scale") + len("class Scale:\n")]
    demo.write_text(f'{head}    """{docstring}"""\n\n    @staticmethod\n    def apply{after}', encoding="utf-8")
    conf = project.source / "conf.py"
    conf.write_text(conf.read_text(encoding="utf-8").replace("viewcode", "napoleon"), encoding="utf-8")
    (project.source / "api.rst").write_text(f":orphan:\n\nAPI\n===\n\n{page}", encoding="utf-8")
    project.write(report(project))
    return project


def text_of(project: Project, *options: str, page: str = "index") -> str:
    made = project.build("-b", "text", *options)
    assert (made.returncode, made.warnings) == (0, [])
    return (made.folder / f"{page}.txt").read_text(encoding="utf-8")


@pytest.mark.parametrize("docstring", [GOOGLE, NUMPY, FIELDS], ids=["Google", "NumPy", "fields"])
def test_the_rest_of_a_docstring_is_shown_below_the_signature_and_nothing_twice(
    project: Project, docstring: str
) -> None:
    words = text_of(with_docstring(project, docstring))
    head = words[: words.index("Examples\n")]
    for said in ("It goes on, see", "A paragraph after it.", "It is odd.", "Returns:", "The same."):
        assert head.count(said) == 1, said
    assert "what passes" not in words, "the table of arguments has its own words"
    assert words.count(">>> Scale.apply(2.0, 3.0)") == 1
    assert head.index("Scales the gradient that flows back") < head.index("It goes on, see")


def test_what_the_record_has_not_is_shown_from_the_docstring(project: Project) -> None:
    project = with_docstring(project, GOOGLE)
    made = report(project)
    bare = {**SHEET, "arguments": [], "tex": {}, "summary": "Scale a gradient."}
    kept = tuple(v for v in made.verdicts if v.law != "examples")
    none = verdict("examples", "demo.Scale", Finding(status=Status.NOT_APPLICABLE))
    project.write(replace(made, sheets={"scale": bare}, verdicts=(*kept, none)))

    words = text_of(project)

    for said in ("Scale a gradient.", "what passes", "y = x", ">>> Scale.apply(2.0, 3.0)"):
        assert words.count(said) == 1, said


def test_attributes_are_listed_and_left_to_the_page_that_documents_them(project: Project) -> None:
    docstring = GOOGLE.replace("Returns:\n        The same.", "Attributes:\n        size (int): how many.")
    page = ".. autoclass:: demo.Scale\n   :no-index:\n\n.. py:attribute:: demo.Scale.size\n"
    words = text_of(with_docstring(project, docstring, page))
    assert words.count("how many.") == 1


def test_a_mock_says_nothing(project: Project) -> None:
    project = with_docstring(project, GOOGLE)
    (project.source / "index.md").write_text(
        "# Scale\n\n```{gradspec-function} scale\n```\n\n```{toctree}\nvjp\nmatrix\n```\n", encoding="utf-8"
    )
    words = text_of(project, "-D", "autodoc_mock_imports=demo")
    assert "Scales the gradient that flows back" in words
    assert "mock" not in words


def test_what_a_member_shows_is_not_shown_again(project: Project) -> None:
    project = with_docstring(project, GOOGLE)
    demo = project.source / "demo.py"
    text = demo.read_text(encoding="utf-8")
    demo.write_text(text.replace('"""Return x, and', '"""A paragraph after it.\n\n    Return x, and'), encoding="utf-8")
    project.write(report(project))
    assert text_of(project).count("A paragraph after it.") == 1


@pytest.mark.parametrize(
    ("doc", "rest"),
    [
        ("One.", ""),
        ("One.\n\nTwo.", "Two."),
        ("One\nline.\n\nTwo.", "One\nline.\n\nTwo."),
        ("One.\n\nFor example:\n\n    kept", "For example:\n\n    kept"),
        ("One.\n\nExample::\n\n    >>> 1\n    1\n\nTwo.", "Two."),
        ("One.\n\n>>> 1\n1\n\nTwo.", "Two."),
        ("One.\n\nOther Parameters\n----------------\na : int\n    A.\n\nNotes\n-----\nTwo.", "Notes\n-----\nTwo."),
        ("One.\n\n:param a: A\n    and on.\n:type a: int\n:returns: Two.", ":returns: Two."),
    ],
)
def test_the_remainder_of_a_docstring(doc: str, rest: str) -> None:
    documented = type("Documented", (), {"__doc__": doc})
    assert inspect.cleandoc(doc) == doc
    assert remainder(documented, "One.", EVERY) == rest


def test_an_ordinary_page_of_autodoc_keeps_the_examples_and_doctest_runs_them(project: Project) -> None:
    page = ".. autoclass:: demo.Scale\n   :no-index:\n   :members:\n"
    project = with_docstring(project, GOOGLE.replace("        2.0\n", "        3.0\n"), page)
    assert ">>> Scale.apply(2.0, 3.0)" in text_of(project, page="api")

    conf = project.source / "conf.py"
    setup = 'extensions.append("sphinx.ext.doctest")\ndoctest_global_setup = "from demo import Scale"\n'
    conf.write_text(conf.read_text(encoding="utf-8") + setup, encoding="utf-8")
    made = project.build("-b", "doctest")
    assert made.returncode == 1
    output = (made.folder / "output.txt").read_text(encoding="utf-8")
    assert "1 failure in tests" in output
    assert "Document: api" in output
