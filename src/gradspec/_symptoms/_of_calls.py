"""The symptoms of a gradient that is not there, of precision, memory, and of what torch makes of a function."""

from __future__ import annotations

from gradspec._symptoms._symptom import Symptom

_VALUES = ("primal", "vjp")
_TRANSFORMS = (
    *("compile", "compile_grad", "compile_jvp", "compile_vmap", "compiled_autograd", "dynamic_shapes", "export"),
    *("func_grad", "checkpoint", "selective_checkpoint", "vmap"),
)

OF_CALLS = (
    # No gradient at all, or another one.
    Symptom(
        "none",
        "the gradient is None",
        "backward returns None for an argument that has a gradient",
        "return the gradient",
        ("vjp",),
    ),
    Symptom(
        "no graph",
        "the gradient is None, and no graph leads to the argument",
        "the argument is detached, or inside a list or tuple, into which `apply` does not look",
        "hand each tensor to `apply` as an argument of its own",
        ("vjp",),
    ),
    Symptom(
        "cut",
        "the output, or the gradient, has no graph",
        "`.data`, `detach()`, `no_grad` or NumPy on the way",
        "compute on the tensors themselves",
        ("vjp", "second_order", "first_order_only"),
    ),
    Symptom(
        "of forward",
        "the gradient is the derivative of forward, where the spec has another",
        "backward does not apply what the spec's surrogate says",
        "mend backward, or the surrogate of the spec",
        ("vjp",),
    ),
    Symptom(
        "of arguments",
        "the gradients of some arguments are wrong, each in a way of its own",
        "backward is wrong for the arguments that are named",
        "mend what it returns for them",
        ("surrogate",),
    ),
    # Precision and memory.
    Symptom(
        "digits",
        "as exact as a float32 where float64 is asked for",
        "something is computed in float32 on the way, or an eps differs",
        "compute in the dtype of the arguments",
        _VALUES,
    ),
    Symptom(
        "narrow",
        "every number is one of a lower precision",
        "something is converted to that dtype on the way",
        "keep the dtype of the arguments",
        _VALUES,
    ),
    Symptom(
        "overflow",
        "infinite in float16 where the right value is not",
        "a number beyond 65504 on the way, or a division by one that is rounded to 0",
        "compute in float32, and convert the result",
        ("precision", "autocast"),
    ),
    Symptom(
        "lower precision",
        "less accurate under autocast than plain operations",
        "something is computed in a lower precision than autocast would",
        "decorate with `custom_fwd(cast_inputs=torch.float32)`, or compute in float32",
        ("autocast",),
    ),
    Symptom(
        "default dtype",
        "the value has another dtype, or is right where the default dtype is that of the arguments",
        "a tensor is made in the default dtype",
        "give it the dtype of the argument: `x.new_zeros(...)`, `dtype=x.dtype`",
        ("primal",),
    ),
    Symptom(
        "squeezed",
        "the value lacks a dimension of size 1",
        "`squeeze()` removes every such dimension",
        "name the one that is meant: `squeeze(dim)`",
        ("primal",),
    ),
    Symptom(
        "unwritten memory",
        "numbers that differ from run to run, or NaN once new memory is filled",
        "`torch.empty` is handed on before all of it is written",
        "fill it, or start from zeros",
        _VALUES,
    ),
    Symptom(
        "noise",
        "two equal calls have different results",
        "the function draws noise that the spec does not declare, or changes what it keeps",
        "hand the noise in as an argument, and declare it",
        ("declared_draws", "cotangent_linearity"),
    ),
    # What a call leaves behind.
    Symptom(
        "kept state",
        "a call is right by itself, and wrong after other calls",
        "a cache or a table is kept between calls: its key leaves out an argument, or an earlier call decides its size",
        "put all that the entry depends on into the key",
        ("earlier_calls",),
    ),
    Symptom(
        "shared state",
        "a gradient is right by itself, and wrong where another call comes before backward",
        "forward keeps something on the class, in a module or in a buffer, where the next call puts its own",
        "keep it on ctx",
        ("interleaved", "earlier_calls"),
    ),
    Symptom(
        "in-place write",
        "an argument changes, and its version counter moves",
        "an in-place operation on an argument",
        "work on a copy, or declare it in `Effects.writes`",
        ("inputs_untouched",),
    ),
    Symptom(
        "untracked write",
        "an argument changes, and its version counter does not move: a backward that needs it is silently wrong",
        "a write through `.data`, `detach()` or NumPy, of which autograd is not told",
        "work on a copy, or write to the tensor itself and declare it in `Effects.writes`",
        ("inputs_untouched",),
    ),
    Symptom(
        "untracked alias",
        "the output shares memory with an argument, and a write to one does not move the version counter of the other",
        "the alias is made with `.data`, `set_()`, NumPy or DLPack",
        "return a clone, or a view of the argument itself",
        ("aliasing",),
    ),
    Symptom(
        "view",
        "the output is an argument, or a view of it, and the spec does not say so",
        "forward returns its argument",
        "return a clone, or declare `Effects.view_of`",
        ("aliasing",),
    ),
    Symptom(
        "wrong mode",
        "an evaluation draws noise or moves a buffer, and does not once a part of the module is in evaluation too",
        "`train()` or `eval()` does not reach a part: it is overridden, or the part is called from outside the module",
        "register the part as a submodule, and hand the mode on",
        ("evaluation_mode",),
    ),
    # Derivatives of the gradient, and what torch makes of a function.
    Symptom(
        "kept",
        "a second derivative is lost or wrong, and the one along the cotangent is right",
        "backward uses a result of forward, which has no graph there",
        "save the arguments, and compute it in backward",
        ("second_order",),
    ),
    Symptom(
        "partly cut",
        "a term of a second derivative is missing",
        "`.data` or `detach()` in backward, or a Function within it whose own backward lacks the term",
        "compute backward in differentiable operations",
        ("second_order",),
    ),
    Symptom(
        "infinite slope",
        "a second derivative is NaN",
        "backward computes a root, a power or a norm of 0, or divides by it",
        "guard that operation",
        ("second_order",),
    ),
    Symptom(
        "two maps",
        "forward mode and backward are not adjoint",
        "jvp and backward differentiate two different maps",
        "derive both from the same surrogate",
        ("adjoint",),
    ),
    Symptom(
        "dropped",
        "the plain derivative of forward arrives, or none",
        "the transform runs forward without the custom backward",
        "write forward with `setup_context`, and promise only what torch supports",
        _TRANSFORMS,
    ),
    Symptom(
        "dimension 0",
        "vmap is right where the batch is dimension 0",
        "the `vmap` rule does not read `in_dims`",
        "move the batch dimension to the front first",
        ("vmap",),
    ),
    Symptom(
        "size",
        "compiled anew for another batch size",
        "a size is read as a number: in a branch, a loop, or by int()",
        "let sizes enter only the sizes of tensors",
        ("dynamic_shapes",),
    ),
    Symptom(
        "data",
        "compiled anew for other values",
        "a number that is read from a tensor decides what is computed",
        "keep it in a tensor",
        ("dynamic_shapes",),
    ),
    Symptom(
        "fake tensor",
        "a fake tensor gets another shape, dtype or stride than a real one",
        "a fake kernel disagrees with the real one, or the code asks which kind of tensor it has",
        "compute shapes from shapes",
        ("fake",),
    ),
    Symptom(
        "other fake",
        "the fake kernel says another shape, dtype or stride",
        "the fake kernel and the real one disagree",
        "mend the fake kernel",
        ("fake_kernel",),
    ),
    Symptom(
        "reads data",
        "the fake kernel or backward raises on a fake tensor",
        "item(), a branch on a tensor, or nonzero()",
        "compute shapes from shapes, or use `torch.library.get_ctx().new_dynamic_size()`",
        ("fake_kernel",),
    ),
    Symptom(
        "fixed size",
        "a symbolic size becomes a number",
        "int(x.shape[0]), range over it, or a reshape to constants",
        "keep the size symbolic",
        ("fake_kernel",),
    ),
    Symptom(
        "compared size",
        "a symbolic size is compared",
        "int(x.shape[0]), or a comparison with a constant",
        "keep the size symbolic",
        ("fake_kernel",),
    ),
)
