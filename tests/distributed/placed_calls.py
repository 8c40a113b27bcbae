"""The law `sharded` on real ranks: what it finds of each case of a function."""

from __future__ import annotations

from torch.distributed.device_mesh import DeviceMesh

from gradspec.law import TrialOf, shown
from gradspec.laws.tensor._sharded import judge_placements
from gradspec.laws.tensor.support._call import Inputs
from gradspec.laws.tensor.support._placed_call import places_in
from gradspec.laws.tensor.support._ranks import off_ranks
from gradspec.profile import load_profile
from gradspec.spec import FunctionSpec
from gradspec.spec._maker import Maker
from gradspec_lab.specimens import DISEASED, HONEST


def spec_of(name: str) -> FunctionSpec:
    """Return a specimen that declares placements."""
    found = DISEASED[name].spec if name in DISEASED else next(spec for spec in HONEST if spec.name == name)
    assert isinstance(found, FunctionSpec)
    return found


def found_on(mesh: DeviceMesh, name: str) -> dict[str, tuple[str, str]]:
    """Return what this rank finds of each case that can be placed, in each declared way: the status and the message."""
    spec, found = spec_of(name), {}
    with off_ranks():
        cases = list(spec.cases(Maker(0, "cpu")))
    for case in cases:
        trial = TrialOf(spec=spec, case=case, profile=load_profile("quick"), seed=0)
        for number, way in enumerate(spec.placements):
            if places_in(Inputs.of(trial), way):
                try:
                    finding = judge_placements(trial, way, mesh)
                    said = str(finding.status), finding.message
                except RuntimeError as error:  # run_check makes a finding of it
                    said = "broken", shown(error)
                found[f"{case.name}, {number}"] = said
    return found
