"""A spike for each threshold in the potential; its slope is a window of any form."""

from gradspec import FunctionSpec
from gradspec_lab.campaigns.packages.absent import absent

absent("pylab", "matplotlib")
from sinabs.activation import Heaviside, MultiSpike


def spikes(v, threshold, window):
    return (v / threshold).trunc().clamp(min=0).float()


RIGHT = FunctionSpec(
    MultiSpike.apply,
    spikes,
    gradient=lambda inputs, output, cotangent: {"v": cotangent * inputs.window(inputs.v, inputs.threshold)},
    cases=lambda make: [(3 * make(2, 4), 0.7, Heaviside(0.5)), (2 * make(5) + 1, 1.5, Heaviside(1.0))],
)


class OfTheDefaultThreshold(MultiSpike):
    @staticmethod
    def backward(ctx, s_bar):
        ctx.spike_threshold = 1.0
        return MultiSpike.backward(ctx, s_bar)


WRONG = RIGHT.for_(OfTheDefaultThreshold.apply)
