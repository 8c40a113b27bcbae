"""A call in a file: what comes back, and what is refused."""

from __future__ import annotations

import math

import pytest
import torch

from gradspec import read_case
from gradspec._audit._saved_call import CallError, load_call, save_call


@pytest.fixture
def path(tmp_path):
    return tmp_path / "call.safetensors"


def test_a_call_comes_back_as_it_was(path):
    t = torch.randn(3, 4, dtype=torch.bfloat16).t().requires_grad_()
    plain = [1, None, True, "s", math.inf, 0.1, 1 + 2j, torch.float32, torch.device("cpu"), {"a": (torch.tensor(3),)}]
    z = torch.randn(2, 3, dtype=torch.complex128).t().conj()
    save_call(path, (t, t, plain, torch.empty(0), z), {"k": torch.ones(2)}, of="ours:Name")
    args, kwargs, of = load_call(path)
    assert of == "ours:Name"
    assert torch.equal(args[0], t)
    assert args[0] is args[1]
    assert args[0].requires_grad
    assert args[0].stride() == t.stride()
    assert args[2][:-1] == plain[:-1]
    assert torch.equal(args[2][-1]["a"][0], torch.tensor(3))
    assert args[3].numel() == 0
    assert torch.equal(args[4], z)
    assert args[4].stride() == z.stride()
    assert torch.equal(kwargs["k"], torch.ones(2))


def test_a_case_is_read_from_a_file(path):
    save_call(path, (torch.ones(2), 0.5), {}, of="ours:Name")
    case = read_case(f"@{path}")
    assert case.name == f"@{path}"
    assert case.args[1] == 0.5


def test_an_object_is_not_written(path):
    with pytest.raises(CallError, match="a object cannot be written"):
        save_call(path, (object(),), {}, of="ours:Name")


def _cut(data: bytes) -> bytes:
    return data[:-3]


def _edited(data: bytes) -> bytes:
    return data[:-1] + bytes([data[-1] ^ 1])


def _of_another_kind(data: bytes) -> bytes:
    return b"import torch\n" * 3


@pytest.mark.parametrize(
    ("change", "said"), [(_cut, "was cut off"), (_edited, "was edited"), (_of_another_kind, "is not a saved call")]
)
def test_a_file_that_is_not_whole_is_refused_in_a_line(path, change, said):
    save_call(path, (torch.ones(2),), {}, of="ours:Name")
    path.write_bytes(change(path.read_bytes()))
    with pytest.raises(ValueError, match=said) as raised:
        read_case(f"@{path}")
    assert "\n" not in str(raised.value)


def test_a_file_that_is_not_there_is_refused(tmp_path):
    with pytest.raises(ValueError, match="there is no file"):
        read_case(f"@{tmp_path / 'none'}")


def test_a_safetensors_file_of_somebody_else_is_refused(path):
    from safetensors.torch import save_file

    save_file({"weight": torch.ones(2)}, path)
    with pytest.raises(ValueError, match="holds no call"):
        read_case(f"@{path}")
