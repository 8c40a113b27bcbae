"""A build as a user starts it, of each mini-project: it ends with exit code 0, says nothing, and loads no torch."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from forked import server
from sphinx_ext import test_benchmark, test_plot
from sphinx_ext.handmade import IMPORTED, OF_TORCH, ROOTS, copied

if TYPE_CHECKING:
    from pathlib import Path

#: Those that have no record of their own.
PREPARED = {"test-benchmark": test_benchmark.prepared, "test-plot": test_plot.prepared}
#: At the end of a build, what it has loaded.
LOADED = """

def setup(app):
    import sys
    from pathlib import Path

    app.connect("build-finished", lambda app, error: (Path(app.outdir) / "loaded").write_text("\\n".join(sys.modules)))
"""


@pytest.mark.parametrize("extension", ["gradspec.sphinx_ext", "gradspec_lab.sphinx"])
def test_an_extension_loads_no_torch(extension: str) -> None:
    loaded = server(*IMPORTED).run(["-c", f"import sys, {extension}._setup; print('torch' in sys.modules)"])
    assert (loaded.stdout, loaded.stderr) == ("False\n", "")


@pytest.mark.slow
@pytest.mark.parametrize("root", sorted(path.name for path in ROOTS.iterdir()))
def test_a_build_loads_torch_only_for_a_project_that_imports_it(root: str, tmp_path: Path) -> None:
    project = PREPARED.get(root, lambda folder: copied(root, folder))(tmp_path)
    with (project.source / "conf.py").open("a", encoding="utf-8") as conf:
        conf.write(LOADED)
    built = project.build(cold=True)

    assert (built.returncode, built.warnings) == (0, [])
    loaded = (built.folder / "loaded").read_text(encoding="utf-8").split()
    assert "gradspec.sphinx_ext" in loaded
    assert ("torch" in loaded) == (root in OF_TORCH)
