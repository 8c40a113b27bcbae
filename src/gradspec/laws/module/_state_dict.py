r"""A published checkpoint loads strictly, and a state taken and loaded gives the same evaluation, bit for bit.

Why it matters: a checkpoint is the result of a training; a renamed key makes it unreadable.

What breaks it: a buffer that is not in the state, a parameter that was renamed, a hook that swallows any key.

Remedy: register everything the output depends on, keep the published names, and drop unused keys by name.
"""

from __future__ import annotations

import io
from collections.abc import Mapping

import torch
from torch import Tensor, nn

from gradspec.law import HOLDS, Finding, Law, ModuleTrial, Status, broken, raised
from gradspec.laws.module.support._build import beside_evaluation, build, evaluate, used
from gradspec.laws.tensor.support._compare import compare_all
from gradspec.spec import StateContract

#: No module has it: loading must refuse it.
STRAY = "no_such_key"


def _check(trial: ModuleTrial) -> Finding:
    donor = used(trial)
    state = donor.state_dict()
    contract = _contract(trial, state)
    if (finding := _judge_keys(state, contract)) is not HOLDS:
        return finding
    checkpoint = _saved({**state, **{key: torch.ones(shape) for key, shape in contract.dropped.items()}})
    given = list(checkpoint)
    module = build(trial, training=False, seed=1)
    try:
        module.load_state_dict(checkpoint, strict=True)
    except RuntimeError as error:
        return raised(error, "loading a published checkpoint")
    if list(checkpoint) != given:
        return broken("loading takes keys out of the dictionary of its caller")
    if wrong := [key for key, value in module.state_dict().items() if not torch.equal(value, state[key])]:
        return broken(f"`{wrong[0]}` is not what was loaded", argument=f"`{wrong[0]}`")
    if trial.case.inputs is not None:
        said = "the same state gives another evaluation: what it depends on is not in the state"
        finding = compare_all(
            trial, "evaluation", evaluate(trial, module), evaluate(trial, donor), is_derivative=False, said=said
        )
        if finding is not HOLDS:
            return beside_evaluation(trial, module, finding)
    if (finding := _judge_strictness(module, state)) is not HOLDS:
        return finding
    return Finding(status=Status.HOLDS, details={"keys": list(state), "dropped": list(contract.dropped)})


def _contract(trial: ModuleTrial, state: Mapping[str, Tensor]) -> StateContract:
    if trial.spec.state is None:
        return StateContract(keys=tuple(state))
    return trial.spec.state(*trial.case.args, **trial.case.kwargs)


def _judge_keys(state: Mapping[str, Tensor], contract: StateContract) -> Finding:
    if missing := [key for key in contract.keys if key not in state]:
        return broken(f"the state has no `{missing[0]}`", got=_few(list(state)), expected=_few(list(contract.keys)))
    if more := [key for key in state if key not in contract.keys]:
        return broken(f"the state holds {len(more)} keys that are not in the contract: {_few(more)}")
    return HOLDS


def _judge_strictness(module: nn.Module, state: Mapping[str, Tensor]) -> Finding:
    wrong = {f"the unknown key `{STRAY}`": {**state, STRAY: torch.ones(1)}}
    if state:
        first = next(iter(state))
        wrong[f"a state without `{first}`"] = {key: value for key, value in state.items() if key != first}
    for what, given in wrong.items():
        try:
            module.load_state_dict(given, strict=True)
        except RuntimeError:
            continue
        return broken(f"loads {what} with strict=True")
    return HOLDS


def _saved(state: Mapping[str, Tensor]) -> dict[str, Tensor]:
    file = io.BytesIO()
    torch.save(dict(state), file)
    file.seek(0)
    loaded: dict[str, Tensor] = torch.load(file, weights_only=True)
    return loaded


def _few(keys: list[str]) -> str:
    return ", ".join(keys[:3]) + (f" and {len(keys) - 3} more" if len(keys) > 3 else "")


STATE_DICT = Law(
    name="state_dict",
    family="modules",
    statement=r"\text{load}(\text{save}(F)) = F",
    check=_check,
    doc=__doc__ or "",
    kinds=("module",),
)
