r"""The operator has a kernel for each device that is promised, and for no other; and one for fake tensors.

A kernel that serves every device, because it calls torch's own operators, counts for those that are promised.

The law asks torch's dispatcher, so it also sees kernels for devices that this machine lacks.

Why it matters: a missing kernel is an error on the first machine that has the device; a missing one for fake tensors is
an error in the first compilation. A kernel for a device that the spec does not name runs without a promise, and no law
judges it.

What breaks it: `device_types="cuda"` although the page says that a CPU works, a gradient that is registered for only
one device, no `register_fake`, `register_kernel("cuda")` without "cuda" in `devices`.

Remedy: register a kernel for the device, `register_fake`, and the gradient with `register_autograd`, which serves all
devices; or take the device out of `devices`, or add one that has a kernel.
"""

from __future__ import annotations

from gradspec.law import HOLDS, Finding, Law, Rank, TrialOf, broken
from gradspec.spec import Case, OperatorSpec
from gradspec.spec._dispatch import gradient_devices, has_fake, has_kernel, kernels, own_devices


def _check(trial: TrialOf[OperatorSpec, Case]) -> Finding:
    overload, found = trial.spec.overload, kernels(trial.spec.overload)
    for device in trial.spec.devices:
        if not has_kernel(overload, device):
            return broken(
                f"no kernel is registered for {device}, which the spec promises",
                got=f"kernels for {', '.join(found) or 'nothing'}",
                rank=Rank.REFUSED,
            )
    if trial.spec.supports.fake and not has_fake(overload):
        return broken(
            "no kernel is registered for fake tensors, with which a compiler traces",
            got=f"kernels for {', '.join(found)}",
            rank=Rank.REFUSED,
            likely="register_fake is missing",
        )
    if (finding := _gradient(trial, found)) is not HOLDS:
        return finding
    undeclared = [device for device in own_devices(overload) if device not in trial.spec.devices]
    if undeclared:
        return broken(
            f"a kernel is registered for {', '.join(undeclared)}, which the spec does not promise",
            got=f"kernels for {', '.join(found)}",
            expected=f"kernels for {', '.join(trial.spec.devices)}",
            rank=Rank.WASTE,
            likely="devices of the spec leaves a device out",
        )
    return HOLDS


def _gradient(trial: TrialOf[OperatorSpec, Case], found: list[str]) -> Finding:
    """Judge the registration of the gradient; what it computes is for other laws."""
    general = {"Autograd", "CompositeImplicitAutograd"} & set(found)
    for device in trial.spec.devices if trial.spec.wrt and not general else ():
        if f"Autograd{device.upper()}" not in found:
            return broken(
                f"no gradient is registered on {device}: a result has none there, and torch says nothing",
                got=f"kernels for {', '.join(found)}",
                rank=Rank.WRONG,
                likely=f"{_registered(trial.spec)}: use register_autograd, which serves every device",
            )
    return HOLDS


def _registered(spec: OperatorSpec) -> str:
    others = gradient_devices(spec.overload)
    return f"one is registered for {', '.join(others)} only" if others else "none is registered for any device"


KERNELS = Law(
    name="kernels",
    family="operators",
    statement=r"\{d : F_d \text{ is registered}\} = D",
    check=_check,
    doc=__doc__ or "",
    kinds=("operator",),
    needs_spec=True,
)
