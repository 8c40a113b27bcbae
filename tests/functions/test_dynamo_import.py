"""Importing a function leaves Dynamo, which takes seconds to import, to the first compiled region.

Each process below imports or compiles in an order of its own: what torch has imported cannot be taken back.
"""

from __future__ import annotations

import subprocess
import sys

import pytest
import torch

from gradspec.functions import GradFactor

pytestmark = pytest.mark.slow

PRELUDE = """
import os
import sys
import threading

import torch


def has_dynamo():
    return "torch._dynamo" in sys.modules


def gradients():
    from gradspec.functions import GradFactor

    def loss(x):
        return GradFactor.apply(x, 3.0).sum()

    def compiled(function):
        return torch.compile(function, fullgraph=True, backend="aot_eager")

    x = torch.ones(2, requires_grad=True)
    compiled(loss)(x).backward()
    return x.grad.tolist(), compiled(torch.func.grad(loss))(torch.ones(2)).tolist()


def loaded_gradient(path):
    x = torch.ones(2, requires_grad=True)
    torch.export.load(path).module()(x).sum().backward()
    return x.grad.tolist()


"""
IMPORT_US_FIRST = """
before = {name.partition(".")[0] for name in sys.modules} | sys.stdlib_module_names
import gradspec.nn
from gradspec.functions import GradFactor, ShakeShake

print("others", sorted({name.partition(".")[0] for name in sys.modules} - before))
x = torch.ones(2, requires_grad=True)
(GradFactor.apply(x, 3.0) + ShakeShake.apply(x, x)).sum().backward()
print("Dynamo", has_dynamo())
sys.stdout.flush()
if not (child := os.fork()):
    torch.set_num_threads(1)
    print("child", *gradients())
    sys.stdout.flush()
    os._exit(0)
os.waitpid(child, 0)
print("Dynamo", has_dynamo())
print("loaded", loaded_gradient(sys.argv[1]))
print("parent", *gradients())
"""
COMPILE_FIRST = """
print("compiled", torch.compile(lambda x: 2 * x, fullgraph=True, backend="aot_eager")(torch.ones(2)).tolist())
print("loaded", loaded_gradient(sys.argv[1]), "gradspec" in sys.modules)
print("then", *gradients())
"""
IMPORT_US_WHILE_A_THREAD_IMPORTS_DYNAMO = """
def importing_dynamo():
    import torch._dynamo


thread = threading.Thread(target=importing_dynamo)
thread.start()
while not has_dynamo():
    pass
print("imported", hasattr(sys.modules["torch._dynamo"], "allow_in_graph"))
print("main", *gradients())
thread.join()
"""
RIGHT = "[3.0, 3.0] [3.0, 3.0]"


@pytest.fixture(scope="module")
def exported(tmp_path_factory):
    class Scaling(torch.nn.Module):
        def forward(self, x):
            return GradFactor.apply(x, 3.0)

    path = tmp_path_factory.mktemp("exported") / "scaling.pt2"
    torch.export.save(torch.export.export(Scaling(), (torch.ones(2),)), path)
    return path


def lines(script, *arguments):
    command = [sys.executable, "-W", "ignore", "-c", PRELUDE + script, *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=200, check=False)
    assert not done.returncode, done.stderr
    return done.stdout.splitlines()


def test_a_process_that_imports_us_first(exported):
    assert lines(IMPORT_US_FIRST, exported) == [
        "others ['gradspec', 'wrapt']",
        "Dynamo False",
        f"child {RIGHT}",
        "Dynamo False",
        "loaded [3.0, 3.0]",
        f"parent {RIGHT}",
    ]


def test_a_process_that_compiles_before_it_imports_us(exported):
    assert lines(COMPILE_FIRST, exported) == ["compiled [2.0, 2.0]", "loaded [3.0, 3.0] False", f"then {RIGHT}"]


def test_a_process_that_imports_us_while_a_thread_imports_dynamo():
    assert lines(IMPORT_US_WHILE_A_THREAD_IMPORTS_DYNAMO) == ["imported False", f"main {RIGHT}"]
