"""The subjects as plain data: calls, references, defects.

SUBJECTS is a list of dictionaries with the keys

- module: the file that defines the subject (sound, diseased, reports);
- name: "namespace::operator", or the name of an autograd.Function of the module;
- kind: "operator" or "function";
- calls: pairs of strings, positional and keyword arguments, in Python with `torch` alone;
- gradients: the arguments that get a gradient;
- reference: a function below, what the forward is to compute. Where `writes` is not empty it writes nothing
  and returns the pair (result, {name: new value});
- surrogate: a function below whose ordinary derivative the backward is to give, or None: then that of the reference;
- defect: one sentence, or None;
- seen_by: the defect as a fact of plain torch, or None;
- writes: the arguments whose memory the subject is declared to write;
- order: 1 where a second derivative raises, else None.
"""

import torch

F = torch.nn.functional

# ------------------------------------------------------------------ references


def ref_scale(x, factor):
    return x * factor


def ref_mix(x, y, alpha):
    return alpha * x * y


def ref_observe(x, state, momentum):
    return (x > 0).sum(), {"state": (1 - momentum) * state + momentum * x.mean(0)}


def ref_center(x, state, momentum):
    return x - state, {"state": (1 - momentum) * state + momentum * x.mean(0)}


def ref_weighted_sum(tensors, weights):
    return sum(w * t for w, t in zip(weights, tensors))


def ref_affine(x, weight=None, *, gain=1.0, shift=0.0):
    return (x if weight is None else x * weight) * gain + shift


def ref_square_into(x, out):
    return None, {"out": x * x}


def ref_row_max(x):
    values, index = x.max(-1)
    return values, index


def ref_leaky(x, slope=0.1):
    return F.leaky_relu(x, slope)


def ref_hard_round(x):
    return x.round()


def sur_hard_round(x):
    return x.clamp(-2, 2)


def ref_spike(x, sharpness):
    return (x > 0).to(x.dtype)


def sur_spike(x, sharpness):
    return torch.tanh(sharpness * x) / 2


def ref_arcsinh(x):
    return torch.asinh(x)


def ref_arcsinh_backward(grad, x):
    return grad / torch.sqrt(1 + x**2)


def ref_tile(x, times):
    return torch.cat([x] * times) if times else x[:0]


def ref_project(x, weight):
    return x @ weight


def ref_swish(x):
    return F.silu(x)


def ref_sine(x):
    return torch.sin(x)


def ref_exponent(x):
    return torch.exp(x)


def ref_exponent_backward(grad, y):
    return grad * y


def ref_arctangent(x):
    return torch.atan(x)


def ref_arctangent_backward(grad, x):
    return grad / (1 + x**2)


def ref_dense(x, weight, bias):
    return x @ weight + bias


def ref_divide(a, b):
    return a / b


def ref_product(x, weight):
    return x * weight


def ref_polar(x):
    return torch.sin(x), torch.cos(x)


def ref_log_cosh(x):
    return F.softplus(2 * x) - x - 0.6931471805599453


def ref_squared_error(x, target, reduction="mean"):
    return F.mse_loss(x, target, reduction=reduction)


def ref_cube(x):
    return x**3


def ref_row_scale(x, scale):
    return x * scale.unsqueeze(-1)


def ref_negate(x):
    return -x


def ref_negate_backward(grad):
    return -grad


def ref_silu_backward(grad, x):
    gate = torch.sigmoid(x)
    return grad * (gate + x * gate * (1 - gate))


def ref_dropout(x, keep):
    return x * (torch.rand(x.shape) < keep) / keep


def ref_track(x, average, momentum):
    return torch.tensor(x.shape[0]), {"average": (1 - momentum) * average + momentum * x.mean(0)}


def ref_relu6(x, active=True):
    return F.relu6(x) if active else x.clone()


def ref_head(x, count):
    return x[:count].clone()


def ref_columns(x):
    return torch.softmax(x, 0)


def ref_row_sum(x):
    return x.double().sum(-1)


def ref_block_sum(x, size):
    return torch.stack([part.sum() for part in x.split(size)]) if len(x) else x[:0]


def ref_reverse(x):
    return x.flip(0)


def ref_pad_rows(x):
    return F.pad(x, (0, 0, 0, -x.shape[0] % 8))


def ref_clip(x, bound):
    return x.clamp(-bound, bound)


def ref_softsign(x):
    return F.softsign(x)


def ref_softplus(x):
    return F.softplus(x, threshold=800)


def ref_tangent(x):
    return torch.tanh(x)


def ref_mish(x):
    return x * torch.tanh(F.softplus(x, threshold=800))


def ref_quadratic(x):
    return x * x + x


def ref_sign(x):
    return torch.sign(x)


def sur_identity(x):
    return x.clone()


def ref_channel_bias(x, bias):
    return x + bias[:, None, None]


def ref_position_code(position, frequency):
    return torch.sin(position.unsqueeze(-1) * frequency)


def ref_gained_affine(x, weight=None, *, gain=2.0):
    return (x if weight is None else x * weight) * gain


def ref_quick_gelu(x):
    return x * torch.sigmoid(1.702 * x)


def ref_quick_gelu_backward(grad, x):
    s = torch.sigmoid(1.702 * x)
    return grad * s * (1 + 1.702 * x * (1 - s))


def ref_round(x):
    return torch.round(x)


def ref_doubled_square(x):
    return (2 * x) ** 2


def ref_log_softmax_linear(hidden, weight):
    return torch.log_softmax(hidden @ weight, -1)


def ref_token_loss(hidden, weight, target):
    logits = hidden @ weight
    slope = (torch.softmax(logits, -1) - F.one_hot(target, logits.shape[-1])).detach()
    loss = F.cross_entropy(logits, target, reduction="none")
    return loss, (slope @ weight.t()).detach(), (hidden.t() @ slope).detach()


def ref_cross_entropy(logits, target):
    return F.cross_entropy(logits, target)


def ref_softmax(x):
    return torch.softmax(x, -1)


def ref_chunked_loss(hidden, weight, target, chunks):
    return F.cross_entropy(hidden @ weight, target)


def ref_z_loss(logits, target, multiplier=0.0):
    return F.cross_entropy(logits, target) + multiplier * torch.logsumexp(logits, -1).pow(2).mean()


def ref_token_logprob(logits, target):
    return torch.log_softmax(logits, -1).gather(-1, target.unsqueeze(-1)).squeeze(-1)


def ref_token_logprob_backward(grad, logits, target):
    return grad.unsqueeze(-1) * (F.one_hot(target, logits.shape[-1]) - torch.softmax(logits, -1))


def ref_rms_norm(x, weight):
    z = x.float()
    return (z * torch.rsqrt(z.pow(2).mean(-1, keepdim=True) + 1e-6) * weight.float()).to(x.dtype)


def ref_expert(x, weight, width):
    return (x @ weight)[:, :width]


def ref_grad_weight(x, grad):
    return x.t() @ grad


def ref_shift_sine(x, y):
    return torch.sin(x) + torch.sin(y)


def ref_squared_residual(x, target):
    return (x - target) ** 2


def ref_square(x):
    return x**2


def sur_ten_squares(x):
    return 10 * x**2


def ref_swish_pair(x):
    return F.silu(x), torch.sigmoid(x)


def ref_swish_pair_backward(grad_y, grad_gate, x):
    gate = torch.sigmoid(x)
    slope = gate * (1 - gate)
    return grad_y * (gate + x * slope) + grad_gate * slope


def ref_head_loss(hidden, weight, target):
    return F.cross_entropy(hidden @ weight, target)


def ref_masked_token_loss(hidden, weight, target):
    return F.cross_entropy(hidden @ weight, target, reduction="none")


def ref_attention(q, k, v):
    return torch.softmax(q @ k.transpose(-1, -2), -1) @ v


def ref_scan(x, decay):
    states = []
    for row in x.unbind(0):
        states.append(row if not states else decay * states[-1] + row)
    return torch.stack(states) if states else x.clone()


# -------------------------------------------------------------------- subjects

SUBJECTS: list[dict] = []

D = "dtype=torch.float64"
MATRIX = (f"(torch.randn(4, 3, {D}),)", "{}")
SQUARE = (f"(torch.randn(3, 3, {D}),)", "{}")
VECTOR = (f"(torch.randn(7, {D}),)", "{}")
EMPTY = (f"(torch.randn(0, 3, {D}),)", "{}")
TURNED = (f"(torch.randn(3, 4, {D}).t(),)", "{}")
UNARY = [MATRIX, VECTOR, TURNED, EMPTY]
PAIR = [
    (f"(torch.randn(4, 3, {D}), torch.randn(4, 3, {D}))", "{}"),
    (f"(torch.randn(5, {D}), torch.randn(5, {D}))", "{}"),
    (f"(torch.randn(0, 3, {D}), torch.randn(0, 3, {D}))", "{}"),
]
LINEAR = [
    (f"(torch.randn(4, 3, {D}), torch.randn(3, 2, {D}))", "{}"),
    (f"(torch.randn(1, 5, {D}), torch.randn(5, 5, {D}))", "{}"),
    (f"(torch.randn(0, 3, {D}), torch.randn(3, 2, {D}))", "{}"),
]
LOGITS = [
    (f"(torch.randn(6, 5, {D}), torch.tensor([0, 1, 2, 3, 4, 0]))", "{}"),
    (f"(torch.randn(2, 3, {D}), torch.tensor([2, 0]))", "{}"),
]


def _add(module, name, calls, gradients, reference, *, surrogate=None, defect=None, seen_by=None, writes=(), order=None):
    operator = name.islower()
    SUBJECTS.append(
        {
            "module": module,
            "name": f"strangers_{module}::{name}" if operator else name,
            "kind": "operator" if operator else "function",
            "calls": list(calls),
            "gradients": list(gradients),
            "reference": reference.__name__,
            "surrogate": surrogate.__name__ if surrogate else None,
            "defect": defect,
            "seen_by": seen_by,
            "writes": list(writes),
            "order": order,
        }
    )


def _sound(name, calls, gradients, reference, **rest):
    _add("sound", name, calls, gradients, reference, **rest)


def _bad(name, calls, gradients, reference, defect, seen_by, **rest):
    _add("diseased", name, calls, gradients, reference, defect=defect, seen_by=seen_by, **rest)


def _report(name, calls, gradients, reference, defect, seen_by, **rest):
    _add("reports", name, calls, gradients, reference, defect=defect, seen_by=seen_by, **rest)


_sound(
    "scale",
    [
        (f"(torch.randn(4, 3, {D}), 2.0)", "{}"),
        (f"(torch.randn(3, 4, {D}).t(),)", "{'factor': -0.5}"),
        (f"(torch.randn(0, 3, {D}), 2.0)", "{}"),
        (f"(torch.randn((), {D}), 3.0)", "{}"),
    ],
    ["x"],
    ref_scale,
)
_sound(
    "mix",
    [
        (f"(torch.randn(4, 3, {D}), torch.randn(4, 3, {D}), 1.5)", "{}"),
        (f"(torch.randn(3, 4, {D}).t(), torch.randn(4, 3, {D}), -2.0)", "{}"),
        (f"(torch.randn(0, {D}), torch.randn(0, {D}), 1.0)", "{}"),
    ],
    ["x", "y"],
    ref_mix,
)
_sound(
    "observe",
    [
        (f"(torch.randn(4, 3, {D}), torch.zeros(3, {D}), 0.1)", "{}"),
        (f"(torch.randn(1, 2, {D}), torch.ones(2, {D}), 0.5)", "{}"),
    ],
    [],
    ref_observe,
    writes=["state"],
)
_sound(
    "center",
    [
        (f"(torch.randn(4, 3, {D}), torch.ones(3, {D}), 0.1)", "{}"),
        (f"(torch.randn(3, 4, {D}).t(), torch.zeros(3, {D}), 0.5)", "{}"),
    ],
    ["x"],
    ref_center,
    writes=["state"],
)
_sound(
    "weighted_sum",
    [
        (f"([torch.randn(4, 3, {D}), torch.randn(4, 3, {D})], [0.5, -2.0])", "{}"),
        (f"([torch.randn(5, {D}), torch.randn(5, {D}), torch.randn(5, {D})], [1.0, 2.0, 3.0])", "{}"),
        (f"([torch.randn(0, 3, {D})], [1.0])", "{}"),
    ],
    ["tensors"],
    ref_weighted_sum,
)
_sound(
    "affine",
    [
        (f"(torch.randn(4, 3, {D}), torch.randn(3, {D}))", "{'gain': 2.0, 'shift': -1.0}"),
        (f"(torch.randn(2, 4, 3, {D}), torch.randn(3, {D}))", "{}"),
        (f"(torch.randn(4, 3, {D}),)", "{'gain': 0.5}"),
        (f"(torch.randn(4, 3, {D}), None)", "{}"),
        (f"(torch.randn(0, 3, {D}), torch.randn(3, {D}))", "{}"),
    ],
    ["x", "weight"],
    ref_affine,
)
_sound(
    "square_into",
    [
        (f"(torch.randn(4, 3, {D}), torch.zeros(4, 3, {D}))", "{}"),
        (f"(torch.randn(3, 4, {D}).t(), torch.zeros(4, 3, {D}))", "{}"),
        (f"(torch.randn(0, {D}), torch.zeros(0, {D}))", "{}"),
    ],
    [],
    ref_square_into,
    writes=["out"],
)
_sound("row_max", [MATRIX, (f"(torch.randn(2, 3, 5, {D}),)", "{}"), TURNED, EMPTY], ["x"], ref_row_max)
_sound(
    "leaky",
    [
        (f"(torch.randn(4, 3, {D}), 0.25)", "{}"),
        (f"(torch.randn(3, 4, {D}).t(),)", "{}"),
        (f"(torch.randn(0, 3, {D}), 0.25)", "{}"),
    ],
    ["x"],
    ref_leaky,
)
_sound("hard_round", [(f"(3 * torch.randn(4, 3, {D}),)", "{}"), *UNARY], ["x"], ref_hard_round, surrogate=sur_hard_round)
_sound(
    "spike",
    [
        (f"(torch.randn(4, 3, {D}), 2.0)", "{}"),
        (f"(torch.randn(3, 4, {D}).t(), 0.5)", "{}"),
        (f"(torch.randn(0, {D}), 1.0)", "{}"),
    ],
    ["x"],
    ref_spike,
    surrogate=sur_spike,
)
_sound("arcsinh_backward", PAIR, ["grad", "x"], ref_arcsinh_backward)
_sound("arcsinh", [*UNARY, (f"(torch.randn((), {D}),)", "{}")], ["x"], ref_arcsinh)
_sound(
    "tile",
    [
        (f"(torch.randn(4, 3, {D}), 2)", "{}"),
        (f"(torch.randn(5, {D}), 1)", "{}"),
        (f"(torch.randn(3, 4, {D}).t(), 3)", "{}"),
        (f"(torch.randn(0, 3, {D}), 2)", "{}"),
    ],
    ["x"],
    ref_tile,
)
_sound("project", LINEAR, ["x", "weight"], ref_project)
_sound(
    "swish",
    [
        (f"(torch.randn(2, 3, 4, 5, {D}),)", "{}"),
        (f"(torch.randn(2, 3, 4, 5, {D}).to(memory_format=torch.channels_last),)", "{}"),
        (f"(torch.randn(0, 3, 4, 5, {D}),)", "{}"),
        MATRIX,
    ],
    ["x"],
    ref_swish,
)

_bad(
    "sine", UNARY, ["x"], ref_sine, "The gradient is 1.7 times too large.", "gradient wrong by factor 1.7 at every element"
)
_bad(
    "exponent",
    [MATRIX, SQUARE, VECTOR],
    ["x"],
    ref_exponent,
    "The backward reads the memory of its cotangent in order, as if it were contiguous.",
    "gradient right for a contiguous cotangent, wrong for the same values transposed, strided or expanded",
    order=1,
)
_bad(
    "exponent_backward",
    PAIR[:2],
    [],
    ref_exponent_backward,
    "Reads the memory of its arguments in order, as if they were contiguous.",
    "result right for contiguous arguments, wrong for transposed ones of equal values",
)
_bad(
    "arctangent",
    [MATRIX, SQUARE, VECTOR, TURNED],
    ["x"],
    ref_arctangent,
    "The backward reads the memory of its cotangent in order, unless that is expanded.",
    "gradient right for a contiguous or expanded cotangent, wrong for the same values transposed or strided",
    order=1,
)
_bad(
    "arctangent_backward",
    PAIR[:2],
    [],
    ref_arctangent_backward,
    "Reads the memory of its first argument in order, unless that is expanded.",
    "result right for a contiguous or expanded cotangent, wrong for the same values transposed or strided",
)
_bad(
    "dense",
    [
        (f"(torch.randn(4, 3, {D}), torch.randn(3, 2, {D}), torch.randn(2, {D}))", "{}"),
        (f"(torch.randn(1, 5, {D}), torch.randn(5, 5, {D}), torch.randn(5, {D}))", "{}"),
    ],
    ["x", "weight", "bias"],
    ref_dense,
    "The bias gets None for a gradient.",
    "bias.grad stays None, the others are right",
)
_bad(
    "divide",
    PAIR[:2],
    ["a", "b"],
    ref_divide,
    "The gradients of the two arguments are swapped.",
    "gradient of a is that of b, and the other way round",
)
_bad(
    "gated",
    PAIR[:2],
    ["x", "weight"],
    ref_product,
    "The gradient of x forgets the weight when the weight needs no gradient.",
    "gradient of x right if weight.requires_grad, else equal to the cotangent",
)
_bad(
    "matmul",
    LINEAR,
    ["x", "weight"],
    ref_project,
    "The backward computes the gradients of both arguments even where only one is asked for.",
    "two matrix products in the backward where one suffices; all values right",
)
_bad(
    "blend",
    [
        (f"([torch.randn(4, 3, {D}), torch.randn(4, 3, {D})], [0.5, -2.0])", "{}"),
        (f"([torch.randn(5, {D}), torch.randn(5, {D}), torch.randn(5, {D})], [1.0, 2.0, 3.0])", "{}"),
    ],
    ["tensors"],
    ref_weighted_sum,
    "The gradients of the list of tensors come in reverse order.",
    "gradient of tensors[i] is that of tensors[n - 1 - i]",
)
_bad(
    "polar",
    UNARY,
    ["x"],
    ref_polar,
    "The cotangent of the second output is ignored.",
    "gradient of the sum of the second output is zero, that of the first is right",
)
_bad(
    "log_cosh",
    [
        (f"(torch.randn(4, 3, {D}),)", "{}"),
        (f"(torch.tensor([0.0, 1.0, 20.0, 720.0], {D}),)", "{}"),
        ("(torch.tensor([0.0, 1.0, 20.0, 100.0]).to(torch.bfloat16),)", "{}"),
    ],
    ["x"],
    ref_log_cosh,
    "The backward overflows for large arguments.",
    "gradient nan for x = 720 in float64, 100 in float32 and bfloat16 and 20 in float16, where 1 is right",
)
_bad(
    "gain",
    [
        ("((torch.rand(2048, 3) + 0.5).to(torch.bfloat16), torch.ones(3).to(torch.bfloat16))", "{}"),
        (f"(torch.randn(4, 3, {D}), torch.randn(3, {D}))", "{}"),
    ],
    ["x", "weight"],
    ref_product,
    "The weight gradient is summed row by row in the dtype of the arguments.",
    "gradient of weight off by half in bfloat16 over 2048 rows, right in float64",
)
_bad(
    "squared_error",
    [
        (f"(torch.randn(4, 3, {D}), torch.randn(4, 3, {D}))", "{}"),
        (f"(torch.randn(5, {D}), torch.randn(5, {D}), 'sum')", "{}"),
        (f"(torch.randn(5, {D}), torch.randn(5, {D}))", "{'reduction': 'none'}"),
    ],
    ["x", "target"],
    ref_squared_error,
    "With reduction mean the backward forgets to divide by the number of entries.",
    "gradient too large by the number of entries for mean, right for sum and none",
)
_bad(
    "cube",
    UNARY,
    ["x"],
    ref_cube,
    "The slope is kept on ctx without a graph, so the second derivative is lost.",
    "first derivative right, second zero or missing where 6x is right",
)
_bad(
    "row_scale",
    [
        (f"(torch.randn(4, 3, {D}), torch.randn(4, {D}))", "{}"),
        (f"(torch.randn(2, 5, {D}), torch.randn(2, {D}))", "{}"),
    ],
    ["x", "scale"],
    ref_row_scale,
    "Tensors are kept as attributes of ctx, so a later write by the caller changes the gradient without an error.",
    "after scale.mul_(2) between forward and backward the gradient of x is doubled; torch's own product raises",
)
_bad(
    "silu",
    UNARY,
    ["x"],
    ref_swish,
    "The gate is kept in one buffer for all calls of one shape, so a second call spoils the backward of the first.",
    "gradient right for one call, wrong for the first of two calls of equal shape",
    order=1,
)
_bad(
    "negate",
    UNARY,
    ["x"],
    ref_negate,
    "The backward writes over the cotangent it was given.",
    "the tensor passed as cotangent has changed sign after the backward",
)
_bad(
    "negate_backward",
    UNARY,
    [],
    ref_negate_backward,
    "Writes over its argument without declaring it.",
    "the argument has changed sign after the call",
)
_bad(
    "dropout",
    [(f"(torch.randn(40, 30, {D}), 0.5)", "{}"), (f"(torch.randn(500, {D}), 0.9)", "{}")],
    ["x"],
    ref_dropout,
    "The backward draws a mask of its own.",
    "entries that the forward dropped get a gradient, and kept ones get none",
)
_bad(
    "linear",
    LINEAR,
    ["x", "weight"],
    ref_project,
    "Adds 1e-9 to the weight without declaring it.",
    "weight in float64 is larger by 1e-9 after each call",
)
_bad(
    "track",
    [
        (f"(torch.randn(4, 3, {D}), torch.zeros(3, {D}), 0.1)", "{}"),
        (f"(torch.randn(1, 2, {D}), torch.ones(2, {D}), 0.5)", "{}"),
    ],
    [],
    ref_track,
    "Declares that it writes the average and does not.",
    "average is unchanged after the call, though its version has grown",
    writes=["average"],
)
_bad(
    "relu6",
    [
        (f"(4 * torch.randn(4, 3, {D}), False)", "{}"),
        (f"(4 * torch.randn(4, 3, {D}),)", "{}"),
        (f"(torch.randn(5, {D}),)", "{'active': False}"),
    ],
    ["x"],
    ref_relu6,
    "Returns its argument itself where not active, with a schema that says new memory.",
    "the result shares its memory with x; a write to the one changes the other",
)
_bad(
    "head",
    [(f"(torch.randn(5, 2, {D}), 2)", "{}"), (f"(torch.randn(4, {D}), 4)", "{}")],
    ["x"],
    ref_head,
    "Returns a view of its argument, with a schema that says new memory.",
    "the result shares its memory with x; a write to the one changes the other",
)
_bad(
    "scale",
    [(f"(torch.randn(4, 3, {D}), 2.0)", "{}"), (f"(torch.randn(5, {D}), -1.0)", "{}")],
    ["x"],
    ref_scale,
    "Counts its calls in a global and scales a little more with each.",
    "two calls with equal arguments differ",
)
_bad(
    "columns",
    [MATRIX, SQUARE],
    ["x"],
    ref_columns,
    "The fake kernel says row by row where the kernel returns column by column.",
    "stride (3, 1) of the fake result against (1, 4) of the real one",
)
_bad(
    "row_sum",
    [("(torch.randn(4, 3),)", "{}"), (f"(torch.randn(4, 3, {D}),)", "{}")],
    ["x"],
    ref_row_sum,
    "The fake kernel says the dtype of the argument where the kernel returns float64.",
    "dtype float32 of the fake result against float64 of the real one",
)
_bad(
    "block_sum",
    [(f"(torch.randn(7, {D}), 3)", "{}"), (f"(torch.randn(4, {D}), 2)", "{}"), (f"(torch.randn(0, {D}), 3)", "{}")],
    ["x"],
    ref_block_sum,
    "The fake kernel says one block for an empty vector where the kernel returns none.",
    "shape (1,) of the fake result against (0,) of the real one, for an empty vector alone",
)
_bad(
    "reverse",
    [MATRIX, VECTOR],
    ["x"],
    ref_reverse,
    "The fake kernel turns symbolic sizes into numbers, so a dynamic shape becomes a constant.",
    "torch.compile with a dimension marked dynamic raises a constraint violation; dynamic=True compiles once a size",
)
_bad(
    "pad_rows",
    [(f"(torch.randn(5, 3, {D}),)", "{}"), (f"(torch.randn(8, 2, {D}),)", "{}"), (f"(torch.randn(11, 3, {D}),)", "{}")],
    ["x"],
    ref_pad_rows,
    "The fake kernel says eight rows whatever the number of rows.",
    "shape (8, 3) of the fake result against (16, 3) of the real one, for more than eight rows",
)
_bad(
    "scale_by",
    [(f"(torch.randn(4, 3, {D}), torch.tensor(2.0, {D}))", "{}"), (f"(torch.randn(5, {D}), torch.tensor(0.0, {D}))", "{}")],
    ["x", "factor"],
    ref_product,
    "The fake kernel reads the number held in its argument.",
    "under FakeTensorMode the call raises DataDependentOutputException",
)
_bad(
    "clip",
    [(f"(torch.randn(4, 3, {D}), 0.5)", "{}"), (f"(torch.randn(3, 4, {D}).t(), 0.5)", "{}")],
    ["x"],
    ref_clip,
    "The fake kernel keeps the layout of the argument where the kernel returns new contiguous memory.",
    "strides of fake and real result agree for a contiguous argument and differ for a transposed one",
)
_bad(
    "softsign",
    UNARY,
    ["x"],
    ref_softsign,
    "The autograd key falls through, so the result needs no gradient.",
    "requires_grad of the result is False; a loss with another path to x silently misses this one",
)
_bad(
    "softplus",
    UNARY,
    ["x"],
    ref_softplus,
    "No autograd is registered; the backward warns and gives no gradient.",
    "the result has requires_grad True, x.grad stays None after backward",
)
_bad("tangent", UNARY, ["x"], ref_tangent, "The registered backward returns zeros.", "gradient zero at every element")
_bad(
    "mish",
    UNARY,
    ["x"],
    ref_mish,
    "The backward is registered for CUDA alone while the kernel is for the CPU.",
    "the result has requires_grad True, x.grad stays None after backward",
)
_bad(
    "quadratic",
    UNARY,
    ["x"],
    ref_quadratic,
    "The only kernel sits under the Autograd key.",
    "under torch.inference_mode a call with an inference tensor raises NotImplementedError",
)
_bad(
    "binarize",
    UNARY,
    ["x"],
    ref_sign,
    "A composite of a Function: exported and decomposed, its backward is lost.",
    "gradient one in eager mode, zero after torch.export.export(...).run_decompositions().module()",
    surrogate=sur_identity,
)
_bad(
    "row_mix",
    [(f"(torch.randn(3, 3, {D}), torch.randn(3, 3, {D}))", "{}"), PAIR[1]],
    ["x", "y"],
    ref_product,
    "The vmap rule ignores in_dims.",
    "vmap with in_dims=(0, 1), (1, 0) or (1, None) differs from the loop over square arguments; (0, 0) agrees",
)
_bad(
    "channel_bias",
    [
        (f"(torch.randn(2, 3, 4, 5, {D}), torch.randn(3, {D}))", "{}"),
        (f"(torch.randn(2, 3, 4, 5, {D}).to(memory_format=torch.channels_last), torch.randn(3, {D}))", "{}"),
    ],
    ["x", "bias"],
    ref_channel_bias,
    "Reads channels-last images in the order of their memory.",
    "result right for contiguous and sliced images, wrong for channels-last ones",
)
_bad(
    "position_code",
    [
        ("(torch.tensor([1.0, 257.0, 1001.0]), torch.tensor([1.0, 0.5]))", "{}"),
        (f"(torch.randn(4, {D}), torch.randn(3, {D}))", "{}"),
    ],
    ["position", "frequency"],
    ref_position_code,
    "The autocast rule casts positions to bfloat16, which merges neighbouring positions.",
    "under autocast in bfloat16 the codes of 1001 and 1000 are equal and off by up to 1",
)
_bad(
    "affine",
    [
        (f"(torch.randn(4, 3, {D}), None)", "{}"),
        (f"(torch.randn(4, 3, {D}), torch.randn(3, {D}))", "{}"),
        (f"(torch.randn(4, 3, {D}),)", "{'gain': 3.0}"),
    ],
    ["x", "weight"],
    ref_gained_affine,
    "Without a weight the backward forgets the gain.",
    "gradient of x right with a weight, too small by the gain without",
)

_report(
    "fused_gelu_backward",
    PAIR[:2],
    [],
    ref_quick_gelu_backward,
    "Reads the memory of its first argument in order.",
    "result wrong for a narrow view of equal values",
)
_report(
    "fused_gelu",
    [MATRIX, SQUARE],
    ["x"],
    ref_quick_gelu,
    "The backward reads the narrow cotangent that torch.cat gives as if it were contiguous.",
    "gradient wrong if the result goes through torch.cat along dimension 1, right for a contiguous cotangent",
    order=1,
)
_report(
    "RoundThrough",
    UNARY,
    ["x"],
    ref_round,
    "Compiled under torch.func.grad, the backward is dropped.",
    "torch.compile(torch.func.grad(f)) gives 0 where torch.func.grad(f) gives 1",
    surrogate=sur_identity,
)
_report(
    "DoubledSquare",
    UNARY,
    ["x"],
    ref_doubled_square,
    "An intermediate on ctx carries no graph, so the second derivative is lost.",
    "first derivative right, second missing where 8 is right",
)
_report(
    "OffloadedLogSoftmax",
    [
        (f"(torch.randn(4, 3, {D}), torch.randn(3, 5, {D}))", "{}"),
        (f"(torch.randn(2, 5, {D}), torch.randn(5, 5, {D}))", "{}"),
    ],
    ["hidden", "weight"],
    ref_log_softmax_linear,
    "The backward accumulates into the leaf and returns the same, so the weight gradient is doubled.",
    "weight.grad doubled after backward(), hidden.grad right",
)
_report(
    "token_loss",
    [
        (f"(torch.randn(4, 3, {D}), torch.randn(3, 5, {D}), torch.tensor([0, 1, 2, 3]))", "{}"),
        (f"(torch.randn(2, 5, {D}), torch.randn(5, 3, {D}), torch.tensor([2, 0]))", "{}"),
    ],
    ["hidden", "weight"],
    ref_token_loss,
    "The gradients are multiplied by the first entry of the cotangent.",
    "gradient right for a constant cotangent, wrong for any other",
)
_report(
    "InPlaceCrossEntropy",
    LOGITS,
    ["logits"],
    ref_cross_entropy,
    "The forward stores the gradient in the memory of its argument, and no version counter grows.",
    "logits change with _version unchanged; through softmax the gradient is silently wrong",
)
_report(
    "MaskedSoftmax",
    [MATRIX, TURNED],
    ["x"],
    ref_softmax,
    "The backward writes over the cotangent.",
    "the tensor passed as cotangent holds the gradient after the backward",
    order=1,
)
_report(
    "wide_softmax",
    [("(torch.randn(2, 4096),)", "{}"), (f"(torch.randn(4, 3, {D}),)", "{}")],
    ["x"],
    ref_softmax,
    "Returns zeros.",
    "torch.allclose with atol 1e-2 accepts rows of 4096 entries; the rows sum to 0 and not to 1",
)
_report(
    "ChunkedLoss",
    [
        (f"(torch.randn(6, 3, {D}), torch.randn(3, 5, {D}), torch.tensor([0, 1, 2, 3, 4, 0]), 2)", "{}"),
        (f"(torch.randn(2, 5, {D}), torch.randn(5, 3, {D}), torch.tensor([2, 0]), 1)", "{}"),
    ],
    ["hidden", "weight"],
    ref_chunked_loss,
    "The backward ignores the cotangent.",
    "gradient of 8 times the loss equals the gradient of the loss",
)
_report(
    "z_loss",
    [LOGITS[0], (LOGITS[1][0], "{'multiplier': 0.01}")],
    ["logits"],
    ref_z_loss,
    "With the multiplier zero, 1e-4 is used.",
    "result too large by 1e-4 mean(lse^2) for multiplier 0, right for others",
)
_report(
    "token_logprob_backward",
    [(f"(torch.randn(2, {D}), torch.randn(2, 3, {D}), torch.tensor([2, 0]))", "{}"), (f"(torch.ones(3, {D}), torch.randn(3, 4, {D}), torch.tensor([2, 0, 3]))", "{}")],
    [],
    ref_token_logprob_backward,
    "Reads the memory of its first argument in order.",
    "result wrong for a strided vector of equal values",
)
_report(
    "token_logprob",
    LOGITS,
    ["logits"],
    ref_token_logprob,
    "The backward reads a strided cotangent as dense.",
    "gradient right for a dense cotangent, wrong for base[::2] of equal values",
    order=1,
)
_report(
    "rms_norm",
    [
        ("(torch.randn(2048, 4).abs().to(torch.bfloat16), torch.ones(4).to(torch.bfloat16))", "{}"),
        ("(torch.randn(4, 3), torch.randn(3))", "{}"),
    ],
    ["x", "weight"],
    ref_rms_norm,
    "The weight gradient is summed over the rows in bfloat16.",
    "gradient of weight off by tens of percent in bfloat16 over 2048 rows, right in float32",
)
_report(
    "expert",
    [
        (f"(torch.randn(4, 3, {D}), torch.randn(3, 8, {D}), 5)", "{}"),
        (f"(torch.randn(2, 3, {D}), torch.randn(3, 4, {D}), 4)", "{}"),
    ],
    [],
    ref_expert,
    "The fake kernel says the padded width.",
    "shape (4, 8) of the fake result against (4, 5) of the real one",
)
_report(
    "grad_weight",
    [
        (f"(torch.randn(4, 3, {D}), torch.randn(4, 5, {D}))", "{}"),
        (f"(torch.randn(2, 3, {D}), torch.randn(2, 2, {D}))", "{}"),
    ],
    [],
    ref_grad_weight,
    "The fake kernel says row by row where the kernel returns column by column.",
    "stride (5, 1) of the fake result against (1, 3) of the real one",
)
_report(
    "shift_sine",
    PAIR[:2],
    [],
    ref_shift_sine,
    "Writes to both arguments without declaring it.",
    "x and y hold their sines after the call",
)
_report(
    "ScaledLoss",
    PAIR[:2],
    ["x"],
    ref_squared_residual,
    "The cotangent is replaced by its mean.",
    "gradient right for a constant cotangent, wrong for any other",
)
_report(
    "SquareByHand",
    UNARY,
    ["x"],
    ref_square,
    "Compiled, the jvp of the class is dropped.",
    "torch.compile of torch.func.jvp gives 2x where torch.func.jvp gives 20x",
    surrogate=sur_ten_squares,
)
_report(
    "swish_pair_backward",
    [(f"(torch.randn(4, 3, {D}), torch.randn(4, 3, {D}), torch.randn(4, 3, {D}))", "{}")],
    [],
    ref_swish_pair_backward,
    "Reads the memory of its first two arguments in order, unless that is expanded.",
    "result wrong for a narrow view of equal values",
)
_report(
    "swish_pair",
    [MATRIX, SQUARE],
    ["x"],
    ref_swish_pair,
    "The backward takes both cotangents for contiguous, as the outputs are, unless expanded.",
    "gradient wrong if the outputs go through torch.cat along dimension 1, right for contiguous cotangents",
    order=1,
)
_report(
    "HeadLoss",
    [
        (f"(torch.randn(4, 3, {D}), torch.randn(3, 5, {D}), torch.tensor([0, 1, 2, 3]))", "{}"),
        (f"(torch.randn(2, 5, {D}), torch.randn(5, 3, {D}), torch.tensor([2, 0]))", "{}"),
    ],
    ["hidden", "weight"],
    ref_head_loss,
    "The gradients exist only where the rows require one, and are saved in any case.",
    "UnboundLocalError where hidden requires no gradient, under torch.no_grad or with a weight that does",
    order=1,
)
_report(
    "MaskedTokenLoss",
    [
        (f"(torch.randn(4, 3, {D}), torch.randn(3, 5, {D}), torch.tensor([-100, 1, 2, 3]))", "{}"),
        (f"(torch.randn(2, 5, {D}), torch.randn(5, 3, {D}), torch.tensor([2, 0]))", "{}"),
    ],
    ["hidden", "weight"],
    ref_masked_token_loss,
    "The gradients are multiplied by the first token's cotangent.",
    "all gradients zero where the mask drops the first token, right for a constant cotangent",
    order=1,
)
_report(
    "triangle_attention",
    [
        (f"(torch.randn(4, 3, {D}), torch.randn(5, 3, {D}), torch.randn(5, 3, {D}))", "{}"),
        (f"(torch.randn(3, 4, {D}).t(), torch.randn(5, 3, {D}), torch.randn(5, 3, {D}))", "{}"),
    ],
    [],
    ref_attention,
    "The fake kernel keeps the layout of its argument where the kernel returns contiguous memory.",
    "stride (1, 4) of the fake result against (3, 1) of the real one, for a transposed argument",
)
_report(
    "Scan",
    [
        (f"(torch.randn(4, 3, {D}), 0.9)", "{}"),
        (f"(torch.randn(5, 2, {D}), 0.5)", "{}"),
    ],
    ["x"],
    ref_scan,
    "forward takes ctx and there is no setup_context, so torch.vmap refuses it.",
    "torch.vmap raises RuntimeError",
)
_report(
    "stored_gradient_loss",
    LOGITS,
    ["logits"],
    ref_cross_entropy,
    "The kernel stores the gradient in its argument without declaring it.",
    "logits change with _version unchanged; through softmax the gradient is silently wrong",
    order=1,
)
