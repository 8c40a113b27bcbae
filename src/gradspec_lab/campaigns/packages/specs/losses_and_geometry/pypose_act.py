"""A rotation of points, whose gradient is that of a small turn after it: three numbers, and a zero."""

import torch
from pypose.lietensor.operation import SO3_Act

from gradspec import FunctionSpec


def rotated(q, p):
    v, w = q[..., :3], q[..., 3:]
    return p + 2 * torch.linalg.cross(v, w * p + torch.linalg.cross(v, p))


def of_a_turn(inputs, output, cotangent):
    back = inputs.q * torch.tensor([-1.0, -1.0, -1.0, 1.0]).to(inputs.q)
    turn = torch.linalg.cross(output, cotangent)
    return {"q": torch.cat([turn, torch.zeros_like(turn[..., :1])], -1), "p": rotated(back, cotangent)}


def cases(make):
    yield torch.nn.functional.normalize(make(2, 4), dim=-1), make(2, 3)


RIGHT = FunctionSpec(SO3_Act.apply, rotated, gradient=of_a_turn, cases=cases)


class OfThePoint(SO3_Act):
    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)


WRONG = RIGHT.for_(OfThePoint.apply)
