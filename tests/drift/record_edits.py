"""Edits after which what was measured is not what would be measured: the committed records say so."""

from __future__ import annotations

from drift.edits import Edit, Records
from drift.page_edits import PEER_STATUS, PEERS

CHECK = Records()

RECORD_EDITS = (
    Edit(
        kind="a comparison of all that compares nothing",
        file="src/gradspec/laws/tensor/support/_compare.py",
        old="        if finding is not HOLDS:\n            return replace(finding, likely=why(name)",
        new="        if finding is None:\n            return replace(finding, likely=why(name)",
        check=CHECK,
        says=r"^docs/records/peers\.json: [\d,]+ of [\d,]+ cells of an older source .*: law ",
    ),
    Edit(
        kind="a tolerance a thousand times as wide",
        file="src/gradspec/profile/__init__.py",
        old="rtol: float = 1e-12",
        new="rtol: float = 1e-9",
        check=CHECK,
        says=r"^docs/records/kill_matrix\.json: \d+ of \d+ cells of an older source .*profile",
    ),
    Edit(
        kind="the rounding that a comparison grants a thousand times as wide",
        file="src/gradspec/laws/tensor/support/_compare.py",
        old="        if top.isfinite() and bool((error <= (rtol * size).add_(8 * rounding * top)).all()):",
        new="        if top.isfinite() and bool((error <= (rtol * size).add_(8000 * rounding * top)).all()):",
        check=CHECK,
        says=r"^docs/records/kill_matrix\.json: \d+ of \d+ cells of an older source ",
    ),
    Edit(
        kind="a law taken out of the list",
        file="src/gradspec/laws/tensor/__init__.py",
        old="from gradspec.laws.tensor._cotangent_linearity import COTANGENT_LINEARITY\n",
        new="",
        check=CHECK,
        says=r"^docs/records/kill_matrix\.json: .* of an older source .*law cotangent_linearity, which is gone",
    ),
    Edit(
        kind="a case taken out of a spec",
        file="src/gradspec/functions/_gradient_scaling/_cases.py",
        old='    yield Case(name="factor 0", args=(make(2, 2), 0.0))\n',
        new="",
        check=CHECK,
        says=r"^docs/records/peers\.json: [\d,]+ of [\d,]+ cells of an older source .*: spec torchlogix",
    ),
    Edit(
        kind="fewer directions in a profile",
        file="src/gradspec/profile/quick.toml",
        old='backend = "aot_eager"',
        new='backend = "aot_eager"\ndirections = 1',
        check=CHECK,
        says=r"^docs/records/peers\.json: ([\d,]+) of \1 cells of an older source .*: profile$",
    ),
    Edit(
        kind="a verdict of a published class, by hand",
        file=PEERS,
        old=PEER_STATUS,
        new=r'\1"holds"',
        is_pattern=True,
        check=CHECK,
        says=r"^docs/records/peers\.json: .* has been edited since it was measured",
    ),
    Edit(
        kind="what the laws say of a stranger's function, by hand",
        file="tests/strangers/record.json",
        old=r'"vjp: wrong silently"',
        new='"vjp: waste"',
        is_pattern=True,
        check=CHECK,
        says=r"^tests/strangers/record\.json: .* has been edited since it was measured",
    ),
    Edit(
        kind="the rank of a finding about a stranger's operator, by hand",
        file="tests/strangers/operators/record.json",
        old=r'"rank": "wrong silently"',
        new='"rank": "waste"',
        is_pattern=True,
        check=CHECK,
        says=r"^tests/strangers/operators/record\.json: .* has been edited since it was measured",
    ),
    Edit(
        kind="what an audit missed of a published function, by hand",
        file="tests/lab/audits/published/results.json",
        old=r'"missed"',
        new='"law export"',
        is_pattern=True,
        check=CHECK,
        says=r"^tests/lab/audits/published/results\.json: .* has been edited since it was measured",
    ),
    Edit(
        kind="what is true of a published function, by hand",
        file="tests/lab/audits/published/truth.json",
        old=r'("second": \{\s+"\w+": )"zero"',
        new=r'\1"right"',
        is_pattern=True,
        check=CHECK,
        says=r"^tests/lab/audits/published/truth\.json: .* has been edited since it was measured",
    ),
)
