"""Held against the published class: same logits, same moves, other defects; needs GRADSPEC_PEERS to name its folder."""

from __future__ import annotations

import importlib.util
import os
from pathlib import Path
from typing import Any

import pytest
import torch

from gradspec.nn import LinearAverage

FILE = Path("brails", "processors", "foundation_classifier", "npid", "npid_lib", "LinearAverage.py")
Y = torch.tensor([4, 0, 2])


@pytest.fixture(scope="module")
def published() -> Any:
    """Return the published class, from its file alone: the packages around it import far more."""
    path = Path(os.environ.get("GRADSPEC_PEERS", "")) / FILE
    if not path.is_file():
        pytest.skip("GRADSPEC_PEERS names no folder with brails 4.3.1 in it")
    spec = importlib.util.spec_from_file_location("published_linear_average", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.LinearAverage


def pair(published: Any, seed: int = 0) -> tuple[Any, LinearAverage]:
    torch.manual_seed(seed)
    theirs = published(4, 5)
    torch.manual_seed(seed)
    return theirs, LinearAverage(4, 5)


def embeddings(seed: int = 0) -> torch.Tensor:
    return torch.nn.functional.normalize(torch.randn(3, 4, generator=torch.Generator().manual_seed(seed)))


def test_a_seed_gives_the_published_buffers(published: Any) -> None:
    theirs, ours = pair(published)
    assert list(ours.state_dict()) == list(theirs.state_dict())
    assert all(torch.equal(ours.state_dict()[name], value) for name, value in theirs.state_dict().items())


def test_a_published_state_gives_the_same_steps(published: Any) -> None:
    theirs, ours = pair(published, 1)[0], LinearAverage(4, 5, T=0.5, momentum=0.9)
    ours.load_state_dict(theirs.state_dict(), strict=True)
    for step in range(3):
        gradients = []
        for bank in (theirs, ours):
            x = embeddings(step).requires_grad_()
            logits = bank(x, Y)
            torch.nn.functional.cross_entropy(logits, Y).backward()
            gradients.append((logits.detach(), x.grad))
        for mine, other in zip(*gradients, strict=True):
            torch.testing.assert_close(mine, other)
        torch.testing.assert_close(ours.memory, theirs.memory)


def test_of_repeated_rows_the_last_wins_in_both_on_a_cpu(published: Any) -> None:
    theirs, ours = pair(published)
    for bank in (theirs, ours):
        logits = bank(embeddings().requires_grad_(), torch.tensor([1, 1, 1]))
        logits.backward(torch.ones(3, 5))
    torch.testing.assert_close(ours.memory, theirs.memory)


def test_a_zero_embedding_on_a_zero_row(published: Any) -> None:
    theirs, ours = pair(published)
    for bank in (theirs, ours):
        bank.memory[0] = 0
        bank(torch.zeros(1, 4, requires_grad=True), Y[1:2]).backward(torch.ones(1, 5))
    assert theirs.memory[0].isnan().all()
    assert torch.equal(ours.memory[0], torch.zeros(4))


def test_evaluation_mode(published: Any) -> None:
    theirs, ours = pair(published)
    start = ours.memory.clone()
    for bank in (theirs, ours):
        bank.eval()(embeddings().requires_grad_(), Y).backward(torch.ones(3, 5))
    assert not torch.equal(theirs.memory, start)
    assert torch.equal(ours.memory, start)


def test_two_forwards_before_one_backward(published: Any) -> None:
    theirs, ours = pair(published)
    (ours(embeddings().requires_grad_(), Y) + ours(embeddings(1).requires_grad_(), Y)).sum().backward()
    loss = (theirs(embeddings().requires_grad_(), Y) ** 2 + theirs(embeddings(1).requires_grad_(), Y) ** 2).sum()
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        loss.backward()


def test_the_cotangent(published: Any) -> None:
    theirs, ours = pair(published)
    left = []
    for bank in (theirs, ours):
        v = torch.ones(3, 5)
        bank(embeddings().requires_grad_(), Y).backward(v)
        left.append(v[0, 0].item())
    assert left == [pytest.approx(1 / 0.07), 1.0]


def test_an_expanded_cotangent(published: Any) -> None:
    theirs, ours = pair(published)
    ours(embeddings().requires_grad_(), Y).sum().backward()
    with pytest.raises(RuntimeError, match="single memory location"):
        theirs(embeddings().requires_grad_(), Y).sum().backward()
