"""The key of a root: what can change a finding moves it, what cannot does not."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from gradspec._record import (
    Reach,
    Source,
    _program,
    _source,
    experiment_sources,
    reach_from,
    read_experiment,
    write_experiment,
)
from gradspec._record._definitions import definitions
from gradspec._record._modules import Module

FILES = {
    "__init__.py": "from keyed.shapes import area\n",
    "shapes.py": '''"""Shapes."""
from __future__ import annotations

import functools
from keyed import helpers
from keyed.helpers import double as twice
from keyed.marks import mark

LIMIT = 3
TABLE = {}
UNUSED = 7


@mark
def area(x: helpers.Number) -> helpers.Number:
    """Return the area.

    >>> shout("2")
    '2!'
    """
    if x > LIMIT:
        raise ValueError(f"{x} is larger than {LIMIT}")
    return twice(x) * Circle(x).round


def shout(text):
    return text + "!"


class Circle:
    pi = 3.14

    def __init__(self, x):
        self.x = x

    @property
    def round(self):
        return self.pi * self.x

    def never(self):
        return 0


def listed(name):
    return TABLE[name]


def enter(name):
    def into(function):
        TABLE[name] = function
        return function

    return into


@enter("square")
def square(x):
    return x * x


def chosen(name):
    return getattr(helpers, name)(1)


def hidden(double):
    LIMIT = double
    return LIMIT


quick = lambda x: x + 1
ROWS = [(last := row) for row in (5, 6)]


class Table:
    row: int


def latest():
    return last


def every():
    return [value for value in globals().values() if callable(value)]


def outer():
    import keyed.late as late

    return late.now()
''',
    "helpers.py": "Number = float\n\n\ndef double(x):\n    return 2 * x\n\n\ndef triple(x):\n    return 3 * x\n",
    "marks.py": "def mark(function):\n    return function\n",
    "late.py": "def now():\n    return 1\n\n\ndef then():\n    return 2\n",
    "patched.py": "from keyed import helpers\n\nVALUE = 1\n",
    "alone.py": "class Alone:\n    def near(self, x):\n        return x.size\n",
}


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    root = tmp_path / "keyed"
    root.mkdir()
    for name, text in FILES.items():
        (root / name).write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    return root


@pytest.fixture
def moves(package: Path) -> Callable[..., bool]:
    """Edit a file, and return whether the key of a root has moved."""

    def moved(root: str, file: str, old: str, new: str, *, documented: bool = False) -> bool:
        def key() -> str:
            source = Source.of(reach_from(), f"keyed.shapes:{root}", documents=["keyed.shapes:area"])
            return source.documented if documented else source.key

        before, text = key(), (package / file).read_text()
        assert before
        assert old in text
        (package / file).write_text(text.replace(old, new))
        return key() != before

    return moved


@pytest.mark.parametrize(
    ("root", "file", "old", "new"),
    [
        pytest.param("area", "shapes.py", "x > LIMIT", "x >= LIMIT", id="its own body"),
        pytest.param("area", "shapes.py", "is larger than", "exceeds", id="a message"),
        pytest.param("area", "shapes.py", "LIMIT = 3", "LIMIT = 4", id="a constant of the module"),
        pytest.param("area", "helpers.py", "2 * x", "4 * x", id="a helper under another name"),
        pytest.param("area", "helpers.py", "Number = float", "Number = int", id="an annotation"),
        pytest.param("area", "marks.py", "return function", "return print", id="a decorator"),
        pytest.param("area", "shapes.py", "return 0", "return 1", id="any method of a class"),
        pytest.param("area", "shapes.py", "pi = 3.14", "pi = 3.1", id="an attribute of a class"),
        pytest.param("listed", "shapes.py", "x * x", "x * x * x", id="what is entered in a registry"),
        pytest.param("chosen", "helpers.py", "3 * x", "5 * x", id="any function of a module that getattr asks"),
        pytest.param("every", "shapes.py", "return 0", "return 1", id="any definition where globals() is asked"),
        pytest.param("every", "helpers.py", "2 * x", "4 * x", id="any import where globals() is asked"),
        pytest.param("quick", "shapes.py", "x + 1", "x + 2", id="a lambda"),
        pytest.param("latest", "shapes.py", "(5, 6)", "(5, 7)", id="what a comprehension binds outside of it"),
        pytest.param("outer", "late.py", "return 1", "return 3", id="an import within a function"),
        pytest.param("area", "helpers.py", "def double", "X = double = 1\ndef double", id="another definition of it"),
        pytest.param("area", "shapes.py", "UNUSED = 7", "LIMIT += 1", id="an assignment that adds"),
        pytest.param("area", "shapes.py", "UNUSED = 7", "helpers.double = print", id="a patch when it is imported"),
        pytest.param("area", "shapes.py", "UNUSED = 7", "print(Circle)", id="a call when it is imported"),
        pytest.param("area", "shapes.py", "import double as twice", "import triple as twice", id="another helper"),
    ],
)
def test_what_can_change_a_finding_moves_the_key(
    moves: Callable[..., bool], root: str, file: str, old: str, new: str
) -> None:
    assert moves(root, file, old, new)


@pytest.mark.parametrize(
    ("root", "file", "old", "new"),
    [
        pytest.param("area", "shapes.py", "    return twice", "    # why\n    return (twice)", id="comments, layout"),
        pytest.param("area", "shapes.py", "Return the area.", "Return an area.", id="a docstring"),
        pytest.param("area", "shapes.py", "UNUSED = 7", "UNUSED = 8", id="what it does not mention"),
        pytest.param("area", "helpers.py", "3 * x", "5 * x", id="a neighbour of its helper"),
        pytest.param("area", "shapes.py", "x * x\n", "x\n", id="what a registry that it does not read holds"),
        pytest.param("hidden", "helpers.py", "2 * x", "4 * x", id="a name that an argument hides"),
        pytest.param("hidden", "shapes.py", "LIMIT = 3", "LIMIT = 4", id="a name that a variable hides"),
        pytest.param("Table", "shapes.py", "(5, 6)", "(5, 7)", id="a name that is a variable of a comprehension"),
        pytest.param("outer", "late.py", "return 2", "return 3", id="a neighbour in a module of its own"),
        pytest.param("shout", "shapes.py", "UNUSED = 7", "Circle.pi = 3", id="a patch of what it does not mention"),
    ],
)
def test_what_cannot_does_not(moves: Callable[..., bool], root: str, file: str, old: str, new: str) -> None:
    assert not moves(root, file, old, new)


def test_words_and_the_code_of_examples_count_where_examples_are_run(moves: Callable[..., bool]) -> None:
    assert moves("area", "shapes.py", "Return the area.", "Return an area.", documented=True)
    assert not moves("area", "shapes.py", 'text + "!"', 'text + "?"')
    assert moves("area", "shapes.py", 'text + "?"', 'text + "."', documented=True)


def test_a_definition_that_moves_to_another_module_keeps_its_key(package: Path) -> None:
    before = Source.of(reach_from(), "keyed.shapes:area").key
    (package / "elsewhere.py").write_text((package / "helpers.py").read_text())
    (package / "helpers.py").write_text("from keyed.elsewhere import *\n")
    assert Source.of(reach_from(), "keyed.shapes:area").key == before
    assert Source.of(reach_from(), "keyed:area").key == before, "the name by which it is passed on"


def test_what_a_package_does_when_it_is_imported_counts_for_its_modules(package: Path) -> None:
    before = Source.of(reach_from(), "keyed.alone:Alone").key
    assert before
    with (package / "__init__.py").open("a") as init:
        init.write("import keyed.alone\n\nkeyed.alone.Alone.near = print\n")
    assert Source.of(reach_from(), "keyed.alone:Alone").key != before


def test_two_definitions_that_change_places_move_the_key(package: Path) -> None:
    text = "from keyed.helpers import double, triple\n\n\ndef both(x):\n    return double(x) - triple(x)\n"
    (package / "both.py").write_text(text)
    before = Source.of(reach_from(), "keyed.both:both").key
    (package / "both.py").write_text(text.replace("double, triple", "double as triple, triple as double"))
    assert Source.of(reach_from(), "keyed.both:both").key != before


def test_a_root_that_is_gone_or_no_python_is_of_no_source(package: Path) -> None:
    source = Source.of(reach_from(), "keyed.shapes:area")
    assert source.is_current(reach_from())
    assert Source.of(reach_from(), "keyed.shapes:nothing").key == ""
    assert Source.of(reach_from(), "no_such_package.module").key == ""
    (package / "marks.py").write_text("def mark(:\n")
    assert not source.is_current(reach_from())
    assert not Source.of(reach_from(), "keyed.shapes:area").is_current(reach_from()), "two that are unknown differ"


def test_data_beside_a_module_that_looks_for_files_counts(package: Path) -> None:
    (package / "reads.py").write_text("from pathlib import Path\n\nTABLE = Path(__file__).with_name('table.csv')\n")
    (package / "table.csv").write_text("1,2\n")
    before = Source.of(reach_from(), "keyed.reads:TABLE").key
    (package / "table.csv").write_text("1,3\n")
    assert Source.of(reach_from(), "keyed.reads:TABLE").key != before


def test_a_version_of_another_package_counts_unless_the_provenance_notes_it(
    package: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (package / "uses.py").write_text("import pytest\n\nFAIL = pytest.fail\n")
    monkeypatch.setattr("gradspec._record._key.version_of", lambda top: f"{top} 1")
    counted, noted = (Source.of(reach_from(), "keyed.uses:FAIL", noted=noted) for noted in ((), ("pytest",)))
    monkeypatch.setattr("gradspec._record._key.version_of", lambda top: f"{top} 2")
    assert not counted.is_current(reach_from())
    assert noted.is_current(reach_from())


def test_a_process_that_goes_from_folder_to_folder_parses_once_and_sees_each_edit(
    package: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def key(folder: str) -> str:
        (tmp_path / folder).mkdir(exist_ok=True)
        monkeypatch.chdir(tmp_path / folder)
        return Source.of(reach_from(), "keyed.shapes:area").key

    before, parsed = key("first"), dict(_program._parsed)
    assert key("second") == before
    assert _program._parsed == parsed
    (package / "helpers.py").write_text((package / "helpers.py").read_text().replace("2", "3"))
    assert key("third") != before
    assert {module.name for module in parsed if _program._parsed[module] is not parsed[module]} == {"keyed.helpers"}
    for number in range(9):
        key(f"one more {number}")
    assert len(_source._reaches) <= 4


OPERATORS = """\
import torch


@torch.library.custom_op("keyed::scale", mutates_args=())
def scale(x: torch.Tensor) -> torch.Tensor:
    return 2 * x


@scale.register_fake
def _(x):
    return x.clone()


def by_name(x):
    return torch.ops.keyed.scale(x)


def by_hand(x):
    return scale(x)


def neither(x):
    return x
"""


@pytest.mark.parametrize(("root", "moved"), [("by_name", True), ("by_hand", True), ("neither", False)])
@pytest.mark.parametrize("edit", [("2 * x", "3 * x"), ("x.clone()", "x")], ids=["kernel", "fake"])
def test_an_operator_counts_where_it_is_called(package: Path, root: str, moved: bool, edit: tuple[str, str]) -> None:
    (package / "operators.py").write_text(OPERATORS)
    before = Source.of(reach_from(), f"keyed.operators:{root}").key
    (package / "operators.py").write_text(OPERATORS.replace(*edit))
    assert (Source.of(reach_from(), f"keyed.operators:{root}").key != before) is moved


@pytest.mark.parametrize(
    "names",
    [
        pytest.param(("GRAD_FACTOR", "gradspec.functions._gradient_scaling._cases", "cases"), id="cases"),
        pytest.param(("GRAD_FACTOR", "gradspec.functions._gradient_scaling._scaling", "apply_scaling"), id="function"),
        pytest.param(("SHAKE_SHAKE", "gradspec.functions._shake_shake._noise", None), id="noise"),
        pytest.param(("LINEAR_AVERAGE_OP", "gradspec.functions._linear_average._bank", "move_rows"), id="bank"),
    ],
)
def test_a_spec_of_ours_reaches_what_it_stands_on(names: tuple[str, str, str | None]) -> None:
    spec, module, name = names
    closure = reach_from().closure([f"gradspec.functions:{spec}"])
    found = {(d.module.name, bound) for d in closure.definitions for bound in d.binds}
    assert any(home == module and name in (None, bound) for home, bound in found)


def test_functions_of_ours_do_not_reach_one_another(reach: Reach) -> None:
    homes = {d.module.name for d in reach.closure(["gradspec.functions:GRAD_FACTOR"]).definitions}
    assert not [home for home in homes if "shake" in home or "linear" in home or ".laws" in home or ".text" in home]


def test_a_law_stands_on_few_definitions_and_on_no_other_law(reach: Reach) -> None:
    from gradspec.laws import LAWS

    modules = {law.name: law.check.__module__ for law in LAWS}
    for law in LAWS:
        name = next(key for key, value in vars(__import__(modules[law.name], fromlist=["_"])).items() if value is law)
        found = reach.closure([f"{modules[law.name]}:{name}"]).definitions
        assert not [d for d in found if "Law" in d.hash or d.binds & {"LAWS"}], law.name
        if not law.judges("text"):
            assert len(found) < 180, law.name


@pytest.fixture(scope="module")
def reach() -> Reach:
    return reach_from()


def test_an_installed_package_counts_by_its_definitions_where_it_is_what_is_verified(
    package: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gradspec._record._modules.is_installed", lambda place: place.name == "keyed")
    (package.parent / "mine.py").write_text("from keyed.shapes import area\n\n\ndef twice(x):\n    return area(x)\n")
    its_own, of_another = (Source.of(reach_from(), root) for root in ("keyed.shapes:area", "mine:twice"))
    assert its_own.is_current(reach_from())
    (package / "shapes.py").write_text(FILES["shapes.py"].replace("x > LIMIT", "x >= LIMIT"))
    assert not its_own.is_current(reach_from())
    assert of_another.is_current(reach_from()), "that one counts by its version"


def test_a_record_beside_a_script_is_not_what_the_script_stands_on(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("from pathlib import Path\n\nDATA = Path(__file__).with_name('data.csv')\n")
    (tmp_path / "data.csv").write_text("1\n")
    write_experiment({"numbers": {}}, tmp_path / "record.json", str(tmp_path / "train.py"))
    source = experiment_sources(read_experiment(tmp_path / "record.json"))["experiment"]
    assert source.is_current(reach_from())
    (tmp_path / "data.csv").write_text("2\n")
    assert not source.is_current(reach_from())


def test_modules_that_pass_names_on_in_a_circle_end(package: Path) -> None:
    (package / "one.py").write_text("from keyed.two import *\nfrom keyed.two import lost\n\nONE = 1\n")
    (package / "two.py").write_text("from keyed.one import *\nfrom keyed.one import lost, ONE\n\nTWO = ONE\n")
    (package / "three.py").write_text("from keyed import one\nfrom keyed.one import lost\n\nTHREE = (lost, one)\n")
    before = Source.of(reach_from(), "keyed.three:THREE").key
    assert before
    (package / "two.py").write_text((package / "two.py").read_text().replace("TWO = ONE", "TWO = 2"))
    assert Source.of(reach_from(), "keyed.three:THREE").key != before


def test_a_module_of_torch_is_a_version_and_not_read() -> None:
    import torch

    from gradspec._record import root_of

    assert root_of(object(), [__name__, torch.nn.Linear.__module__, "json"]) == root_of(object(), [__name__])
    assert Source.of(reach_from(), "torch.nn.modules.linear").key == "", "nothing can be said of it later"


@pytest.mark.parametrize(
    ("file", "name", "old", "field"),
    [
        ("_base", "Case", "the name of a case is", "    args: tuple[Any, ...]"),
        ("_function", "FunctionSpec", "take different arguments", "    wrt: tuple[str, ...]"),
    ],
)
def test_the_words_of_a_refusal_move_nothing(tmp_path: Path, file: str, name: str, old: str, field: str) -> None:
    def hashed(text: str) -> str:
        (tmp_path / "edited.py").write_text(text, encoding="utf-8")
        found, _, _ = definitions(Module(f"gradspec.spec.{file}", tmp_path / "edited.py"))
        return next(one.hash for one in found if name in one.binds)

    source = (Path(__file__).parents[2] / f"src/gradspec/spec/{file}.py").read_text(encoding="utf-8")
    assert old in source
    assert hashed(source.replace(old, "edited")) == hashed(source)
    assert source.count(field) == 1
    assert hashed(source.replace(field, f"{field} | None")) != hashed(source)


@pytest.mark.parametrize(
    ("statement", "has"),
    [
        ("TABLE['a'] = 1", True),
        ("if DEBUG:\n    TABLE['a'] = 1", True),
        ("try:\n    import fast\nexcept ImportError:\n    TABLE['a'] = 1", True),
        ("match KIND:\n    case 'a':\n        register()", True),
        ("for name in NAMES:\n    if name:\n        register(name)", True),
        ("if DEBUG:\n    LIMIT = 1", False),
        ("try:\n    import fast\nexcept ImportError:\n    fast = None", False),
        ("def f():\n    TABLE['a'] = 1", False),
        ("'a string'", False),
    ],
)
def test_a_statement_may_do_more_than_bind_names_where_one_within_it_does(
    tmp_path: Path, statement: str, has: bool
) -> None:
    (tmp_path / "edited.py").write_text(f"import json\n\n{statement}\n", encoding="utf-8")
    found, _, _ = definitions(Module("edited", tmp_path / "edited.py"))
    assert [one.has_effect for one in found] == [has]
