"""What the shims make Triton's interpreter do: bfloat16 as a GPU computes it, and float arguments as float32."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = """
from gradspec_lab.kernels._interpreter import prepare
prepare()
import torch, triton, triton.language as tl

@triton.jit
def kernel(x, y, out, total, scale, N: tl.constexpr):
    i = tl.arange(0, N)
    a, b = tl.load(x + i), tl.load(y + i)
    tl.store(out + i, a * b - b)
    tl.store(total + i, tl.load(x + i).to(tl.float32) * scale.to(tl.float32) + tl.max(a, 0))

x, y = (torch.randn(64, generator=torch.Generator().manual_seed(i)).bfloat16() for i in range(2))
out, total = torch.empty(64, dtype=torch.bfloat16), torch.empty(64)
kernel[(1,)](x, y, out, total, 0.1, N=64)
assert torch.equal(out, x * y - y), (out, x * y - y)
assert torch.equal(total, x.float() * torch.tensor(0.1) + x.max()), total
"""


def test_bfloat16_and_float_arguments(tmp_path: Path) -> None:
    pytest.importorskip("triton")
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
