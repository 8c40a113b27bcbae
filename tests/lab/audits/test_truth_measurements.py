"""What measures the truth about published functions sees defects, and sees none in a sound function."""

import torch

from gradspec_lab.audits.truths import derivatives, effects, inputs
from gradspec_lab.audits.truths._call import Call


class Defective(torch.autograd.Function):
    """Backward is wrong, detached, writes to its cotangent, and draws; the output is in the memory of the argument."""

    @staticmethod
    def forward(ctx, x, slope):
        ctx.save_for_backward(x)
        return x.data.mul_(x * slope)

    @staticmethod
    def backward(ctx, v):
        (x,) = ctx.saved_tensors
        torch.rand(())
        return v.data.mul_(x.data), None


class Sound(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, slope):
        ctx.save_for_backward(x, slope)
        return x * x * slope

    @staticmethod
    def backward(ctx, v):
        x, slope = ctx.saved_tensors
        return 2 * x * slope * v, (x * x * v).sum()


def call(cls):
    return Call(cls, (torch.tensor([0.5, 2.0], dtype=torch.float64), torch.tensor(1.5, dtype=torch.float64)))


def test_the_measurements_find_nothing_in_a_sound_function():
    sound = call(Sound)

    assert derivatives.first(sound) == {"x": "right", "slope": "right"}
    assert derivatives.second(sound) == {"x": "right", "slope": "right", "cotangent 0": "right"}
    assert derivatives.linear(sound) == "yes"
    assert effects.writes(sound) == {}
    assert effects.shares(sound) == {}
    assert effects.draws(sound) == {"forward": "no", "backward": "no"}
    assert effects.kept(sound) == {"ctx": [], "freed": True}
    assert inputs.layout(sound) == inputs.retained(sound) == inputs.checkpoint(sound) == "same"
    assert inputs.dtypes(sound)["float32"]["raw gradients"] == "exact"


def test_the_measurements_see_what_is_wrong():
    defective = call(Defective)

    assert derivatives.first(defective)["slope"].startswith("ignored: None")
    assert derivatives.second(defective)["x"].startswith("missing")
    assert effects.writes(defective)["x"].startswith("forward: new values, the version counter does not move")
    assert effects.writes(defective)["cotangent 0"].startswith("backward: new values")
    assert effects.shares(defective)["output 0"] == "untracked, with x"
    assert effects.draws(defective)["backward"].endswith("generators moved: torch")
