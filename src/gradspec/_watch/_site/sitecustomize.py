"""Python imports this first in a program that is watched: the watch begins, and then the program's own site hook."""

import importlib.machinery
import importlib.util
import os
import sys

_here = os.path.dirname(os.path.abspath(__file__))  # noqa: PTH100, PTH120  # nothing is imported that need not be
_paths = [path for path in sys.path if os.path.abspath(path or ".") != _here]  # noqa: PTH100
sys.path[:] = _paths
_next = importlib.machinery.PathFinder.find_spec("sitecustomize", _paths)
if _next is not None and _next.loader is not None:
    _module = importlib.util.module_from_spec(_next)
    sys.modules["sitecustomize"] = _module
    _next.loader.exec_module(_module)
try:
    from gradspec._watch._begin import begin

    begin()
except Exception as _error:  # the program must not notice
    _folder = os.environ.get("GRADSPEC_WATCH")
    if _folder:
        with open(os.path.join(_folder, f"trouble-{os.getpid()}.txt"), "w") as _file:  # noqa: PTH118, PTH123
            _file.write(f"{sys.executable} is not watched: {type(_error).__name__}: {_error}")
