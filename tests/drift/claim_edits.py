"""Wrong edits of sentences about behaviour: exit codes, defaults, and of which laws or functions something is so."""

from __future__ import annotations

from drift.edits import Edit, Tests

README = Tests(names=("tests/test_readme.py", "-k", "comment or gallery"))
EXITS = Tests(names=("tests/cli/test_exit_codes.py",))
NAMED = Tests(names=("tests/pages/test_named_laws.py",))
MEANS = Tests(names=("tests/functions/test_declared.py", "-k", "means"))

CLAIM_EDITS = (
    Edit(
        kind="how many wrong edits are caught",
        file="docs/explanation/how-far-you-can-trust-this.md",
        old=r"(documentation build alone catches )\d+",
        new=r"\g<1>99",
        is_pattern=True,
        check=Tests(names=("tests/drift/test_drift.py", "-k", "counts_the_edits")),
        says=r"how-far-you-can-trust-this\.md:\d+ counts \('\d+', '99', .*and the edits are \(\d+, \d+, ",
    ),
    Edit(
        kind="the law of a comment in the README",
        file="README.md",
        old="# With the surrogate left out, `vjp` is broken",
        new="# With the surrogate left out, `primal` is broken",
        check=README,
        says=r"README\.md:\d+: without the surrogate vjp breaks, and the comment says primal",
    ),
    Edit(
        kind="what the README says was found",
        file="README.md",
        old="gradients that `torch.export` drops",
        new="gradients that `torch.vmap` drops",
        check=README,
        says=r"README\.md:\d+: torch\.vmap drops no gradient in the gallery; what does: \[.*'torch\.export'",
    ),
    Edit(
        kind="the range of Python in the README",
        file="README.md",
        old="It needs Python 3.11 or newer",
        new="It needs Python 3.10 or newer",
        check=Tests(names=("tests/test_settings.py", "-k", "readme")),
        says=r"README\.md:\d+: 'needs Python 3\.10 or newer', and pyproject\.toml says >=3\.11",
    ),
    Edit(
        kind="an exit code in the help of an option",
        file="src/gradspec/cli/_output.py",
        old="Checks without a verdict always exit with 1.",
        new="Checks without a verdict always exit with 0.",
        check=EXITS,
        says=r"cli/_output\.py:\d+: the help says exit code 0 of inconclusive with --fail-on wrong, and it is 1",
    ),
    Edit(
        kind="an exit code in the help of a command",
        file="src/gradspec/cli/_check.py",
        old='"1  a law that is asked about is broken, inconclusive or vacuous, or something raised"',
        new='"1  a law that is asked about is broken or inconclusive, or something raised"',
        check=EXITS,
        says=r"help of check, exit code 1: 'a law .* is broken or inconclusive, .*' leaves out vacuous",
    ),
    Edit(
        kind="an exit code on a page",
        file="docs/how-to/verify-in-ci.md",
        old="The second command exits with 0 until",
        new="The second command exits with 1 until",
        check=EXITS,
        says=r"docs/how-to/verify-in-ci\.md:\d+: it exits with 0, not with 1",
    ),
    Edit(
        kind="for how many ranks a run fails",
        file="docs/reference/exit-codes.md",
        old=r"\| refused \| 1 \|",
        new="| refused | 0 |",
        is_pattern=True,
        check=EXITS,
        says=r"refused, by default: the page says 0, and it is 1",
    ),
    Edit(
        kind="the default of an option of the plugin",
        file="docs/reference/plugin.md",
        old="Default: `quick`",
        new="Default: `full`",
        check=Tests(names=("tests/pages/test_plugin_page.py",)),
        says=r"docs/reference/plugin\.md:\d+: the default of --gradspec-profile is 'quick', and not 'full'",
    ),
    Edit(
        kind="the laws that a device leaves out",
        file="docs/how-to/run-on-cuda.md",
        old="`batched_cotangent`, `earlier_calls`, `ddp`",
        new="`cotangent_linearity`, `earlier_calls`, `ddp`",
        check=NAMED,
        says=r"run-on-cuda\.md:\d+ names \['cotangent_linearity', .*and it is so of \['batched_cotangent'",
    ),
    Edit(
        kind="what an argument means, beside its docstring",
        file="src/gradspec/nn/_memory_bank/_spec.py",
        old='text="The share of the old row in the new."',
        new='text="The share of the embedding in the new."',
        check=MEANS,
        says=r"LinearAverage, Args: momentum is 'the share of the old row .* the spec linear_average says '.*: embed",
    ),
    Edit(
        kind="what a failure in a record is",
        file="src/gradspec/sphinx_ext/_config.py",
        old="A failure in one of them is a warning.",
        new="A failure in one of them is an error.",
        check=Tests(names=("tests/sphinx_ext/test_divergence.py", "-k", "options_say")),
        says=r"_config\.py:\d+: it says error, and a failure is a warning",
    ),
)
