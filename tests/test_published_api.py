"""Replacing an import is enough: names, arguments, defaults and members are those of the published pages."""

from __future__ import annotations

import ast
import inspect
from collections import Counter

import pytest
import torch

from published_api import CLASSES, EXISTING, Method, PublishedClass, parse_signature

P = inspect.Parameter
VARIADIC = (P.VAR_POSITIONAL, P.VAR_KEYWORD)


def mismatch(published: list[P], ours: list[P]) -> str | None:
    """Say why a call that the published parameters accept would fail with ours, or None.

    Published names keep their places and defaults; a published `*args` may be spelled out; what ours adds is optional.
    """
    if any(p.kind is P.VAR_POSITIONAL for p in ours) and any(p.kind is P.VAR_POSITIONAL for p in published):
        ours = [p for p in ours if p.kind not in VARIADIC]
    named = [p for p in published if p.kind not in VARIADIC]
    for place, wanted in enumerate(named):
        if place >= len(ours) or ours[place].name != wanted.name:
            found = ours[place].name if place < len(ours) else "nothing"
            return f"argument {place} is {found}, published as {wanted.name}"
        if ours[place].default != wanted.default:
            return f"the default of {wanted.name} is {ours[place].default!r}, published as {wanted.default!r}"
        if ours[place].kind is not P.POSITIONAL_OR_KEYWORD:
            return f"{wanted.name} cannot be given both by place and by name"
    open_ended = any(p.kind in VARIADIC for p in published)
    added = [p.name for p in ours[len(named) :] if p.default is P.empty and p.kind not in VARIADIC]
    return f"{added} are required and not published" if added and not open_ended else None


def parameters(entry: PublishedClass, cls: type, method: Method) -> tuple[list[P], list[P]]:
    """Return the published parameters of a method and ours, each as a caller sees them."""
    assert method.signature is not None
    published = list(method.signature.parameters.values())
    static = isinstance(inspect.getattr_static(cls, method.name), staticmethod)
    ours = list(inspect.signature(getattr(cls, method.name)).parameters.values())
    if not static and not inspect.ismethod(getattr(cls, method.name)):
        ours = ours[1:]  # self
    if _has_context(method.name, published):
        published = published[1:]
        if method.name != "forward" or not _separates_context(cls):
            ours = ours[1:]
    return published, ours


def _has_context(name: str, published: list[P]) -> bool:
    if name in ("backward", "jvp", "vjp", "setup_context"):
        return True
    # The page of LinearAverageOp calls the context `self`, and shows it, for its forward is static.
    return name == "forward" and bool(published) and published[0].name in ("ctx", "self")


def _separates_context(cls: type) -> bool:
    owner = next(base for base in cls.__mro__ if "setup_context" in vars(base))
    return not owner.__module__.startswith("torch.")


existing = pytest.mark.parametrize("entry", EXISTING, ids=lambda entry: entry.ours)
methods = pytest.mark.parametrize(
    ("entry", "method"),
    [
        pytest.param(entry, method, id=f"{entry.ours}.{method.name}")
        for entry in EXISTING
        for method in entry.methods
        if method.signature is not None
    ],
)


def test_gradfactor_page_has_18_methods_and_12_attributes() -> None:
    entry = next(entry for entry in CLASSES if entry.published == "torchlogix.functional.GradFactor")
    assert (len(entry.methods), len(entry.attributes)) == (18, 12)


def test_five_pages_have_eleven_classes() -> None:
    packages = Counter(entry.published.partition(".")[0] for entry in CLASSES)
    assert packages == {"torchlogix": 1, "espnet2": 1, "brails": 2, "afnio": 1, "archai": 6}


def test_no_member_is_listed_twice() -> None:
    assert {entry.ours: name for entry in CLASSES for name, n in Counter(entry.members).items() if n > 1} == {}


def test_the_gradient_scalers_exist() -> None:
    assert {"gradspec.functions.GradFactor", "gradspec.functions.GradMultiply"} <= {entry.ours for entry in EXISTING}


@existing
def test_name_is_the_published_one(entry: PublishedClass) -> None:
    cls = entry.load()
    assert cls is not None
    assert cls.__name__ == entry.published.rpartition(".")[2]


@existing
def test_bases(entry: PublishedClass) -> None:
    cls = entry.load()
    assert cls is not None
    assert set(entry.bases) <= {base.__name__ for base in cls.__mro__[1:]}


@existing
def test_constructor(entry: PublishedClass) -> None:
    cls = entry.load()
    assert cls is not None
    ours = list(inspect.signature(cls.__init__).parameters.values())[1:]
    assert mismatch(list(entry.signature.parameters.values()), ours) is None


@methods
def test_method_takes_the_published_arguments(entry: PublishedClass, method: Method) -> None:
    cls = entry.load()
    assert cls is not None
    assert mismatch(*parameters(entry, cls, method)) is None


@existing
def test_apply_takes_the_arguments_of_the_published_forward(entry: PublishedClass) -> None:
    cls = entry.load()
    forward = next((method for method in entry.methods if method.name == "forward"), None)
    # `Module.apply` is another thing: it visits the submodules.
    if not hasattr(cls, "apply") or issubclass(cls, torch.nn.Module) or forward is None or forward.signature is None:
        pytest.skip("not called by apply")
    published = list(forward.signature.parameters.values())
    ours = [p for p in inspect.signature(cls.apply).parameters.values() if p.kind not in VARIADIC]
    # Written out or not, `apply` takes by name what forward takes; a sentinel may stand for a missing argument.
    names = [p.name for p in published[_has_context("forward", published) :]]
    assert [p.name for p in ours] in (names, [])


@existing
def test_methods_are_callable(entry: PublishedClass) -> None:
    cls = entry.load()
    assert [method.name for method in entry.methods if not callable(getattr(cls, method.name, None))] == []


@existing
def test_static_and_class_methods_are_so(entry: PublishedClass) -> None:
    cls = entry.load()
    assert cls is not None
    kinds = {"static": staticmethod, "classmethod": classmethod}
    wrong = [
        method.name
        for method in entry.methods
        if method.kind and not isinstance(inspect.getattr_static(cls, method.name), kinds[method.kind])
    ]
    assert wrong == []


@existing
def test_attributes(entry: PublishedClass) -> None:
    cls = entry.load()
    assert cls is not None
    annotated = {name for base in cls.__mro__ for name in vars(base).get("__annotations__", {})}
    assert [name for name in entry.attributes if not hasattr(cls, name) and name not in annotated] == []


def test_each_module_has_a_published_state() -> None:
    modules = {entry.ours for entry in CLASSES if entry.ours.startswith("gradspec.nn.")}
    assert {entry.ours for entry in CLASSES if entry.state} == modules


@pytest.mark.parametrize(
    ("entry", "call"),
    [pytest.param(entry, call, id=f"{entry.ours}{call}") for entry in EXISTING for call in entry.state],
)
def test_state_has_the_published_keys_and_no_other(entry: PublishedClass, call: str) -> None:
    cls = entry.load()
    assert cls is not None
    assert sorted(cls(*ast.literal_eval(call)).state_dict()) == sorted(entry.state[call])


@pytest.mark.parametrize(
    ("published", "ours", "why"),
    [
        ("(x, f)", "(x, factor)", "argument 1 is factor, published as f"),
        ("(x, f)", "(x)", "argument 1 is nothing, published as f"),
        ("(x, f)", "(x, *, f)", "f cannot be given both by place and by name"),
        ("(x, t=1)", "(x, t=2)", "the default of t is 2, published as 1"),
        ("(x)", "(x, f)", "['f'] are required and not published"),
        ("(x)", "(x, f=1)", None),
        ("(*args)", "(x, f)", None),
        ("(info, in_dims, *args)", "(info, in_dims, x, f)", None),
    ],
)
def test_mismatch_says_what_differs(published: str, ours: str, why: str | None) -> None:
    given = [list(parse_signature(text).parameters.values()) for text in (published, ours)]
    assert mismatch(*given) == why
