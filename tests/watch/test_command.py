"""`gradspec watch -- PROGRAM`: what the program does stays, and what it ran through is judged."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from gradspec.report import read_record

WRONG = """
import torch
class Wrong(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return 2 * x
    @staticmethod
    def backward(ctx, grad):
        return 3 * grad
def use(*_):
    Wrong.apply(torch.randn(3, requires_grad=True)).sum().backward()
"""
#: How a program may end, and its exit code.
ENDS = {
    "by itself": ("use(); print('done')", 0),
    "with a code": ("use(); sys.exit(3)", 3),
    "with an error": ("use(); raise RuntimeError('mine')", 1),
    "by os._exit": ("use(); sys.stdout.flush(); os._exit(7)", 7),
    "killed": ("use(); os.kill(os.getpid(), 9)", 137),
    "in forks": ("workers('fork')", 0),
    "in new processes": ("workers('spawn')", 0),
}
MAIN = """
if __name__ == "__main__":
    import multiprocessing, os, sys
    def workers(how):
        context = multiprocessing.get_context(how)
        processes = [context.Process(target=use) for _ in range(2)]
        [one.start() for one in processes], [one.join() for one in processes]
    {}
"""


def watched(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "gradspec", "watch", *words]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


def program(folder: Path, text: str) -> str:
    (folder / "train.py").write_text(text, encoding="utf-8")
    return "train.py"


@pytest.mark.slow
@pytest.mark.parametrize(
    "end", [pytest.param(end, marks=() if end == "by itself" else pytest.mark.slow) for end in ENDS]
)
def test_however_a_program_ends_its_code_stays_and_its_gradient_is_judged(tmp_path, end):
    line, code = ENDS[end]
    done = watched(tmp_path, "--", sys.executable, program(tmp_path, WRONG + MAIN.format(line)))
    assert done.returncode == code, done.stderr
    assert done.stdout == ("done\n" if "done" in line else "")
    assert "train.py:Wrong" in done.stderr
    assert "1 audited, 1 wrong in what the program uses" in done.stderr
    assert "off by the factor 1.5" in done.stderr


@pytest.mark.slow
def test_what_was_found_goes_to_files_and_is_found_again(tmp_path):
    words = ("--save-cases", "calls", "--report", "report.txt", "--record", "r.json", "--format", "sarif=s.sarif")
    name = program(tmp_path, WRONG + "if __name__ == '__main__': use()")
    done = watched(tmp_path, *words, "--fail", "--", sys.executable, name)
    assert (done.returncode, done.stdout, done.stderr) == (1, "", "")
    again = next(
        line.partition("Again:")[2].split()
        for line in (tmp_path / "report.txt").read_text().splitlines()
        if "Again:" in line
    )
    repeated = subprocess.run([sys.executable, "-m", *again], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert repeated.returncode == 1, repeated.stderr
    assert "off by the factor 1.5" in repeated.stdout
    assert json.loads((tmp_path / "s.sarif").read_text())["runs"][0]["results"]
    assert {verdict.law for verdict in read_record(tmp_path / "r.json").failures} == {"surrogate"}
    known = watched(tmp_path, "--baseline", "r.json", "--fail", "--", sys.executable, name)
    assert known.returncode == 0
    assert "0 wrong" in known.stderr


ROUNDS = """
import torch
class Rounds(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.round()
    @staticmethod
    def backward(ctx, grad):
        return grad
def same(x):
    return x
if __name__ == "__main__":
    Rounds.apply(torch.randn(3, requires_grad=True)).sum().backward()
"""


@pytest.mark.slow
def test_a_question_comes_with_the_command_that_takes_its_answer(tmp_path):
    name = program(tmp_path, ROUNDS)
    asked = watched(tmp_path, "--", sys.executable, name)
    assert "`gradspec watch --save-cases FOLDER` says its command" in asked.stderr
    asked = watched(tmp_path, "--save-cases", "calls", "--", sys.executable, name)
    _, there, command = asked.stderr.partition("Answer by an option of: ")
    assert there
    words = [sys.executable, "-m", *command.split("\n")[0].split(), "--surrogate", "train.py:same"]
    answered = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert answered.returncode == 0, answered.stderr
    assert "question" not in answered.stdout


@pytest.mark.slow
def test_a_module_that_runs_is_imported_by_its_name_once_it_was_killed(tmp_path):
    (tmp_path / "beside").mkdir()
    (tmp_path / "beside" / "__init__.py").touch()
    (tmp_path / "beside" / "other.py").write_text("FACTOR = 2\n", encoding="utf-8")
    text = f"from .other import FACTOR\n{WRONG}{MAIN.format(ENDS['killed'][0])}"
    (tmp_path / "beside" / "train.py").write_text(text, encoding="utf-8")
    done = watched(tmp_path, "--", sys.executable, "-m", "beside.train")
    assert done.returncode == 137
    assert "1 audited, 1 wrong in what the program uses" in done.stderr


@pytest.mark.slow
def test_a_script_that_does_more_than_define_is_not_imported_to_judge_it(tmp_path):
    name = program(tmp_path, WRONG + "import os\nprint('trained', flush=True)\nuse()\nos._exit(0)\n")
    done = watched(tmp_path, "--", sys.executable, name)
    assert done.stdout == "trained\n"
    assert "not audited: the program ended without a goodbye, and no other process can import it" in done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("end", ["os._exit(0)", "os.execv('/bin/true', ['true'])"])
def test_a_program_of_which_nothing_could_be_judged_does_not_pass(tmp_path, end):
    name = program(tmp_path, f"{WRONG}import os\nfor _ in range(5): use()\n{end}\n")
    done = watched(tmp_path, "--fail", "--", sys.executable, name)
    assert "1 custom gradient ran, 0 audited" in done.stderr
    assert "1 process ended by exec, os._exit or a kill: its calls are counted until the last save" in done.stderr
    assert done.returncode == 1
    assert watched(tmp_path, "--", sys.executable, name).returncode == 0


@pytest.mark.slow
def test_all_calls_of_a_fork_that_exits_are_counted(tmp_path):
    name = program(
        tmp_path,
        f"{WRONG}import os, sys\nif (child := os.fork()) == 0:\n    for _ in range(5): use()\n    sys.exit(0)\n"
        "os.waitpid(child, 0)\n",
    )
    done = watched(tmp_path, "--", sys.executable, name)
    row = next(line.split() for line in done.stderr.splitlines() if line.startswith("train.py:Wrong "))
    assert row[1:3] == ["5", "5"]
    assert "1 audited, 1 wrong" in done.stderr
    assert "last save" not in done.stderr


@pytest.mark.slow
def test_what_ends_the_watch_ends_the_program(tmp_path):
    name = program(
        tmp_path,
        f"{WRONG}if __name__ == '__main__':\n    import time\n    use(); print(1, flush=True); time.sleep(600)",
    )
    command = [sys.executable, "-m", "gradspec", "watch", "--", sys.executable, name]
    running = subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert running.stdout.readline() == "1\n"
    running.terminate()
    _, said = running.communicate(timeout=300)
    assert running.returncode == 143
    assert "1 audited, 1 wrong" in said


@pytest.mark.slow
@pytest.mark.parametrize(
    "last",
    [
        "torch.set_grad_enabled(False)",
        "torch.set_default_device('meta')",
        "os.close(2); sys.stderr = None",
        "sys.stdout = sys.stderr = None",
    ],
)
def test_what_a_program_leaves_behind_hides_no_gradient(tmp_path, last):
    name = program(tmp_path, f"{WRONG}import os, sys\nuse()\nprint('done', flush=True)\n{last}\n")
    done = watched(tmp_path, "--report", "report.txt", "--", sys.executable, name)
    assert (done.returncode, done.stdout) == (0, "done\n")
    assert "1 audited, 1 wrong" in (tmp_path / "report.txt").read_text()


@pytest.mark.slow
def test_a_program_may_leave_its_folder(tmp_path):
    name = program(tmp_path, f"{WRONG}import os, tempfile\nos.chdir(tempfile.mkdtemp())\nos.rmdir(os.getcwd())\nuse()")
    done = watched(tmp_path, "--", sys.executable, name)
    assert "\ntrain.py:Wrong " in done.stderr
    assert "1 audited, 1 wrong" in done.stderr


@pytest.mark.slow
@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("print('none')", "no Python process of the program imported torch, so nothing was seen"),
        ("import torch; print('none')", "no custom gradient was seen"),
    ],
)
def test_nothing_is_seen_in_a_line(tmp_path, text, said):
    done = watched(tmp_path, "--", sys.executable, "-c", text)
    assert (done.returncode, done.stdout) == (0, "none\n")
    assert said in done.stderr
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("--", "no-such-program"), 127, "there is no program 'no-such-program'"),
        (("--nonsense", "--", sys.executable), 2, "there is no option '--nonsense'"),
        (("--format", "json", "--", sys.executable), 2, "write --format json=PATH"),
        (("--save-cases", "full", "--", sys.executable), 2, "holds files already"),
        (("--only", "x"), 2, "Missing argument"),
    ],
)
def test_a_wrong_call_is_refused_in_a_line_before_anything_runs(tmp_path, words, code, said):
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "file").touch()
    done = watched(tmp_path, *words)
    assert done.returncode == code
    assert said in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.slow
def test_nothing_of_a_package_is_said_with_what_else_ran(tmp_path):
    done = watched(tmp_path, "--only", "mine", "--", sys.executable, "-c", f"{WRONG}use()")
    assert done.stderr == (
        "gradspec watch: no custom gradient of what is asked about was seen, and 1 of others: __main__\n"
    )


@pytest.mark.slow
def test_a_hook_of_the_site_runs_too(tmp_path):
    (tmp_path / "sitecustomize.py").write_text("import sys; sys.greeting = 'mine'", encoding="utf-8")
    command = [sys.executable, "-m", "gradspec", "watch", "--", sys.executable, "-c", "import sys; print(sys.greeting)"]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])}
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert done.stdout == "mine\n"


@pytest.mark.slow
def test_a_function_is_audited_beside_a_program_that_does_not_end(tmp_path):
    text = WRONG.replace("def use(*_):", "def use(*_):\n  with torch.autocast('cpu'):")
    loop = "import os, pathlib, time\nfor _ in range(9): use()\n"
    wait = "while not list(pathlib.Path(os.environ['GRADSPEC_WATCH']).glob('*/*/report.json')): time.sleep(0.1)\n"
    name = program(tmp_path, f"{text}{loop}{wait}os._exit(5)\n")
    done = watched(tmp_path, "--audit-at", "4", "--", sys.executable, name)
    assert done.returncode == 5
    assert "1 custom gradient ran, 1 audited, 1 wrong" in done.stderr  # in one process: an audit is none of the program


@pytest.mark.slow
def test_an_audit_of_a_module_takes_the_calls_that_were_kept(tmp_path):
    (tmp_path / "ops.py").write_text(
        WRONG.replace("(ctx, x)", "(ctx, x, options)").replace("3 * grad", "3 * grad, None")
    )
    text = "import torch, ops\nops.Wrong.apply(torch.randn(3, requires_grad=True), {'k': 1}).sum().backward()\n"
    watched(tmp_path, "--save-cases", "kept", "--", sys.executable, program(tmp_path, text))

    def audited(*words: str) -> str:
        command = [sys.executable, "-m", "gradspec", "audit", "--all", "ops", *words]
        return subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False).stdout

    assert "@kept/ops.Wrong-1.safetensors" in audited("--calls", "kept")
    assert "@kept" not in audited()


def pytest_watched(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    (folder / "test_it.py").write_text(WRONG + "def test_a(): use()\ndef test_b(): use()\n", encoding="utf-8")
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        "--rootdir",
        ".",
        "--gradspec-watch",
        *words,
    ]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


@pytest.mark.slow
@pytest.mark.parametrize("words", [(), pytest.param(("-n", "2"), marks=pytest.mark.slow)], ids=["alone", "workers"])
def test_pytest_reports_what_its_tests_ran(tmp_path, words):
    done = pytest_watched(tmp_path, *words)
    assert done.returncode == 0, done.stdout
    assert "2 passed" in done.stdout
    assert "1 audited, 1 wrong in what the program uses" in done.stdout
    row = next(line.split() for line in done.stdout.splitlines() if line.startswith("test_it:Wrong "))
    assert row[1:3] == ["2", "2"]
    assert "called from test_it.py:" in done.stdout
    assert row[-1] == "surrogate"


@pytest.mark.slow
def test_a_function_is_audited_before_its_package_clears_up_behind_the_program(tmp_path):
    (tmp_path / "cached.py").write_text(
        "import atexit\nimport torch\nFACTORS = [3.0]\natexit.register(FACTORS.clear)\n"
        "class Cached(torch.autograd.Function):\n    @staticmethod\n    def forward(ctx, x):\n"
        "        return x * FACTORS[0]\n    @staticmethod\n    def backward(ctx, y_bar):\n"
        "        return 2 * y_bar * FACTORS[0]\n"
    )
    text = "import torch\nimport cached\ncached.Cached.apply(torch.randn(4, requires_grad=True)).sum().backward()\n"
    done = watched(tmp_path, "--", sys.executable, program(tmp_path, text))
    assert "1 audited, 1 wrong in what the program uses" in done.stderr


#: A gradient that is right, and that nothing can differentiate.
FIRST_ORDER = """
import torch
class Squared(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x
    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return 2 * x.detach() * grad
def use(*_):
    Squared.apply(torch.randn(3, requires_grad=True)).sum().backward()
"""


@pytest.mark.slow
@pytest.mark.parametrize("end", ["by itself", "killed"])
def test_what_is_asked_about_in_place_of_what_the_program_uses(tmp_path, end):
    name = program(tmp_path, FIRST_ORDER + MAIN.format(ENDS[end][0]))
    assert "1 audited, 0 wrong in what the program uses" in watched(tmp_path, "--", sys.executable, name).stderr
    done = watched(tmp_path, "--scope", "higher", "--record", "r.json", "--fail", "--", sys.executable, name)
    assert "1 audited, 1 wrong in higher derivatives" in done.stderr
    assert done.returncode == (ENDS[end][1] or 1)
    assert [scope.value for scope in read_record(tmp_path / "r.json").scopes] == ["higher"]


def test_a_scope_that_does_not_exist_is_one_line_before_the_program_runs(tmp_path):
    name = program(tmp_path, "print('ran')")
    for done in (
        watched(tmp_path, "--scope", "higer", "--", sys.executable, name),
        subprocess.run(
            [sys.executable, "-m", "pytest", "-q", "--gradspec-watch", "--gradspec-scope", "higer", "--rootdir", "."],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
        ),
    ):
        assert done.returncode in (2, 4)
        assert "no scope 'higer': did you mean 'higher'?" in done.stderr
        assert "Traceback" not in done.stderr
        assert "ran" not in done.stdout


LAWS = """
import torch
from gradspec import FunctionSpec
from gradspec_pytest import parametrize_with_laws

class Held(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return 2 * x
    @staticmethod
    def backward(ctx, y_bar):
        return 2 * y_bar

SPEC = FunctionSpec(Held.apply, lambda x: 2 * x, name="held", cases=lambda make: [(make(3),)])

@parametrize_with_laws(SPEC, ["vjp", "no_host_read"])
def test_laws(check):
    check()
"""


@pytest.mark.slow
@pytest.mark.parametrize("words", [(), ("-n", "2")], ids=["alone", "workers"])
def test_what_a_law_calls_is_no_call_of_the_tests(tmp_path, words):
    (tmp_path / "test_laws.py").write_text(LAWS, encoding="utf-8")
    done = pytest_watched(tmp_path, *words)
    assert "4 passed" in done.stdout, done.stdout
    assert "1 audited, 1 wrong in what the program uses" in done.stdout
    assert "Held" not in done.stdout.partition("gradspec watch")[2]
    assert "ended by" not in done.stdout
