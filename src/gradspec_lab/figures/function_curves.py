"""Curves of each function along one line of its input: its value and its gradient, from real calls."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from gradspec.functions import GradFactor, GradMultiply, InstanceDiscriminationLoss, LinearAverageOp, ShakeShake
from gradspec.functions import mix_branches as mix

#: What a record keeps of a number; one below `ZERO` is what float64 has left of a 0.
DIGITS = 6
ZERO = 1e-13
FACTORS = (0.1, 1.0, -1.0)
TEMPERATURES = (1.0, 0.5, 0.2)
DRAWS = 16
#: The share of the first branch in the gradient, in the figure over its share in the output.
BETA = 0.25


def figure(title: str, x: Mapping[str, Any], y: Mapping[str, Any], lines: Mapping[str, Sequence[float]]) -> Any:
    """Return a figure in the form that `gradspec-curves` reads."""
    kept = [{"label": label, "runs": [[digits(value) for value in values]]} for label, values in lines.items()]
    return {"title": title, "x": {**x, "values": [digits(value) for value in x["values"]]}, "y": dict(y), "lines": kept}


def digits(value: float) -> float:
    """Return a number to the digits that are kept."""
    return float(f"{value:.{DIGITS}g}") if abs(value) >= ZERO else 0.0


def grid(low: float, high: float, count: int) -> list[float]:
    """Return evenly spaced numbers."""
    return [low + (high - low) * i / (count - 1) for i in range(count)]


def along(values: Sequence[float], call: Callable[[Tensor], Tensor]) -> tuple[list[float], list[float]]:
    """Return what a call of many numbers returns, and what flows back to each for a cotangent of 1."""
    x = torch.tensor(values, dtype=torch.float64, requires_grad=True)
    y = call(x)
    (x_bar,) = torch.autograd.grad(y.sum(), x)
    return y.tolist(), x_bar.tolist()


def scaling(function: type[GradFactor] | type[GradMultiply], name: str) -> dict[str, Any]:
    """Return the output, which is the same for every factor, and the gradients, which are not."""
    x = grid(-3, 3, 11)
    found = {factor: along(x, lambda x, f=factor: function.apply(x, f)) for factor in FACTORS}
    outputs = {tuple(y) for y, _ in found.values()}
    assert len(outputs) == 1, "the output depends on the factor, and the figure has one line for it"
    lines = {"output": next(iter(found.values()))[0]}
    lines |= {f"gradient, {name} = {factor:g}": x_bar for factor, (_, x_bar) in found.items()}
    return {"gradient": figure("Output and gradient", {"label": "x", "values": x}, {"label": "y, dx"}, lines)}


def shaking() -> dict[str, Any]:
    """Return the mixture of two branches over alpha, and the weights of a batch as they are drawn."""
    shares = grid(0, 1, 11)
    alpha = torch.tensor(shares, dtype=torch.float64)
    x1 = torch.full_like(alpha, 2.0, requires_grad=True)
    x2 = torch.full_like(alpha, -1.0, requires_grad=True)
    y = mix(x1, x2, alpha, BETA)
    x1_bar, x2_bar = torch.autograd.grad(y.sum(), (x1, x2))
    mixed = {"output": y.tolist(), "gradient of x1": x1_bar.tolist(), "gradient of x2": x2_bar.tolist()}

    one, zero = torch.ones(DRAWS, 1, dtype=torch.float64, requires_grad=True), torch.zeros(DRAWS, 1).double()
    with torch.random.fork_rng(devices=()):
        torch.manual_seed(0)
        drawn = ShakeShake.apply(one, zero, True)
    (back,) = torch.autograd.grad(drawn.sum(), one)
    rest = ShakeShake.apply(one, zero, False)
    drawn_lines = {"of the output": drawn.flatten().tolist(), "of the gradient": back.flatten().tolist()}
    drawn_lines |= {"of both, in evaluation": rest.flatten().tolist()}
    samples = {"label": "sample", "values": list(range(1, DRAWS + 1))}
    return {
        "alpha": figure("Output and gradients over alpha", {"label": "alpha", "values": shares}, {"label": "y"}, mixed),
        "draws": figure(
            "The share of the first branch", samples, {"label": "share of x1", "format": ".2f"}, drawn_lines
        ),
    }


def memory_bank() -> dict[str, Any]:
    """Return a logit and its gradient as an embedding turns, and how far a row moves, by momentum."""
    turns, momenta = grid(-180, 180, 25), grid(0, 1, 11)

    def logit(turn: Tensor, temperature: float) -> Tensor:
        x = torch.stack((turn.deg2rad().cos(), turn.deg2rad().sin()), dim=1)
        return bank_call(x, temperature=temperature, momentum=0.5)[0][:, 0]

    lines = {}
    for temperature in TEMPERATURES[:2]:
        o, x_bar = along(turns, lambda turn, t=temperature: logit(turn, t))
        lines[f"logit, T = {temperature:g}"] = o
        lines[f"slope a radian, T = {temperature:g}"] = [math.degrees(value) for value in x_bar]
    degrees = {"label": "degrees between the embedding and the row", "values": turns}
    moved = {f"embedding at {turn}°": [moved_to(turn, momentum) for momentum in momenta] for turn in (45, 90, 135)}
    return {
        "logit": figure("A logit and its gradient", degrees, {"label": "logit, and its slope"}, lines),
        "move": figure(
            "Where a row moves to", {"label": "momentum", "values": momenta}, {"label": "degrees moved"}, moved
        ),
    }


def bank_call(x: Tensor, *, temperature: float, momentum: float) -> tuple[Tensor, Tensor]:
    """Return the logits of embeddings of row 0, and the bank, which moves with the backward pass."""
    memory = torch.tensor([[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0]], dtype=torch.float64)
    params = torch.tensor([temperature, momentum], dtype=torch.float64)
    return LinearAverageOp.apply(x, torch.zeros(len(x), dtype=torch.int64), memory, params), memory


def moved_to(turn: float, momentum: float) -> float:
    """Return by how many degrees a row has moved after the backward pass of one embedding."""
    x = torch.tensor([[math.cos(math.radians(turn)), math.sin(math.radians(turn))]], dtype=torch.float64)
    o, memory = bank_call(x.requires_grad_(), temperature=0.5, momentum=momentum)
    o.sum().backward()
    return math.degrees(math.atan2(memory[0, 1].item(), memory[0, 0].item()))


def discrimination() -> dict[str, Any]:
    """Return the loss and its gradient over the product of an embedding with its own row; the 7 others give 0."""
    similarity = grid(-1, 1, 21)
    memory = torch.eye(8, dtype=torch.float64)

    def loss(own: Tensor, temperature: float) -> Tensor:
        y = torch.zeros(len(own), dtype=torch.int64)
        return InstanceDiscriminationLoss.apply(own[:, None] * memory[0], y, memory, temperature)

    found = {t: along(similarity, lambda own, t=t: loss(own, t)) for t in TEMPERATURES}
    x = {"label": "product of the embedding with its own row", "values": similarity}
    titles = {"loss": "The loss of one embedding", "gradient": "The gradient along its own row"}
    return {
        name: figure(title, x, {"label": name}, {f"temperature {t:g}": found[t][i] for t in TEMPERATURES})
        for i, (name, title) in enumerate(titles.items())
    }


#: The figures of each function, by the name of its spec.
CURVES: Mapping[str, Callable[[], dict[str, Any]]] = {
    "grad_factor": lambda: scaling(GradFactor, "f"),
    "grad_multiply": lambda: scaling(GradMultiply, "scale"),
    "shake_shake": shaking,
    "linear_average_op": memory_bank,
    "instance_discrimination_loss": discrimination,
}
