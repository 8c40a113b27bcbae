"""A report as a badge: JSON for the endpoint of shields.io, which draws it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from gradspec.law import Status
from gradspec.render._text import counts

if TYPE_CHECKING:
    from gradspec.findings import Judgement


def badge(judgement: Judgement) -> str:
    """Return the badge: how many findings there are, or, if there is none, how many checks hold."""
    held = counts(judgement.report.verdicts).get(Status.HOLDS, 0)
    found = sum(judged.is_asked and not judged.is_question for judged in judgement.findings)
    message = f"{found} finding{'s' * (found != 1)}" if found else f"{held:,} checks hold"
    color = "red" if judgement.fails else "yellow" if found else "brightgreen" if held else "lightgrey"
    shown = {"schemaVersion": 1, "label": "gradspec", "message": message, "color": color}
    return json.dumps(shown, ensure_ascii=False) + "\n"
