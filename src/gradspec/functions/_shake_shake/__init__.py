"""ShakeShake: a random mixture of two branches, whose gradient is another random mixture."""

from gradspec.functions._shake_shake._function import ShakeShake, mix_branches, shake_shake
from gradspec.functions._shake_shake._spec import SHAKE_SHAKE

__all__ = ["SHAKE_SHAKE", "ShakeShake", "mix_branches", "shake_shake"]
