"""What a program that has used CUDA hands over: a function made by a call, an object of a call, a kernel of Triton."""

import subprocess
import sys
import threading
from types import ModuleType

import pytest
import torch

from gradspec._watch._handed import hand_over, taken_over, why_not_handed
from gradspec._watch._importing import modules_of_the_program, registered
from gradspec._watch._seen import Seen

PROGRAM = """
import torch
THREE = 3
def times(k):
    class Times(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, net):
            return 2 * net(x)
        @staticmethod
        def backward(ctx, grad):
            return k * THREE * grad, None
    return Times
torch.cuda.is_initialized = lambda: True  # as once CUDA is in use
Times = times(1.0)
Times.apply(torch.randn(3, requires_grad=True), torch.nn.Identity()).sum().backward()
print("trained")
"""


def local(factor):
    class Local(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return factor * x

        @staticmethod
        def backward(ctx, grad):
            return factor * grad

    return Local


@pytest.mark.slow
def test_what_no_process_can_import_is_audited_once_cuda_is_in_use(tmp_path):
    (tmp_path / "train.py").write_text(PROGRAM, encoding="utf-8")
    command = [sys.executable, "-m", "gradspec", "watch", "--", sys.executable, "train.py"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "trained\n")
    assert "1 audited, 1 wrong" in done.stderr
    assert "off by the factor 1.5" in done.stderr


def test_a_function_that_is_made_by_a_call_is_handed_over_with_its_calls(tmp_path):
    seen = Seen(key="local", target=local(3))
    seen.called((torch.ones(2),), {})
    assert hand_over(seen, tmp_path)
    target, (call,) = taken_over(tmp_path)
    assert target.apply(*call.args).tolist() == [3, 3]


def test_what_cannot_be_pickled_says_why_and_is_no_file(tmp_path):
    assert not hand_over(Seen(key="local", target=local(threading.Lock())), tmp_path)
    assert why_not_handed(tmp_path).startswith("the program cannot hand it over: TypeError: cannot pickle")
    assert taken_over(tmp_path) is None


def test_a_kernel_of_triton_is_made_again(tmp_path, monkeypatch):
    class JITFunction:
        def __init__(self, fn, version=None, noinline=None):
            self.fn, self.version, self.noinline = fn, version, noinline
            self.lock = threading.RLock()

    triton = ModuleType("triton.runtime.jit")
    triton.JITFunction = JITFunction
    monkeypatch.setitem(sys.modules, "triton.runtime.jit", triton)
    kernel = JITFunction(lambda x: 5 * x, noinline=True)
    assert hand_over(Seen(key="local", target=local(kernel)), tmp_path)
    target, _ = taken_over(tmp_path)
    (cell,) = target.forward.__closure__
    assert (cell.cell_contents.fn(2), cell.cell_contents.noinline) == (10, True)


REGISTERS = """
import torch

@torch.library.custom_op("handed_to::twice", mutates_args=())
def twice(x: torch.Tensor) -> torch.Tensor:
    return 2 * x
"""


def test_an_operator_is_found_by_what_the_program_has_imported(tmp_path, monkeypatch):
    (tmp_path / "registers_twice.py").write_text(REGISTERS, encoding="utf-8")
    (tmp_path / "raises.py").write_text("raise RuntimeError", encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    assert {"pytest", "registers_twice"} & set(modules_of_the_program()) == {"pytest"}
    found = registered("handed_to::twice", ["raises", "registers_twice", "is_not_reached"])
    assert found(torch.ones(2)).tolist() == [2, 2]
    assert {"is_not_reached", "os", "torch.nn"}.isdisjoint(modules_of_the_program())
    with pytest.raises(ValueError, match="there is no operator handed_to::thrice"):
        registered("handed_to::thrice", [])
