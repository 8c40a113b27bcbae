"""Wrong edits of words: code within lines, settings, and how much there is to measure with."""

from __future__ import annotations

from drift.edits import Edit, Tests

INLINE = Tests(names=("tests/pages/test_inline_code.py",))
FLOORS = Tests(names=("tests/test_floors.py",))
SETTINGS = Tests(names=("tests/test_settings.py",))
SCALING_CASES = "src/gradspec/functions/_gradient_scaling/_cases.py"

WORD_EDITS = (
    Edit(
        kind="a command in a line",
        file="docs/gallery.md",
        old="`gradspec audit`",
        new="`gradspec inspect`",
        check=INLINE,
        says=r"docs/gallery\.md:\d+: `gradspec inspect`: gradspec has no command 'inspect'",
    ),
    Edit(
        kind="an option in a line",
        file="docs/how-to/read-a-failure.md",
        old="`gradspec check --fail-on refused`",
        new="`gradspec check --fail-at refused`",
        check=INLINE,
        says=r"read-a-failure\.md:\d+: `gradspec check --fail-at refused`: gradspec check has no option --fail-at",
    ),
    Edit(
        kind="a session in a line",
        file="CONTRIBUTING.md",
        old="`nox -s lint types`",
        new="`nox -s lint mypy`",
        check=INLINE,
        says=r"CONTRIBUTING\.md:\d+: `nox -s lint mypy`: noxfile\.py has no session 'mypy'",
    ),
    Edit(
        kind="an option of pytest in a line",
        file="docs/changelog.md",
        old="`pytest --gradspec-record`",
        new="`pytest --gradspec-report`",
        check=INLINE,
        says=r"changelog\.md:\d+: `pytest --gradspec-report`: the plugin has no option --gradspec-report",
    ),
    Edit(
        kind="an extra in a line",
        file="docs/how-to/add-the-extension.md",
        old='`python -m pip install ".[katex]"`',
        new='`python -m pip install ".[latex]"`',
        check=INLINE,
        says=r"add-the-extension\.md:\d+: .*: gradspec has no extra 'latex'",
    ),
    Edit(
        kind="the path of an object in a line",
        file="docs/changelog.md",
        old="`gradspec.read_case`",
        new="`gradspec.parse_case`",
        check=INLINE,
        says=r"changelog\.md:\d+: `gradspec\.parse_case`: there is no such object",
    ),
    Edit(
        kind="the field of a class in a line",
        file="docs/changelog.md",
        old="`FunctionSpec.zero_gradient`",
        new="`FunctionSpec.zero_slope`",
        check=INLINE,
        says=r"changelog\.md:\d+: `FunctionSpec\.zero_slope`: there is no such object",
    ),
    Edit(
        kind="a name in a docstring",
        file="src/gradspec/law.py",
        old="follow. Of functions, `vjp` is among them",
        new="follow. Of functions, `vjpp` is among them",
        check=INLINE,
        says=r"src/gradspec/law\.py, docstring of explained_by: `vjpp`: nothing has that name",
    ),
    Edit(
        kind="fewer cases than there were",
        file=SCALING_CASES,
        old='    yield Case(name="factor 0", args=(make(2, 2), 0.0))\n',
        new="",
        check=FLOORS,
        says=r"cases of function grad_factor: 15, and the floor in tests/floors\.toml is 16",
    ),
    Edit(
        kind="fewer directions than there were",
        file="src/gradspec/profiles/quick.toml",
        old='backend = "aot_eager"',
        new='backend = "aot_eager"\ndirections = 1',
        check=FLOORS,
        says=r"directions of quick: 1, and the floor in tests/floors\.toml is 2",
    ),
    Edit(
        kind="fewer laws than there were",
        file="src/gradspec/laws/tensor/__init__.py",
        old="from gradspec.laws.tensor._cotangent_linearity import COTANGENT_LINEARITY\n",
        new="",
        check=FLOORS,
        says=r"laws of function: 47, and the floor in tests/floors\.toml is 48",
    ),
    Edit(
        kind="fewer documented objects than there were",
        file="src/gradspec/functions/_gradient_scaling/_spec.py",
        old="    documented=(GradFactor, grad_factor),\n",
        new="    documented=(GradFactor,),\n",
        check=FLOORS,
        says=r"examples of function grad_factor: 1, and the floor in tests/floors\.toml is 2",
    ),
    Edit(
        kind="warnings that are no errors any more",
        file="noxfile.py",
        old='BUILD_SITE = ("sphinx-build", "-n", "-W", ',
        new='BUILD_SITE = ("sphinx-build", "-n", ',
        check=SETTINGS,
        says=r"without -n or -W, what is wrong passes",
    ),
    Edit(
        kind="a warning that is silenced",
        file="conf/conf.py",
        old="suppress_warnings: list[str] = []",
        new='suppress_warnings: list[str] = ["gradspec.stale"]',
        check=SETTINGS,
        says=r"conf/conf\.py silences warnings",
    ),
    Edit(
        kind="the range of torch in the README",
        file="README.md",
        old="Python 3.11 or newer and torch 2.11 or newer",
        new="Python 3.11 or newer and torch 2.9 or newer",
        check=SETTINGS,
        says=r"torch>=2\.9",
    ),
)
