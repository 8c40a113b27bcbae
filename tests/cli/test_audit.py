"""`gradspec audit`: a call as text in; findings, a proposal and an exit code out."""

import json

import pytest

OPS = """
import torch

class Reversed(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.view_as(x)

    @staticmethod
    def backward(ctx, grad):
        return -grad

class Counts(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, slope):
        ctx.save_for_backward(x)
        return slope * x.exp()

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return grad * x.exp().detach(), None

class Sound(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, scale: float):
        ctx.scale = scale
        return x * scale

    @staticmethod
    def backward(ctx, grad):
        return grad * ctx.scale, None

class Both(torch.autograd.Function):
    # Right where the rows of both are shared: it adds the parts of this rank, and takes them for placed as those of x.
    @staticmethod
    def forward(ctx, x, z):
        if hasattr(x, "placements") and hasattr(z, "placements"):
            part = x.to_local() + z.to_local()[: len(x.to_local())]
            return type(x).from_local(part, x.device_mesh, x.placements)
        return x + z

    @staticmethod
    def backward(ctx, grad):
        return grad.clone(), grad.clone()

class Refuses(Both):
    @staticmethod
    def forward(ctx, x, z):
        if hasattr(x, "placements") and hasattr(z, "placements") and x.placements != z.placements:
            raise ValueError("z is placed otherwise")
        return x + z

class Drops(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, weight):
        ctx.save_for_backward(x, weight)
        return x * weight

    @staticmethod
    def backward(ctx, grad):
        x, weight = ctx.saved_tensors
        grad_weight = (grad * x).sum(0)
        if hasattr(grad_weight, "placements"):
            grad_weight = grad_weight.from_local(grad_weight.to_local(), grad_weight.device_mesh, run_check=False)
        return grad * weight, grad_weight

class Layer(torch.nn.Module):
    pass

def plain(x):
    return x.exp()

def cut(x, w):
    return x * w.detach()
"""


@pytest.fixture
def audit(gradspec, folder):
    (folder / "ops.py").write_text(OPS)
    return lambda *words: gradspec("audit", *words)


def test_a_call_that_passes_says_what_was_not_tried(audit):
    how = ("--case", "(randn(2), randn(2))", "--law", "surrogate", "--zero-gradient", "w")
    words = "Other sizes, values and options were not tried: `--sweep` does."

    assert words in audit("ops:cut", *how).stdout
    assert words not in audit("ops:cut", *how, "--sweep").stdout
    assert words not in audit("ops:cut", *how[:-2], "--wrt", "w").stdout  # it fails


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (
            ("--wrt", "w"),
            1,
            "Again: gradspec audit ops:cut --case '(randn(2), randn(2))' --wrt w --law surrogate --seed 0",
        ),
        (("--zero-gradient", "w"), 0, "Nothing is wrong in what was asked about."),
        ((), 0, "Is `w` trained? No gradient reaches `w`, and the output moves with it."),
        (("--strict",), 1, "Is `w` trained?"),
        (
            ("--wrt", "v"),
            2,
            "wrt names 'v', and no call of cut has a floating-point tensor of this name: there are x, w",
        ),
    ],
)
def test_a_lost_gradient_is_told_asked_about_or_answered(audit, words, code, said):
    result = audit("ops:cut", "--case", "(randn(2), randn(2))", "--law", "surrogate", "--law", "empty", *words)

    assert result.exit_code == code
    assert said in " ".join((result.stdout + result.stderr).split())


def test_a_call_marks_what_is_trained(audit):
    result = audit("ops:cut", "--case", "(randn(2), randn(2, requires_grad=True))", "--law", "surrogate")

    assert result.exit_code == 1
    assert "no gradient reaches `w`, and the output moves with it" in result.stdout


def test_a_question_and_the_proposal(audit):
    result = audit("ops:Reversed", "--case", "(randn(2, 3),)", "--law", "surrogate")

    assert result.exit_code == 0
    assert "Is the gradient of `x` meant? Forward hands on what it is given" in " ".join(result.stdout.split())
    assert "surrogate=lambda x: -x,  # agrees with every case" in result.stdout
    assert "from ops import Reversed" in result.stdout


def test_a_sound_function_exits_with_zero_and_its_proposal_can_be_saved(audit, folder):
    result = audit("ops.py:plain", "--case", "randn(3)", "--law", "retained_graph", "--proposal", "spec.py")

    assert result.exit_code == 0
    assert "primal=lambda x: x.exp(),  # agrees with every case" in (folder / "spec.py").read_text()


def test_json_is_the_report_and_nothing_else(audit):
    result = audit("ops:plain", "--case", "randn(3)", "--law", "layout", "--format", "json")

    assert [v["status"] for v in json.loads(result.stdout)["verdicts"]] == ["holds"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("ops", "--case", "randn(3)"), "'ops' names a module: write ops:NAME for something in it"),
        (("ops:Revresed", "--case", "randn(3)"), "'ops' has no 'Revresed': did you mean 'Reversed'?"),
        (
            ("ops:Reversed", "--case", "randn(3"),
            "'randn(3' is not a call: write the arguments as in (randn(2, 3), 0.5)",
        ),
        (("ops:OPS", "--case", "randn(3)"), "'ops' has no 'OPS'"),
        (
            ("ops:plain", "--case", "(randn(3), 1)"),
            "the case '(randn(3), 1)' does not fit plain(x): too many positional arguments",
        ),
        (("ops:plain", "--case", "randn(3)", "--case", "randn(3)"), "two cases are the same: leave one out"),
        (
            ("ops:plain", "--case", "randn(3)", "--law", "vjp"),
            "the law 'vjp' needs a spec, and an audit has none: leave it out, write the spec, or give --reference",
        ),
        (
            ("ops:plain",),
            "an audit needs a call: give --case '(randn(2, 3),)'",
        ),
        (
            ("ops:Layer", "--case", "randn(3)"),
            "Layer is a class of modules: audit an instance",
        ),
        (
            ("--all", "ops", "--case", "randn(3)"),
            "--all goes with no --case, --sweep, --reference, --surrogate, --gradient, --wrt, --zero-gradient,",
        ),
        (("--all", "ops:plain"), "--all takes a module, and 'ops:plain' names something in one: write ops"),
        (("ops:torch", "--case", "randn(3)"), "an audit takes a Function or a callable, got <module 'torch'"),
    ],
)
def test_what_cannot_be_used_is_one_line(audit, words, message):
    result = audit(*words)

    assert result.exit_code == 2
    assert result.stdout == ""
    assert message in result.stderr
    assert result.stderr.count("\n") == 1


def test_a_plain_call_that_fails_says_so_and_names_no_law(audit):
    result = audit("ops:Reversed", "--case", "(3,)")

    assert result.exit_code == 1
    assert "a plain call raises AttributeError: 'int' object has no attribute 'view_as'" in result.stdout
    assert "Again:  gradspec audit ops:Reversed --case '(3,)' --seed 0" in result.stdout
    assert "spec to complete" not in result.stdout


def test_a_module_without_a_function_is_said(audit, folder):
    (folder / "empty.py").write_text("import torch\n")
    result = audit("--all", "empty")

    assert (result.exit_code, result.stderr) == (
        2,
        "Error: 'empty' defines no Function: name the module that does\n",
    )


def test_a_function_whose_signature_suggests_no_call_is_named_and_not_asked(audit, folder):
    (folder / "picky.py").write_text(
        "import torch\n\nclass Picky(torch.autograd.Function):\n    @staticmethod\n"
        "    def forward(ctx, x, way):\n        return {'fast': x * 1}[way]\n\n"
        "    @staticmethod\n    def backward(ctx, grad):\n        return grad, None\n"
    )
    result = audit("--all", "picky")
    told = " ".join(result.stdout.split())

    assert result.exit_code == 0
    assert "Picky not asked" in told
    assert "give one with --case" in told
    assert result.stdout.endswith("All about one of them: gradspec audit picky:Picky --case 'CALL'\n")


def test_every_function_of_a_module_is_audited_and_the_most_dangerous_stands_first(audit):
    result = audit("--all", "ops")
    rows = [line.split() for line in result.stdout.splitlines() if "silently" in line or "found" in line]

    assert result.exit_code == 1
    assert [row[0] for row in rows] == ["Counts", "Sound"]
    assert "Reversed" in result.stdout  # asked about
    assert "nothing found with a guessed call: (randn(4, 3), 0.5)" in result.stdout


IMAGES = """
import torch

class Pooled(torch.autograd.Function):
    # The mean over the last dimension of images.
    @staticmethod
    def forward(ctx, x):
        ctx.width = x.shape[-1]
        return x.mean(-1)

    @staticmethod
    def backward(ctx, grad):
        return {factor} * grad.unsqueeze(-1).repeat(*[1] * grad.ndim, ctx.width) / ctx.width
"""


@pytest.mark.parametrize(("factor", "code"), [(1, 0), (2, 1)])
def test_what_is_wrong_with_a_guessed_call_is_held_to_images_too(gradspec, folder, factor, code):
    (folder / "images.py").write_text(IMAGES.format(factor=f"({factor} if grad.ndim == 3 else 3)"))
    result = gradspec("audit", "--all", "images")
    assert (result.exit_code, "wrong silently" in result.stdout) == (code, bool(code))
    said = "wrong with a guessed call, (randn(4, 3),), and right with (randn(2, 3, 4, 5),): give one of yours"
    assert (said in " ".join(result.stdout.split())) is not bool(code)


def test_rows_that_ranks_share_are_asked_of_an_audit_that_says_so(audit):
    call = ("ops:Drops", "--case", "(randn(4, 3), randn(3))", "--law", "sharded")

    sound = audit("ops:Sound", "--case", "(randn(4, 3), 0.5)", "--law", "sharded", "--sharded")
    assert (sound.exit_code, "Sound on 1 case: 1 law holds" in sound.stdout) == (0, True)

    sick = audit(*call, "--sharded")
    assert sick.exit_code == 1
    assert "gradient of `weight` with `x` shard(0), `weight` replicate" in " ".join(sick.stdout.split())
    assert f"Again:  gradspec audit ops:Drops --case '{call[2]}' --law sharded --sharded --seed 0" in sick.stdout
    assert "DROPS = FunctionSpec(" in sick.stdout

    assert "the law 'sharded' needs a spec" in audit(*call).stderr
    without_rows = audit("ops:Sound", "--case", "(randn(()), 0.5)", "--sharded")
    assert without_rows.exit_code == 2
    assert "no argument has the batch dimension of the output" in without_rows.stderr


def test_rows_of_one_argument_alone_are_shared_too(audit):
    call = ("--case", "(randn(4, 3), randn(4, 3))", "--law", "sharded", "--sharded")

    wrong = audit("ops:Both", *call)
    assert wrong.exit_code == 1
    assert "value with `x` shard(0), `z` replicate on rank 0 differs" in " ".join(wrong.stdout.split())

    refused = audit("ops:Refuses", *call, "--verbose")
    said = "not promised: the call with `x` shard(0), `z` replicate raised ValueError: z is placed otherwise"
    assert (refused.exit_code, said in " ".join(refused.stdout.split())) == (0, True)
