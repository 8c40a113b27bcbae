"""Wrong edits of pages, of records and of what pages link to."""

from __future__ import annotations

from drift.edits import Edit, Site, Tests

FACTOR_PAGE = "docs/functions/grad_factor.md"
BANK_PAGE = "docs/functions/linear_average_op.md"
DIGITS = "docs/tutorial/shake_digits.md"
BLOCKS = Tests(names=("tests/pages/test_blocks.py",))
PEERS = "docs/records/peers.json"

SPEC_KEY = r'("spec grad_factor": \{[^}]*"key": ")\w+'
PEER_STATUS = (
    r'("spec": "torchlogix\.functional\.GradFactor",\s+"law": "vmap",\s+"case": "factor 0\.1",[^}]*?"status": )"\w+"'
)

PAGE_EDITS = (
    Edit(
        kind="the key of a record",
        file="build/records/grad_factor.json",
        old=SPEC_KEY,
        new=r"\g<1>0123456789abcdef",
        is_pattern=True,
        is_measured=True,
        check=Site(),
        says=r"grad_factor\.md:\d+: .*source of spec grad_factor has changed since .*gradspec\.stale",
    ),
    Edit(
        kind="the key of a record, by hand",
        file="build/records/grad_factor.json",
        old=SPEC_KEY,
        new=r"\g<1>0123456789abcdef",
        is_pattern=True,
        check=Site(),
        says=r"grad_factor\.json has been edited since it was measured .*gradspec\.record",
    ),
    Edit(
        kind="a record of an interrupted run",
        file="build/records/grad_factor.json",
        old=r'"request": \{[^}]*\}',
        new='"request": {"interrupted": true}',
        is_pattern=True,
        is_measured=True,
        check=Site(),
        says=r"grad_factor\.json is of a run that was interrupted: .*gradspec\.record",
    ),
    Edit(
        kind="a record that is gone",
        file="build/records/grad_factor.json",
        old="",
        new=None,
        check=Site(),
        says=r"there is no record \S*grad_factor\.json: make it with .*gradspec\.record",
    ),
    Edit(
        kind="a difference that is none any more",
        file=PEERS,
        old=PEER_STATUS,
        new=r'\1"holds"',
        is_pattern=True,
        is_measured=True,
        check=Site(),
        says=r"grad_factor\.md:\d+: .*torchlogix\.functional\.GradFactor no longer differs: .*law vmap holds",
    ),
    Edit(
        kind="a verdict, by hand",
        file=PEERS,
        old=PEER_STATUS,
        new=r'\1"holds"',
        is_pattern=True,
        check=Site(),
        says=r"peers\.json has been edited since it was measured .*gradspec\.record",
    ),
    Edit(
        kind="a kill, by hand",
        file="docs/records/kill_matrix.json",
        old=r'("sort": "diseased",[^\n]*?"killed_by": \["\w+)"',
        new=r'\1", "value"',
        is_pattern=True,
        check=Site(),
        says=r"kill-matrix\.md:\d+: .*kill_matrix\.json has been edited since it was measured .*gradspec\.record",
    ),
    Edit(
        kind="the number of a benchmark",
        file="docs/records/benchmarks/gradient_scaling.json",
        old=r'("median_ms": \{\s+"GradFactor": )[\d.]+',
        new=r"\g<1>0.001",
        is_pattern=True,
        check=Site(),
        says=r"benchmarks\.md:\d+: .*gradient_scaling\.json has been edited since it was measured",
    ),
    Edit(
        kind="a number in a sentence",
        file=DIGITS,
        old="settings.epochs`",
        new="settings.epoch`",
        check=Site(),
        says=r"shake_digits\.md:\d+: .*there is no 'epoch' in settings .*gradspec\.unknown",
    ),
    Edit(
        kind="a figure",
        file=DIGITS,
        old=r"(\{gradspec-curves\} \S+ )\w+",
        new=r"\1no_such_figure",
        is_pattern=True,
        check=Site(),
        says=r"shake_digits\.md:\d+: .*it holds no figure 'no_such_figure' \(it holds: .*gradspec\.unknown",
    ),
    Edit(
        kind="the number of an experiment",
        file="docs/records/examples/shake_digits.json",
        old=r'("mean": )[\d.]+',
        new=r"\g<1>0.000001",
        is_pattern=True,
        check=Site(),
        says=r"shake_digits\.md:\d+: .*shake_digits\.json has been edited since it was measured",
    ),
    Edit(
        kind="a page of a function that is deleted",
        file="docs/functions/shake_shake.md",
        old="",
        new=None,
        check=Site(),
        says=r"function 'shake_shake' is in the record of this build and on no page: .*gradspec\.undocumented",
    ),
    Edit(
        kind="the folder of the pages of laws",
        file="conf/conf.py",
        old='gradspec_law_pages = "laws"\n',
        new="",
        check=Site(),
        says=r"laws/index\.md:\d+: .*the option `toctree` needs gradspec_law_pages",
    ),
    Edit(
        kind="a page that is not in the index",
        file="docs/laws/index.md",
        old="\nkill-matrix\n",
        new="\n",
        check=Site(),
        says=r"laws/kill-matrix\.md: WARNING: document isn't included in any toctree",
    ),
    Edit(
        kind="a cross reference",
        file=FACTOR_PAGE,
        old="](../explanation/the-function-protocol.md)",
        new="](../explanation/the-protocol.md)",
        check=Site(),
        says=r"grad_factor\.md:\d+: WARNING: .*the-protocol\.md",
    ),
    Edit(
        kind="a member that does not exist",
        file=FACTOR_PAGE,
        old=".. automethod:: GradFactor.jvp",
        new=".. automethod:: GradFactor.forward_mode",
        check=Site(),
        says=r"failed to import 'GradFactor\.forward_mode' from module 'gradspec\.functions'",
    ),
    Edit(
        kind="the name of a function in a directive",
        file=FACTOR_PAGE,
        old="{gradspec-function} grad_factor",
        new="{gradspec-function} grad_faktor",
        check=Site(),
        says=r"grad_factor\.md:\d+: .*no record of this build holds the function 'grad_faktor' .*gradspec\.unknown",
    ),
    Edit(
        kind="a formula that cannot be read",
        file=BANK_PAGE,
        old=r"$$m_i \leftarrow \frac{\mu\, m_i",
        new=r"$$m_i \leftarrow \fraction{\mu\, m_i",
        check=Site(builder="html"),
        says=r"linear_average_op\.md.*KaTeX cannot read the formula .*gradspec\.math",
    ),
    Edit(
        kind="what a page prints",
        file="docs/explanation/why-a-backward-may-not-be-the-derivative.md",
        old="tensor([1., 1.], dtype=torch.float64)",
        new="tensor([2., 2.], dtype=torch.float64)",
        check=Tests(names=("tests/pages/test_pages.py", "-k", "why-a-backward")),
        says=r"why-a-backward[\s\S]*Expected:\nE?[\s+]*tensor\(\[2\., 2\.\]",
    ),
    Edit(
        kind="a count that a page states",
        file=BANK_PAGE,
        old="| forward, then backward twice over the retained graph | 1 |",
        new="| forward, then backward twice over the retained graph | 2 |",
        check=Tests(names=("tests/functions/test_linear_average_op.py", "-k", "retained_graph or page or moves")),
        says=r"forward, then backward twice over the retained graph",
    ),
    Edit(
        kind="a code block that nobody runs",
        file=FACTOR_PAGE,
        old="## In-place operations\n",
        new="## In-place operations\n\n```pycon\n>>> GradFactor.apply(x, 0.1)\n```\n",
        check=BLOCKS,
        says=r"functions/grad_factor\.md:\d+: nobody runs a block of the kind 'pycon'",
    ),
    Edit(
        kind="a command",
        file="docs/how-to/add-the-extension.md",
        old="gradspec check yourpackage.functions --record build/record.json",
        new="gradspec check gradspec.functions --recrod build/record.json",
        check=BLOCKS,
        says=r"add-the-extension\.md:\d+: .*No such option.*--recrod",
    ),
)
