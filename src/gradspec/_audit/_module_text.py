"""A spec of a module as Python text: an instance was audited, and copies of it are what the spec is of."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gradspec._audit._case_text import argument_text, case_text

if TYPE_CHECKING:
    from gradspec._audit._proposal import Proposal
    from gradspec.spec import Case


def module_text(proposal: Proposal) -> str:
    """Return the text of a `ModuleSpec`."""
    calls = [_case(proposal, case) for case in proposal.cases]
    wrt = tuple(name for name in proposal.spec.wrt if name not in proposal.state)
    read = ["read_case"] if "read_case(" in "".join(calls) else []
    return "\n".join(
        [
            "from copy import deepcopy",
            "",
            *(["import torch"] if "torch." in "".join(calls) else []),
            f"from gradspec import {', '.join(['ModuleCase', 'ModuleSpec', *read])}",
            *proposal.imports(),
            "",
            "",
            "def cases(make):",
            *(f"    # TODO: {why}" for why in proposal.inexact),
            *(f"    yield {call}" for call in calls),
            "",
            "",
            *(f"# TODO: {todo}" for todo in proposal.todos),
            f"{proposal.constant} = ModuleSpec(",
            f"    name={proposal.spec.name!r},",
            f"    module=lambda: deepcopy({proposal.target.name}),",
            "    cases=cases,",
            f"    wrt={wrt!r},",
            ")",
            "",
        ]
    )


def _case(proposal: Proposal, case: Case) -> str:
    if case.name in proposal.written:
        text = case_text(case, proposal.written, seed=proposal.seed, dtype=proposal.dtype)
        return f"ModuleCase(name={case.name!r}, args=(), inputs={text}.args)"
    return f"ModuleCase(name={case.name!r}, args=(), inputs={argument_text(case.args)})"
