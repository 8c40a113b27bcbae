"""A copy of the tree, its site built once; edits are made in it, checked as users check, and taken back."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

from drift.edits import Edit, Site, Tests
from gradspec.report import Report, read_record, write_record

ROOT = Path(__file__).parents[2]
#: What the site and the tests are made of.
PARTS = (".ci", "src", "docs", "conf", "tests", "README.md", "CONTRIBUTING.md", "pyproject.toml", "noxfile.py")
RECORDS = "build/records"
#: What `conf.py` says of the records of a build; in the copy each spec has a record of its own.
ONE_RECORD = 'gradspec_records = ["../build/records/site.json"]'


@dataclass(frozen=True)
class Done:
    """How a check ended."""

    returncode: int
    output: str


@dataclass(frozen=True)
class WorkingCopy:
    folder: Path
    #: The checks that have passed on the copy as it is without an edit.
    passed: set[Site | Tests] = field(default_factory=set)

    @classmethod
    def made(cls, folder: Path, record: Path) -> WorkingCopy:
        """Return a copy with a record for each spec of `record`, which was made of this tree."""
        for part in PARTS:
            source = ROOT / part
            if source.is_dir():
                shutil.copytree(source, folder / part, ignore=shutil.ignore_patterns("__pycache__"))
            else:
                shutil.copy2(source, folder / part)
        whole = read_record(record)
        for name in whole.sheets:
            write_record(_alone(whole, name), folder / RECORDS / f"{name}.json")
        conf = folder / "conf" / "conf.py"
        text = conf.read_text(encoding="utf-8")
        assert text.count(ONE_RECORD) == 1, f"conf.py says no longer {ONE_RECORD!r}"
        each = [f"../{RECORDS}/{name}.json" for name in whole.sheets]
        conf.write_text(text.replace(ONE_RECORD, f"gradspec_records = {each!r}"), encoding="utf-8")
        return cls(folder)

    @contextmanager
    def edited(self, edit: Edit) -> Iterator[None]:
        """Make an edit, and take it back, and with it every record that was made anew."""
        path, records = self.folder / edit.file, self.folder / RECORDS
        original, kept = path.read_bytes(), self.folder / "build" / "kept"
        shutil.copytree(records, kept)
        try:
            if edit.new is None:
                path.unlink()
            else:
                path.write_text(edit.applied(original.decode()), encoding="utf-8")
            yield
        finally:
            path.write_bytes(original)
            for record in kept.iterdir():
                again = records / record.name
                if not again.exists() or record.read_bytes() != again.read_bytes():
                    shutil.copy(record, records / record.name)
            shutil.rmtree(kept)

    def run(self, check: Site | Tests) -> Done:
        """Run a check on the copy as it stands."""
        if isinstance(check, Tests):
            return self._python("-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "-p", "no:xdist", *check.names)
        laws = [word for law in check.laws for word in ("--law", law)]
        said = []
        for path in check.specs:
            record = f"{RECORDS}/{self._names[path]}.json"
            command = "from gradspec.cli import main; main()"
            # As the record was made: of another profile it would be a report of its own, and pages show the first.
            how = ("--record", record, "--exit-zero")
            done = self._python("-c", command, "check", path, *how, *laws)
            said.append(done.output)
            if done.returncode:  # a spec that refuses to be made: there is nothing to build
                return Done(1, "".join(said))
        options = ["-q", "-n", "-W", "-b", check.builder, "-c", "conf", "-d", "build/doctrees"]
        done = self._python("-m", "sphinx", *options, "docs", f"build/{check.builder}")
        return Done(done.returncode, "".join([*said, done.output]))

    def passes_unedited(self, check: Site | Tests) -> Done:
        """Run a check on the copy without an edit, once for every edit that it judges."""
        if check in self.passed:
            return Done(0, "")
        # The whole site is built once, for the first edit that a build must catch: every other build is incremental.
        if isinstance(check, Site) and check != Site() and (built := self.passes_unedited(Site())).returncode:
            return built
        kept = {path: path.read_bytes() for path in (self.folder / RECORDS).iterdir()}
        done = self.run(check)
        for path, data in kept.items():
            if path.read_bytes() != data:
                path.write_bytes(data)
        if done.returncode == 0:
            self.passed.add(check)
        return done

    @cached_property
    def _names(self) -> dict[str, str]:
        """The name of each spec by the path that `gradspec check` takes."""
        records = (read_record(path) for path in (self.folder / RECORDS).iterdir())
        return {sheet["path"]: name for record in records for name, sheet in record.sheets.items() if "path" in sheet}

    def _python(self, *words: str) -> Done:
        # No byte code: an edit of the same length within a second would not be seen.
        env = {**os.environ, "PYTHONPATH": str(self.folder / "src"), "PYTHONDONTWRITEBYTECODE": "1", "NO_COLOR": "1"}
        for name in [name for name in env if name.startswith(("PYTEST_", "GRADSPEC_"))]:
            del env[name]
        done = subprocess.run(
            [sys.executable, *words],
            cwd=self.folder,
            env=env,
            capture_output=True,
            text=True,
            check=False,
            timeout=3600,
        )
        return Done(done.returncode, done.stdout + done.stderr)


def _alone(whole: Report, name: str) -> Report:
    """Return the part of a record that is about one spec."""
    return replace(
        whole,
        sheets={name: whole.sheets[name]},
        sources={key: s for key, s in whole.sources.items() if key == f"spec {name}" or not key.startswith("spec ")},
        verdicts=whole.of(spec=name),
    )
