"""Distillation loss T^2 KL(teacher || student), computed in float32 at least, the teacher held fixed."""

import torch


class DistillKL(torch.autograd.Function):
    @staticmethod
    def forward(ctx, student, teacher, temperature):
        up = torch.promote_types(student.dtype, torch.float32)
        log_q = torch.log_softmax(student.to(up) / temperature, -1)
        log_p = torch.log_softmax(teacher.to(up) / temperature, -1)
        ctx.save_for_backward(student, teacher)
        ctx.temperature = temperature
        return temperature**2 * (log_p.exp() * (log_p - log_q)).sum(-1).mean()

    @staticmethod
    def backward(ctx, grad):
        student, teacher = ctx.saved_tensors
        t = ctx.temperature
        q = torch.softmax(student.to(grad.dtype) / t, -1)
        p = torch.softmax(teacher.detach().to(grad.dtype) / t, -1)
        rows = student[..., 0].numel()
        return (grad * t / rows * (q - p)).to(student.dtype), None, None


class DistillLoss(torch.nn.Module):
    def __init__(self, temperature=2.0):
        super().__init__()
        self.temperature = temperature

    def forward(self, student, teacher):
        return DistillKL.apply(student, teacher, self.temperature)


def distill_kl(student, teacher, temperature):
    return DistillLoss(temperature=temperature)(student, teacher)


def primal(student, teacher, temperature):
    up = torch.promote_types(student.dtype, torch.float32)
    log_q = torch.log_softmax(student.to(up) / temperature, -1)
    p = torch.softmax(teacher.to(up) / temperature, -1)
    loss = torch.nn.functional.kl_div(log_q, p, reduction="none").sum(-1).mean()
    return loss * temperature**2


surrogate = primal
FUNCTION = distill_kl
WRT = ("student",)


def _args(seed, shape, temperature, dtype=torch.float64):
    gen = torch.Generator().manual_seed(seed)
    a, b = (3 * torch.randn(shape, generator=gen, dtype=torch.float64) for _ in range(2))
    return a.to(dtype), b.to(dtype), temperature


CALLS = [
    lambda: _args(0, (4, 5), 2.0),
    lambda: _args(1, (2, 3, 4), 1.0),
    lambda: _args(2, (3, 6), 4.0, torch.float16),
]
LIMITS = ("vmap", "jvp")
DEFECT = None
KEYWORDS = ()
