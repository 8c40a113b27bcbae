"""`TopKBinarizer` of nn_pruning returns the scores, and no mask, if they are not contiguous.

`mask.flatten()` shares the memory of a contiguous tensor only. The comment in it says that it always does.
"""

import torch
from nn_pruning.modules.binarizer import TopKBinarizer

scores = torch.tensor([[0.3, -1.0, 0.7], [0.1, 2.0, -0.2]])
for given in (scores, scores.T):
    mask = TopKBinarizer.apply(given, 0.5)
    print(f"strides {given.stride()}: {mask.tolist()}")
assert set(TopKBinarizer.apply(scores, 0.5).unique().tolist()) == {0.0, 1.0}
assert torch.equal(TopKBinarizer.apply(scores.T, 0.5), scores.T)
assert torch.equal(TopKBinarizer.apply(scores.T.contiguous(), 0.5), TopKBinarizer.apply(scores, 0.5).T)
