"""The table of the page on routes is what torch does to the code of that page, cell by cell, and the laws accept it."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import shlex
import shutil
from pathlib import Path
from typing import Any

import pytest
from torch.utils.cpp_extension import get_cxx_compiler

from forked import python
from pages.blocks import DOCS, all_blocks
from pages.routes import LOADED, ROUTES, TRANSFORMS

PAGE = "how-to/which-route.md"
BLOCKS = [block for block in all_blocks() if block.page == PAGE]
SCRIPT = Path(__file__).with_name("routes.py")
UNMEASURED = "not measured"
#: What torch says where it traces a kernel that the interpreter runs.
CANNOT_TRACE = re.compile(
    r"Cannot access data pointer of Tensor|Attempted to set the storage of a tensor on device \"meta\""
)
#: What says that it does so under another of the laws that trace.
FOLLOWS = re.compile(r"follows from (\w+)$")
#: The laws that trace a kernel, or call it on fake tensors.
TRACING = {
    "compile",
    "compile_grad",
    "compile_vmap",
    "compile_jvp",
    "compiled_autograd",
    "dynamic_shapes",
    "export",
    "fake",
    "fake_kernel",
    "opcheck",
    "exported_operator",
}


def table() -> tuple[list[str], dict[str, list[str]]]:
    """Return the names of the routes, and the cells of the page by row."""
    lines = (DOCS / PAGE).read_text(encoding="utf-8").splitlines()
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in lines if line.startswith("|")]
    head, _, *body = rows
    return head[1:], {row[0]: row[1:] for row in body}


def is_interpreted(route: str, law: str, message: str) -> bool:
    """Whether a law failed since torch cannot trace a kernel that Triton interprets."""
    if route != "triton_op" or law not in TRACING:
        return False
    follows = FOLLOWS.search(message)
    return follows.group(1) in TRACING if follows else CANNOT_TRACE.search(message) is not None


def lacking(route: str) -> str:
    """Return what this machine lacks for a route; empty where it has all of it."""
    if route == "triton_op" and importlib.util.find_spec("triton") is None:
        return "triton is not installed: nox -s lab -- routes"
    if route == "C++":
        missing = [program for program in (get_cxx_compiler(), "ninja") if shutil.which(program) is None]
        return f"no {' and no '.join(missing)} here: nox -s lab -- routes installs ninja" if missing else ""
    return ""


def on_each_route(*routes: str) -> pytest.MarkDecorator:
    """Return the mark of a test that runs for each of these routes, and says why it skips one."""
    return pytest.mark.parametrize(
        "route",
        [
            pytest.param(
                route,
                marks=[
                    pytest.mark.skipif(bool(lacking(route)), reason=lacking(route)),
                    *([pytest.mark.slow] if route == "C++" else []),  # its extension is built
                ],
            )
            for route in routes or ROUTES
        ],
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with the files of the page, each named by its first line, and the specs that the page leaves."""
    # Of one run, whatever its processes: the library is built once, and torch waits for who builds it.
    base = tmp_path_factory.getbasetemp()
    made = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "which-route"
    made.mkdir(exist_ok=True)
    files = {b.text.partition("\n")[0].split()[-1]: b.text for b in BLOCKS if b.kind in ("python", "cpp")}
    for route in ("custom_op", "triton_op"):
        files[f"by_{route}_spec.py"] = files["by_cpp_spec.py"].replace("cpp", route)
    for name, text in files.items():
        if not (made / name).exists():  # a file that is written again is built again
            (base / name).write_text(text, encoding="utf-8")
            (base / name).replace(made / name)
    return made


def measured(what: str, route: str, folder: Path, *, interpreted: bool = True, seconds: float = 300) -> Any:
    """Return what a new process finds of a route."""
    env = environment(folder) | ({"TRITON_INTERPRET": "1"} if interpreted else {})
    answer = folder / f"{what}-{ROUTES[route][0]}.json"
    done = python(SCRIPT, what, route, folder, answer, env=env, timeout=seconds)
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads(answer.read_text(encoding="utf-8"))


def environment(folder: Path) -> dict[str, str]:
    """Return the environment of a new process, which builds the library in the folder."""
    return {**os.environ, "TORCH_EXTENSIONS_DIR": str(folder / "built"), "OMP_NUM_THREADS": "1"}


def test_the_table_has_a_row_for_each_transform_and_a_column_for_each_route() -> None:
    columns, rows = table()
    assert columns == list(ROUTES)
    assert list(rows) == [*TRANSFORMS, LOADED]


@pytest.mark.slow
@on_each_route()
def test_a_column_of_the_table_is_what_torch_does(route: str, folder: Path) -> None:
    columns, rows = table()
    said = {row: cells[columns.index(route)] for row, cells in rows.items()}
    found = measured("cells", route, folder)
    # A kernel that can be traced is not interpreted, and one that runs here is.
    measured("export", route, folder, interpreted=False)
    found[LOADED] = {"word": measured("load", route, folder)}
    for row, word in said.items():
        if word == UNMEASURED:
            assert route == "triton_op"
            assert CANNOT_TRACE.search(found[row].get("said", "")), row
            found[row]["word"] = UNMEASURED
    assert {row: cell["word"] for row, cell in found.items()} == said


@pytest.mark.skipif("GRADSPEC_ROUTES" not in os.environ, reason="every law takes a minute: nox -s lab -- routes")
@on_each_route()
def test_the_laws_find_nothing_worse_than_a_limit_of_torch(route: str, folder: Path) -> None:
    found = measured("laws", route, folder)
    assert found
    for law, status, rank, message in found:
        if not is_interpreted(route, law, message):
            assert (status, rank) in {("not_measured", ""), ("not_promised", ""), ("broken", "limit")}, (law, message)


@pytest.mark.skipif("GRADSPEC_ROUTES" not in os.environ, reason="many seeds take minutes: nox -s lab -- routes")
@on_each_route("custom_op", "triton_op", "C++")
def test_an_operator_is_sound_under_many_seeds(route: str, folder: Path) -> None:
    found = measured("seeds", route, folder, seconds=3000)
    assert found["run"] == int(os.environ["GRADSPEC_ROUTES"])
    assert found["tried"] == found["cases"] > 0
    assert set(found["by_law"]) >= {"vjp", "schema", "fake_kernel"}
    for line in found["failures"]:
        assert is_interpreted(route, line.split(" · ")[1], line), line


@pytest.mark.slow
@on_each_route("custom_op", "C++")
def test_a_kernel_for_cuda_is_one_more_registration(route: str, folder: Path) -> None:
    assert measured("cuda", route, folder) == [False, True]


@on_each_route("C++")
def test_the_commands_of_the_page_run(route: str, folder: Path, tmp_path: Path) -> None:
    (tmp_path / "yourpackage").symlink_to(folder)
    (block,) = (block for block in BLOCKS if block.kind == "sh")
    answers = []
    for command in block.text.splitlines():
        # Two laws of the many: the other ones are judged above.
        words = [*shlex.split(command)[1:], "--law", "schema", "--law", "surrogate"]
        done = python("-m", "gradspec", *words, cwd=tmp_path, env=environment(folder))
        answers.append((done.returncode, done.stdout))
    (checked, holds), (audited, said) = answers
    assert (checked, audited) == (0, 0), holds + said
    assert "surrogate   ? question 1" in said
    assert "import by_cpp  # registers routes::step_cpp" in said
