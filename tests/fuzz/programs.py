"""Random programs that use our functions beside torch's, as Python text: printed on a failure, it can be run again.

Each program is a function `program(F)` of the functions under test, so that it is built twice: with ours, and with the
reference by construction of each. It returns whatever it has computed, in order, and what its hooks saw.
"""

from __future__ import annotations

import random
import re

#: How each of ours is called on a matrix of 3 x 4: an expression with a hole for a value, or two, and constants.
CALLS = (
    "F.grad_factor({a}, {number})",
    "F.grad_multiply({a}, torch.tensor([[0.5], [-1.0], [2.0]], dtype=torch.float64))",
    "F.shake_shake({a}, {b}, {share}, torch.tensor([[0.25], [0.5], [1.0]], dtype=torch.float64))",
    "F.linear_cross_entropy({a}, {b}, torch.tensor([0, 2, 1])).unsqueeze(1).expand(3, 4)",
    "F.linear_cross_entropy({a}, {b}, torch.tensor([0, -100, 1]), None, {share}).unsqueeze(1) * {b}",
    "F.instance_discrimination_loss({a}, torch.tensor([1, 1, 0]), BANK.clone(), {temperature}).unsqueeze(1) + {b}",
    "F.linear_average_op({a}, torch.tensor([2, 0, 2]), BANK.clone(), torch.tensor([0.5, 0.5]))[:, :4]",
)
ORDINARY = (
    "{a} + {b}",
    "{a} * {b}",
    "{a}.sin()",
    "{a}.tanh() - {b}",
    "{a} @ {b}.T @ {b} / 4",
    "torch.cat(({a}[:1], {b}[1:]))",
    "torch.where({a} > 0, {a}, {b} / 2)",
    "{a} / {a}.norm().clamp_min(0.5)",
)
VIEWS = (
    "{a}.T.contiguous().T",
    "{a}.reshape(4, 3).reshape(3, 4)",
    "{a}[[2, 0, 1]]",
    "{a}.flip(0)",
    "{a}[:1].expand(3, 4)",
    "{a}.contiguous().view(2, 6).view(3, 4)",
)
#: With copies of the other operand, and no hook goes on a tensor older than the last of these changes: torch crashes in
#: `register_hook` of a view whose base was written to from the view.
IN_PLACE = (
    "{a}.mul_(0.5)",
    "{a}.add_({b}.clone())",
    "{a}[0].zero_()",
    "{a}.sin_()",
    "{a}[:, 1:].copy_({b}[:, 1:].clone())",
)


def source(seed: int) -> str:
    """Return the text of the program of a seed."""
    return _Writer(seed).text()


class _Writer:
    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.lines: list[str] = []
        self.leaves: list[str] = []
        self.names: list[str] = []
        #: Those that need a gradient.
        self.live: set[str] = set()
        #: How many names there were at the last change in place.
        self.changed = 0

    def text(self) -> str:
        for _ in range(self.rng.randint(1, 3)):
            self.leaf()
        for _ in range(self.rng.randint(2, 8)):
            self.step()
        for _ in range(self.rng.randint(1, 2)):
            self.differentiate()
        leaves = ", ".join(f"{name}.grad" for name in self.leaves)
        body = "\n".join(f"    {line}" for line in self.lines)
        return f"def program(F):\n    seen = []\n{body}\n    return [*seen, {leaves}]\n"

    def leaf(self) -> None:
        name = f"x{len(self.leaves)}"
        needs = self.rng.random() < 0.8 or not self.leaves
        flag = ".requires_grad_()" if needs else ""
        self.lines.append(f"{name} = numbers({self.rng.randint(0, 99)}){flag}")
        self.leaves.append(name)
        self.names.append(name)
        self.live |= {name} if needs else set()

    def any(self) -> str:
        # Late values more often, so that graphs grow deep as well as wide.
        return self.rng.choice(self.names[-3:] if self.rng.random() < 0.6 else self.names)

    def filled(self, expression: str) -> str:
        return expression.format(
            a=self.any(),
            b=self.any(),
            number=self.rng.choice((0.1, -2.0, 0.0, 3)),
            share=self.rng.choice((0.0, 0.25, 1.0)),
            temperature=self.rng.choice((0.5, 1.0, 2.0)),
        )

    def step(self) -> None:
        kind = self.rng.choice(("ours", "ours", "ours", "ordinary", "ordinary", "view", "in place", "hook", "no grad"))
        made = [name for name in self.names if name.startswith("y") and name in self.live]
        if kind == "in place" and made:
            target = self.rng.choice(made)
            expression = self.rng.choice(IN_PLACE)
            if self.rng.random() < 0.7:  # of a copy: of a value that something has saved, autograd refuses it
                self.bind(f"{target}.clone()")
                target = self.names[-1]
            self.lines.append(expression.format(a=target, b=self.any()))
            self.changed = len(self.names)
        elif kind == "hook" and (made := [name for name in made if name in self.names[self.changed :]]):
            name, factor = self.rng.choice(made), self.rng.choice(("", " * 2"))
            keep = self.rng.choice(("", f"; {name}.retain_grad()"))
            self.lines.append(f"{name}.register_hook(lambda g: (seen.append(g.clone()), g{factor})[1]){keep}")
        elif kind == "no grad":
            self.bind(f"{self.any()}.detach() * 2")
        else:
            table = {"ours": CALLS, "view": VIEWS}.get(kind, ORDINARY)
            self.bind(self.filled(self.rng.choice(table)))

    def bind(self, expression: str) -> None:
        name = f"y{len(self.names)}"
        self.lines.append(f"{name} = {expression}")
        self.lines.append(f"seen.append({name}.detach().clone())")
        self.names.append(name)
        if "detach()" not in expression and self.live & set(re.findall(r"\b[xy]\d+\b", expression)):
            self.live.add(name)

    def differentiate(self) -> None:
        roots = sorted(self.rng.sample(live := sorted(self.live), min(len(live), self.rng.randint(1, 2))))
        loss = " + ".join(f"({root} * numbers({self.rng.randint(0, 99)})).sum()" for root in roots)
        kind = self.rng.choice(("backward", "backward", "twice", "again", "grad", "several"))
        inputs = ", ".join(name for name in self.leaves if name in self.live)
        if kind == "backward":
            self.lines.append(f"({loss}).backward(retain_graph=True)")
        elif kind == "twice":  # a second derivative
            self.lines.append(f"gs = torch.autograd.grad({loss}, [x0], create_graph=True, materialize_grads=True)")
            self.lines.append("seen.extend(g.detach().clone() for g in gs)")
            self.lines.append("loss = sum((g * g).sum() for g in gs)")
            self.lines.append("if loss.requires_grad:")
            self.lines.append("    loss.backward(retain_graph=True)")
        elif kind == "again":  # the second pass is refused if the graph is freed
            keep = self.rng.choice(("True", "True", "False"))
            self.lines.append(f"loss = {loss}")
            self.lines.append(f"loss.backward(retain_graph={keep})")
            self.lines.append("loss.backward(retain_graph=True)")
        elif kind == "grad":
            self.lines.append(
                f"seen.extend(torch.autograd.grad({loss}, [{inputs}], retain_graph=True, allow_unused=True))"
            )
        else:
            given = ", ".join(f"numbers({place})" for place in range(len(roots)))
            self.lines.append(f"torch.autograd.backward([{', '.join(roots)}], [{given}], retain_graph=True)")
