"""Two gradients of snntorch that their docstrings define: drawn below the threshold, and -1 at the first spike."""

import torch
from snntorch.functional.loss import SpikeTime
from snntorch.surrogate import StochasticSpikeOperator

x = torch.tensor([-1.0, -0.5, 0.5, 1.0], requires_grad=True)
draws = [torch.autograd.grad(StochasticSpikeOperator.apply(x, 0.0, 0.2).sum(), x)[0] for _ in range(1000)]
drawn = torch.stack(draws)
print(f"below the threshold between {drawn[:, :2].min():.3f} and {drawn[:, :2].max():.3f}, above it 1")
assert drawn[:, 2:].eq(1).all()
assert -0.1 <= drawn[:, :2].min() < -0.09 < 0.09 < drawn[:, :2].max() <= 0.1
assert "subthreshold gradient is sampled" in " ".join(StochasticSpikeOperator.__doc__.split())

spikes = torch.zeros(5, 1, 2)
spikes[2:, 0, 0] = spikes[3:, 0, 1] = 1.0
spikes.requires_grad_()
times = SpikeTime.FirstSpike.apply(spikes)
(gradient,) = torch.autograd.grad(times.sum(), spikes)
places = gradient.nonzero().tolist()
print(f"first spikes at {times.flatten().tolist()}, gradients of -1 at {places}")
assert gradient[2, 0, 0] == gradient[3, 0, 1] == -1
assert len(places) == 2
assert "Linearize df/dS=-1 if spike" in SpikeTime.FirstSpike.__doc__
