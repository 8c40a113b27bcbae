"""`gradspec.text` needs nothing but the standard library."""

from __future__ import annotations

import subprocess
import sys

PROBE = """
import sys

class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] not in {*sys.stdlib_module_names, "gradspec"}:
            raise ImportError(f"{name} is blocked")

sys.meta_path.insert(0, Blocked())
before = set(sys.modules)
import pkgutil, importlib, gradspec.text
for module in pkgutil.walk_packages(gradspec.text.__path__, "gradspec.text."):
    importlib.import_module(module.name)
x = gradspec.text.Variable("a", requires_grad=True)
(x + "b").backward(gradspec.text.Variable("g"), max_concurrency=2)
third = {name.partition(".")[0] for name in set(sys.modules) - before} - {*sys.stdlib_module_names, "gradspec"}
print(x.grad.data, sorted(third))
"""


def test_every_module_imports_with_all_other_packages_blocked() -> None:
    done = subprocess.run([sys.executable, "-c", PROBE], capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("g []\n", "")
