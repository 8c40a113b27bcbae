"""For which dispatch keys an operator has a kernel, as torch's dispatcher says it."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from gradspec.spec._schema import named

#: The keys that an author registers for, by what they are for.
KEYS = {
    "CPU": "cpu",
    "CUDA": "cuda",
    "Meta": "fake tensors",
    "CompositeExplicitAutograd": "every device",
    "CompositeImplicitAutograd": "every device, and its gradient",
    "Autograd": "the gradient",
    "AutogradCPU": "the gradient on cpu",
    "AutogradCUDA": "the gradient on cuda",
    "AutocastCPU": "autocast on cpu",
    "AutocastCUDA": "autocast on cuda",
    "FuncTorchBatched": "vmap",
}

#: The types of device that torch has a name for, each with its dispatch key.
DEVICES = {
    "cpu": "CPU",
    "cuda": "CUDA",
    "mps": "MPS",
    "xpu": "XPU",
    "xla": "XLA",
    "hpu": "HPU",
    "mtia": "MTIA",
    "privateuseone": "PrivateUse1",
}


def kernels(overload: Any) -> list[str]:
    """Return the keys of `KEYS` for which a kernel is registered, those that torch registers in Python among them."""
    import torch

    found = [key for key in KEYS if torch._C._dispatch_has_kernel_for_dispatch_key(overload.name(), key)]
    # `custom_op` registers a kernel for fake tensors that raises until there is another.
    defined = torch._library.custom_ops.OPDEFS.get(named(overload))
    fake = torch._library.simple_registry.singleton.find(named(overload)).fake_impl.kernel
    if "Meta" in found and defined is not None and defined._abstract_fn is None:
        found.remove("Meta")
    if "Meta" not in found and defined is None and fake is not None:
        found.append("Meta")
    return [key for key in KEYS if key in found]


def has_fake(overload: Any) -> bool:
    """Return whether a call on fake tensors reaches a kernel: one for them, or one made of torch's own operators."""
    import torch

    found = kernels(overload)
    is_opaque = named(overload) in torch._library.custom_ops.OPDEFS  # `custom_op` hides what its kernel calls
    composite = (
        {"CompositeImplicitAutograd"} if is_opaque else {"CompositeImplicitAutograd", "CompositeExplicitAutograd"}
    )
    return "Meta" in found or bool(composite & set(found))


def has_kernel(overload: Any, device: str) -> bool:
    """Return whether a call on a device reaches a kernel: one of its own, or one for every device."""
    key = next((key for key, name in KEYS.items() if name == device), device.upper())
    import torch

    return any(
        torch._C._dispatch_has_kernel_for_dispatch_key(overload.name(), one)
        for one in (key, "CompositeExplicitAutograd", "CompositeImplicitAutograd")
    )


def own_devices(overload: Any) -> list[str]:
    """Return the devices for which a kernel of their own is registered, not one for every device."""
    import torch

    has = torch._C._dispatch_has_kernel_for_dispatch_key
    return [device for device, key in DEVICES.items() if has(overload.name(), key)]


def gradient_devices(overload: Any) -> list[str]:
    """Return the devices for which a gradient of their own is registered, not one for every device."""
    import torch

    has, found = torch._C._dispatch_has_kernel_for_dispatch_key, []
    for device, key in DEVICES.items():
        with suppress(RuntimeError):  # torch does not parse the key of every device
            found += [device] if has(overload.name(), f"Autograd{key}") else []
    return found
