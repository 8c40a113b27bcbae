"""Reject a run before its first check if its results would be misleading or its names ambiguous."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from gradspec._one_line import name_of, visible
from gradspec.law import Law
from gradspec.laws import LAWS
from gradspec.profile import Profile, ProfileError
from gradspec.spec import Spec

#: Backends that every torch has; for the names of others the compiler must be imported.
_BACKENDS = ("aot_eager", "eager", "inductor")


def check_profile(profile: Profile) -> None:
    """Refuse what torch would refuse in every check, where it would read as a verdict."""
    if profile.device.partition(":")[0] not in ("cpu", "cuda"):
        raise ProfileError(f"profile {profile.name!r} has the device {profile.device!r}: choose cpu or cuda")
    _check_device(profile)
    if profile.backend not in _BACKENDS:
        import torch._dynamo

        known = torch._dynamo.list_backends(exclude_tags=())
        if profile.backend not in known:
            raise ProfileError(
                f"profile {profile.name!r} has the backend {profile.backend!r}: torch.compile knows {', '.join(known)}"
            )


def _check_device(profile: Profile) -> None:
    kind, _, number = profile.device.partition(":")
    if kind == "cpu":
        return
    import torch

    said = f"profile {profile.name!r} with the device {profile.device!r} needs a CUDA device"
    if not torch.cuda.is_available():
        raise ProfileError(f"{said}, and torch finds none: choose the device cpu")
    if number and not (number.isdecimal() and int(number) < torch.cuda.device_count()):
        raise ProfileError(f"{said} of this number, and torch finds {torch.cuda.device_count()}, from cuda:0 on")


def check_waivers(spec: Spec, laws: Sequence[Law], subjects: set[str]) -> None:
    known = {law.name for law in (*LAWS, *laws)}
    for waiver in spec.waivers:
        if waiver.law not in known:
            raise ValueError(f"spec {spec.name!r} waives the unknown law {waiver.law!r}")
        if not waiver.reason.strip():
            raise ValueError(f"spec {spec.name!r} waives {waiver.law!r} without a reason")
        if waiver.case not in subjects:
            raise ValueError(f"spec {spec.name!r} waives {waiver.law!r} on the unknown case {waiver.case!r}")


def check_specs(specs: object) -> None:
    """Refuse anything but a sequence of specs."""
    if isinstance(specs, Spec) or not isinstance(specs, Iterable):
        raise TypeError(f"specs are {_named(specs)}, and not a list of them: write [{_named(specs)}]")
    for spec in specs:
        if not isinstance(spec, Spec):
            raise TypeError(f"{_named(spec)} is not a spec: write a FunctionSpec of it, or call gradspec.audit")


def _named(value: object) -> str:
    return str(getattr(value, "__name__", None) or getattr(value, "name", None) or visible(repr(value))[:80])


def check_names(whose: str, names: Sequence[str]) -> None:
    """Refuse names that a terminal or a page would show as others, or that command a CI log."""
    for name in names:
        if visible(name) != name:
            raise ValueError(
                f"the name of {whose} is {visible(name)!r}, with characters that nobody sees: leave them out"
            )
        if name_of(name) != name:
            raise ValueError(f"the name of {whose} is {name_of(name)!r}: write it in one line, without `::` before it")
