"""The command `init`: a spec of a function, a test of it and a page, from calls of the function."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from gradspec._registry._laws import select_laws
from gradspec._registry._targets import load_attribute, split
from gradspec.cli._audited import accuracy_option, audited, checked_cases, noise_option, reference_options
from gradspec.cli._prints import printed_once
from gradspec.cli._say import say
from gradspec.cli._shared import (
    Unusable,
    block,
    one_line_errors,
    refuse_unwritable,
    save,
    seed_option,
    time_limit_option,
)
from gradspec.profile import load_profile

if TYPE_CHECKING:
    from gradspec.spec import Accuracy

_TEST = '''"""Hold {name} to the laws that its spec promises: a test for each law and case."""

{paths}from gradspec_pytest import parametrize_with_laws
from {module} import {constant}


@parametrize_with_laws([{constant}])
def test_laws(check):
    check()
'''
_PAGE = """# {name}

```{{gradspec-{kind}}} {name}
```
"""


@click.command(
    epilog=block(
        "Exit code",
        "0  the files are written",
        "2  the arguments cannot be used, no spec can be proposed, or a file is there already; nothing was written",
    )
    + "\n\n"
    + block(
        "Examples",
        "gradspec init my_ops.py:RoundSTE --case '(randn(2, 3),)'",
        "gradspec init my_package.ops:Scale --case '(randn(2, 3), 0.5)' --into specs",
    )
)
@click.argument("target", metavar="MODULE:FUNCTION")
@click.option(
    "--case",
    "cases",
    multiple=True,
    required=True,
    metavar="CALL",
    help="The arguments of a call, as for `gradspec audit`. Repeatable.",
)
@reference_options
@noise_option
@accuracy_option
@click.option(
    "--into",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="FOLDER",
    help="Folder to write to. Default: that of the function's file, or else the working directory.",
)
@click.option("--force", is_flag=True, help="Overwrite existing files.")
@seed_option
@time_limit_option
def init(
    target: str,
    cases: tuple[str, ...],
    reference: str | None,
    surrogate: str | None,
    gradient: str | None,
    noise: tuple[str, ...],
    accuracy: Accuracy | None,
    into: Path | None,
    force: bool,
    seed: int,
    time_limit: float | None,
) -> None:
    """Write a spec, a test and a documentation page for a function, from calls of it.

    The spec promises what `gradspec audit` measures. What cannot be measured is a TODO in it: until you write it, the
    function itself replaces it, and the laws that need it say `not measured`.
    """
    from torch.nn import Module

    from gradspec._audit._imports import constant_of

    with one_line_errors():
        where, name = split(target)
        folder = into or (Path(where).parent if where.endswith(".py") else Path())
        spec, test, page = paths = _paths(name, folder)
        for path in paths:
            refuse_unwritable(path, option="init")
            if path.exists() and not force:
                raise Unusable(f"{path} is there already: --force overwrites it, --into writes elsewhere")
        with printed_once():
            laws, profile = select_laws(()), load_profile("quick", time_limit=time_limit)
            found = audited(
                target,
                checked_cases(cases, seed),
                laws=laws,
                profile=profile,
                seed=seed,
                jobs=None,
                reference=reference,
                surrogate=surrogate,
                gradient=gradient,
                noise=noise,
                accuracy=accuracy,
            )
        if not found.proposal:
            said = [*(verdict.finding.message for verdict in found.report.violations), *found.remarks]
            raise Unusable(f"{target} cannot be judged: {said[-1] if said else 'see `gradspec audit`'}")
        folder.mkdir(parents=True, exist_ok=True)
        kind = "module" if isinstance(load_attribute(target), Module) else "operator" if "::" in name else "function"
        words = {"name": name, "kind": kind, "module": spec.stem, "constant": constant_of(name)}
        home, proposal = _home(where or name.partition("::")[0]), found.proposal
        if home is not None and home != folder.resolve():
            proposal = f"{_path_lines(home, folder, where)}{_of_package(proposal, where, home)}"
        text = f'"""The spec of {name}."""\n\n{proposal}'
        # pytest imports the test of a package from outside of it, and finds nothing that is beside the test.
        is_inside = (folder / "__init__.py").exists()
        words["paths"] = _path_lines(folder.resolve(), folder, spec.name) if is_inside else ""
        for path, content in ((spec, text), (test, _TEST.format(**words)), (page, _PAGE.format(**words))):
            save(content, path, option="init")
            say(f"wrote {path}")
    for remark in found.remarks_of_proposal:
        say(f"\n{remark}")
    if cut_off := {v.law for v in found.report.verdicts if v.finding.is_cut_off}:
        say(f"\nNot measured within the limit, so not promised: {', '.join(sorted(cut_off))}; raise --time-limit")
    first = f"Complete what is marked TODO in {spec}, then" if "TODO" in text else "Now"
    say(f"\n{first}: gradspec check {spec}")


def _home(where: str) -> Path | None:
    """Return the folder from which a module or file is imported; None for what is installed, or has no file."""
    if where.endswith(".py"):
        home = Path(where).resolve().parent
        while (home / "__init__.py").exists():  # a file of a package may import others of it
            home = home.parent
        return home
    top = where.partition(".")[0]
    found = getattr(sys.modules.get(top), "__spec__", None)
    if found is None or not (found.origin or found.submodule_search_locations):
        return None
    asked = f"import importlib.util, sys; sys.exit(importlib.util.find_spec({top!r}) is not None)"
    # Isolated: without the working directory, as any other program finds it.
    if subprocess.run([sys.executable, "-I", "-c", asked], check=False).returncode:
        return None
    places = found.submodule_search_locations
    return Path(next(iter(places)) if places else found.origin).resolve().parent


def _of_package(proposal: str, where: str, home: Path) -> str:
    """Return a proposal that imports a file as what it is from a folder: a module of a package, or one of its own."""
    if not where.endswith(".py"):
        return proposal
    file = Path(where).resolve()
    module = ".".join(file.relative_to(home).with_suffix("").parts)
    text = proposal.replace(f"; keep the spec beside {file.name}", "").replace(
        f"  # keep the spec beside {file.name}", ""
    )
    return re.sub(rf"^(from|import) {re.escape(file.stem)}\b", rf"\1 {module}", text, flags=re.MULTILINE)


def _path_lines(home: Path, folder: Path, what: str) -> str:
    """Return the lines that let a file in a folder import what is in another one."""
    ups, rest = 0, Path(os.path.relpath(home, folder.resolve()))
    while rest.parts[:1] == ("..",):
        ups, rest = ups + 1, Path(*rest.parts[1:])
    place = f"Path(__file__).resolve().parents[{ups}]" + "".join(f' / "{part}"' for part in rest.parts)
    return f"import sys\nfrom pathlib import Path\n\nsys.path.insert(0, str({place}))  # where {what} is\n\n"


def _paths(name: str, folder: Path) -> tuple[Path, Path, Path]:
    """Return the files of the spec, of its test and of its page."""
    from gradspec._audit._imports import stem_of

    stem = stem_of(name)
    return folder / f"{stem}_spec.py", folder / f"test_{stem}_spec.py", folder / f"{stem}.md"
