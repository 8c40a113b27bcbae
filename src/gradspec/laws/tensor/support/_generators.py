"""Shared parts of the laws on randomness: the generators of a call, and the form that draws."""

from __future__ import annotations

import pickle
import random
from collections.abc import Iterator
from contextlib import contextmanager

import numpy
import torch

from gradspec._process_state import seed_torch
from gradspec.law import Trial
from gradspec.laws.tensor.support._call import Inputs
from gradspec.spec import Noise

NUMPY, PYTHON = "numpy's generator", "python's random"


def of_device(device: torch.device) -> str:
    """Return the name of torch's own generator of a device."""
    return f"torch's generator of {device.type}{'' if device.index is None else f':{device.index}'}"


def states() -> dict[str, bytes]:
    """Return the state of every global generator, by name."""
    of_others = {NUMPY: pickle.dumps(numpy.random.get_state()), PYTHON: pickle.dumps(random.getstate())}
    return states_of_torch() | of_others


def states_of_torch() -> dict[str, bytes]:
    """Return the state of each of torch's own generators, by name; that of the others takes a millisecond."""
    found = {of_device(torch.device("cpu")): torch.get_rng_state().numpy().tobytes()}
    if torch.cuda.is_initialized():  # type: ignore[no-untyped-call]
        for index, state in enumerate(torch.cuda.get_rng_state_all()):
            found[of_device(torch.device("cuda", index))] = state.numpy().tobytes()
    return found


def is_generator_state(value: torch.Tensor) -> bool:
    """Whether a tensor holds the state of one of torch's generators: a generator takes it."""
    if value.dtype != torch.uint8 or value.ndim != 1:
        return False
    devices = ["cpu", *(["cuda"] if torch.cuda.is_initialized() else [])]  # type: ignore[no-untyped-call]
    for device in devices:
        try:
            torch.Generator(device).set_state(value.cpu())
        except (RuntimeError, TypeError):
            continue
        return True
    return False


def draw_from_all(count: int) -> None:
    """Draw some numbers from every generator, as a program does between a call and its backward pass."""
    for _ in range(count):
        random.random()
        numpy.random.random()
        torch.rand((), dtype=torch.float32)
        if torch.cuda.is_initialized():  # type: ignore[no-untyped-call]
            for index in range(torch.cuda.device_count()):
                torch.rand((), dtype=torch.float32, device=torch.device("cuda", index))


def moved(before: dict[str, bytes], after: dict[str, bytes]) -> list[str]:
    """Return the names of the generators that have drawn in between."""
    return [name for name, state in after.items() if before.get(name) != state]


def seed_all(seed: int) -> None:
    """Seed torch's, numpy's and Python's generators."""
    seed_torch(seed)
    numpy.random.seed(seed % 2**32)
    random.seed(seed)


@contextmanager
def seeded(seed: int) -> Iterator[None]:
    """Seed every generator, and put those back that are not torch's, which the run of a check puts back itself.

    A number is drawn from each: what a function seeds itself, as with 0, is then another state.
    """
    of_numpy, of_python = numpy.random.get_state(), random.getstate()
    seed_all(seed)
    draw_from_all(1)
    try:
        yield
    finally:
        numpy.random.set_state(of_numpy)
        random.setstate(of_python)


def given_noise(trial: Trial) -> Noise | None:
    """Return how the noise is drawn that is among the arguments; None where there is none."""
    return trial.spec.noise if isinstance(trial.spec.noise, Noise) else None


def without_noise(trial: Trial) -> Inputs:
    """Return the arguments of the form that draws: those of the case without its noise."""
    inputs, noise = Inputs.of(trial), given_noise(trial)
    names = noise.names if noise else ()
    return Inputs({name: value for name, value in inputs.values.items() if name not in names}, inputs.wrt)


def has_batch(inputs: Inputs) -> bool:
    """Whether a differentiated argument has a dimension: noise is drawn for each sample, and a number has no batch."""
    return any(inputs.values[name].ndim for name in inputs.wrt)
