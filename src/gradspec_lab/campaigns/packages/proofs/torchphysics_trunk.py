"""`TrunkLinear` of torchphysics takes points that are copies along the first axis, as it documents: it reads the first.

Every copy gets the gradient of its own output. Their sum, that of the points which were copied, is right.
"""

from differences import both, drawn, off

from gradspec_lab.campaigns.packages.absent import absent, bare

absent("pytorch_lightning", "matplotlib", "networkx", "trimesh", "shapely", "rtree", "soundfile", "cv2")
bare("torchphysics", "torchphysics.models", "torchphysics.models.deeponet")
layers = __import__("torchphysics.models.deeponet.layers", fromlist=["linear"])
weight, bias = drawn(2, 3, seed=1), drawn(2, seed=2)
pairs = both(lambda x, w, b: layers.linear.apply(x.expand(4, 5, 3), w, b), drawn(1, 5, 3), weight, bias)
print(f"the points that are copied, the weight and the bias: off by {', '.join(f'{off(*p):.0e}' for p in pairs)}")
assert max(off(*pair) for pair in pairs) < 1e-6
assert "identical along the first batch axis" in " ".join(layers.TrunkLinear.__doc__.split())
