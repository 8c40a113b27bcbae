"""`NormalCDF` of diffsort is right, to the digits of a float32: it keeps its sigma as one."""

from differences import both, drawn, off
from diffsort.functional import NormalCDF

x = drawn(3, 4)
for sigma in (0.25, 0.2):
    ((got, expected),) = both(lambda x, sigma=sigma: NormalCDF.apply(x, sigma), x)
    print(f"sigma {sigma}: off by {off(got, expected):.0e}")
    assert off(got, expected) < 1e-6
