"""Functions that misbehave, each in its own way, and one that does not."""

import os
import random
import sys

import numpy
import torch

from gradspec import Case, FunctionSpec, Supports


class Copy(torch.autograd.Function):
    @staticmethod
    def forward(x):
        return x.clone()

    @staticmethod
    def setup_context(ctx, inputs, output):
        pass

    @staticmethod
    def backward(ctx, y_bar):
        return y_bar


class Raises(Copy):
    @staticmethod
    def backward(ctx, y_bar):
        raise RuntimeError("no gradient today")


class Exits(Copy):
    @staticmethod
    def backward(ctx, y_bar):
        sys.exit(4)


class Ends(Copy):
    @staticmethod
    def backward(ctx, y_bar):
        os._exit(4)


class TwoGradients(Copy):
    @staticmethod
    def backward(ctx, y_bar):
        return y_bar, y_bar


class Prints(Copy):
    @staticmethod
    def forward(x):
        print("look at me")
        os.write(1, b"and at me\n")  # as a kernel does
        return x.clone()


class Reseeds(Copy):
    @staticmethod
    def forward(x):
        torch.manual_seed(1)
        random.seed(1)
        numpy.random.seed(1)
        return x.clone()


class WidensTheDefault(Copy):
    @staticmethod
    def forward(x):
        torch.set_default_dtype(torch.float64)
        return x.clone()


class PatchesTorch(Copy):
    @staticmethod
    def forward(x):
        torch.nn.functional.relu = abs
        return x.clone()


def spec(cls):
    return FunctionSpec(
        name=cls.__name__,
        function=cls.apply,
        implementation=cls,
        primal=lambda x: x.clone(),
        surrogate=lambda x: x.clone(),
        wrt=("x",),
        cases=lambda make: iter([Case(name="three", args=(make(3),))]),
        supports=Supports.all(),
    )


KINDS = (Raises, Exits, Ends, TwoGradients, Prints, Reseeds, WidensTheDefault, PatchesTorch, Copy)
SPECS = tuple(map(spec, KINDS))
