"""The published functions whose audits are held to a truth, and which of their gradients are meant to be as they are.

What is typed here is a call and a judgement with its reason. Everything else of a truth is measured (`truth.py`).
"""

from __future__ import annotations

from collections.abc import Mapping

from gradspec_lab.audits.audit_table import AUDITED, Audited

#: Every function that has a truth: those of the how-to's record first.
PUBLISHED = (
    *AUDITED,
    Audited(
        package="entmax",
        version="1.3",
        target="entmax.activations:Entmax15Function",
        case="(randn(4, 6),)",
    ),
    Audited(
        package="entmax",
        version="1.3",
        target="entmax.root_finding:EntmaxBisectFunction",
        case="(randn(4, 6), full((4, 1), 1.5))",
    ),
    Audited(
        package="entmax",
        version="1.3",
        target="entmax.losses:SparsemaxLossFunction",
        case="(randn(4, 6), tensor([0, 2, 5, 1]))",
    ),
    Audited(
        package="entmax",
        version="1.3",
        target="entmax.losses:Entmax15LossFunction",
        case="(randn(4, 6), tensor([0, 2, 5, 1]))",
    ),
    Audited(
        package="snntorch",
        version="1.0.0",
        target="snntorch.surrogate:FastSigmoid",
        case="(randn(2, 3), 25.0)",
    ),
    Audited(
        package="snntorch",
        version="1.0.0",
        target="snntorch.surrogate:StochasticSpikeOperator",
        case="(randn(2, 3), 0.0, 0.2)",
    ),
    Audited(
        package="snntorch",
        version="1.0.0",
        target="snntorch.surrogate:LeakySpikeOperator",
        case="(randn(2, 3), 0.1)",
    ),
    Audited(
        package="snntorch",
        version="1.0.0",
        target="snntorch.functional.quant:StateQuant",
        case="(randn(2, 3), tensor([-1.0, -0.5, 0.0, 0.5, 1.0]))",
    ),
    Audited(
        package="spikingjelly",
        version="2.0.0",
        target="spikingjelly.activation_based.surrogate:q_pseudo_spike",
        case="(randn(2, 3), 2.0)",
    ),
    Audited(
        package="spikingjelly",
        version="2.0.0",
        target="spikingjelly.activation_based.surrogate:poisson_pass",
        case="(rand(2, 3),)",
    ),
    Audited(
        package="spikingjelly",
        version="2.0.0",
        target="spikingjelly.activation_based.quantize:KBitQuantizeATGF",
        case="(rand(2, 3), 2)",
    ),
    Audited(
        package="brevitas",
        version="0.13.4",
        target="brevitas.ops.autograd_ste_ops:TensorClampSteFn",
        case="(randn(2, 3), tensor(-0.5), tensor(0.5))",
    ),
    Audited(
        package="brevitas",
        version="0.13.4",
        target="brevitas.ops.autograd_ste_ops:InplaceTensorClampSteFn",
        case="(randn(2, 3), tensor(-0.5), tensor(0.5))",
    ),
    Audited(
        package="brevitas",
        version="0.13.4",
        target="brevitas.ops.autograd_ste_ops:AbsBinarySignGradFn",
        case="(randn(2, 3),)",
    ),
    Audited(
        package="brevitas",
        version="0.13.4",
        target="brevitas_examples/bnn_pynq/models/losses.py:squared_hinge_loss",
        case="(randn(2, 3), tensor([[1.0, -1.0, -1.0], [-1.0, -1.0, 1.0]]))",
    ),
    Audited(
        package="timm",
        version="1.0.31",
        target="timm/layers/activations_me.py:HardMishAutoFn",
        case="(randn(2, 3),)",
    ),
    Audited(
        package="sinabs",
        version="3.1.3",
        target="sinabs/activation/quantize.py:StochasticRounding",
        case="(randn(2, 3),)",
    ),
    Audited(
        package="bnn",
        version="0.1.2",
        target="bnn/ops.py:SignActivation",
        case="(randn(2, 3),)",
    ),
    Audited(
        package="geffnet",
        version="1.0.2",
        target="geffnet/activations/activations_me.py:MishJitAutoFn",
        case="(randn(2, 3),)",
    ),
    Audited(
        package="geffnet",
        version="1.0.2",
        target="geffnet/activations/activations_me.py:HardSwishJitAutoFn",
        case="(randn(2, 3),)",
    ),
    Audited(
        package="efficientnet_pytorch",
        version="0.7.1",
        target="efficientnet_pytorch/utils.py:SwishImplementation",
        case="(randn(2, 3),)",
    ),
    Audited(
        package="pytorch_toolbelt",
        version="0.8.0",
        target="pytorch_toolbelt/losses/bitempered_loss.py:ComputeNormalization",
        case="(randn(4, 6), 1.5, 5)",
    ),
    Audited(
        package="monai",
        version="1.6.1",
        target="monai/networks/blocks/activation.py:SwishImplementation",
        case="(randn(2, 3),)",
    ),
    Audited(
        package="kymatio",
        version="0.3.0",
        target="kymatio/backend/torch_backend.py:ModulusStable",
        case="(randn(4, 3, 2),)",
    ),
    Audited(
        package="gpytorch",
        version="1.15.2",
        target="gpytorch/functions/_log_normal_cdf.py:LogNormalCDF",
        case="(tensor([-2.5, -1.2, -0.6, 0.1, 0.7, 1.9]),)",
    ),
    Audited(
        package="pypose",
        version="0.9.5",
        target="pypose.lietensor.operation:SO3_Log",
        case="(tensor([[0.5, 0.5, 0.1, 0.7], [0.48, -0.6, 0.0, 0.64]]),)",
    ),
    Audited(
        package="pypose",
        version="0.9.5",
        target="pypose.lietensor.operation:so3_Exp",
        case="(randn(2, 3),)",
    ),
    Audited(
        package="pypose",
        version="0.9.5",
        target="pypose.lietensor.operation:SO3_Mul",
        case="(tensor([[0.5, 0.5, 0.1, 0.7]]), tensor([[0.48, -0.6, 0.0, 0.64]]))",
    ),
    Audited(
        package="pypose",
        version="0.9.5",
        target="pypose.lietensor.operation:SO3_Act",
        case="(tensor([[0.5, 0.5, 0.1, 0.7]]), randn(1, 3))",
    ),
    Audited(
        package="torch_struct",
        version="0.5",
        target="torch_struct.semirings.sparse_max:_SimplexProject",
        case="(randn(4, 6), -1)",
    ),
    Audited(
        package="torch_struct",
        version="0.5",
        target="torch_struct.semirings.sparse_max:_SparseMaxGrad",
        case="(tensor([[0.0, 0.3, 0.7], [0.2, 0.8, 0.0]]), tensor(-1))",
    ),
    Audited(
        package="speechbrain",
        version="1.1.2",
        target="speechbrain/nnet/quaternion_networks/q_ops.py:QuaternionLinearCustomBackward",
        case="(randn(3, 8), randn(2, 2), randn(2, 2), randn(2, 2), randn(2, 2), randn(8))",
    ),
    Audited(
        package="speechbrain",
        version="1.1.2",
        target="speechbrain/lobes/models/PIQ.py:VectorQuantizationStraightThrough",
        case="(randn(2, 2, 2, 4), randn(6, 4), tensor([0, 1]), 2, False, 2, True)",
    ),
    Audited(
        package="megatron_core",
        version="0.16.1",
        target="megatron.core.transformer.moe.moe_utils:MoEAuxLossAutoScaler",
        case="(randn(4, 3), tensor(0.5))",
    ),
    Audited(
        package="megatron_core",
        version="0.16.1",
        target="megatron.core.utils:MakeViewlessTensor",
        case="(randn(2, 3), True)",
    ),
    Audited(
        package="nncf",
        version="3.4.0",
        target="nncf/torch/functions.py:STThreshold",
        case="(randn(2, 3), 0.5)",
    ),
    Audited(
        package="dalib",
        version="0.2",
        target="dalib/modules/grl.py:GradientReverseFunction",
        case="(randn(2, 3), 0.5)",
    ),
    Audited(
        package="rockpool",
        version="3.1.0",
        target="rockpool.nn.modules.torch.lif_torch:StepPWL",
        case="(randn(2, 3), tensor(1.0), tensor(0.5), tensor(1024.0))",
    ),
    Audited(
        package="rockpool",
        version="3.1.0",
        target="rockpool.nn.modules.torch.lif_torch:PeriodicExponential",
        case="(randn(2, 3), tensor(1.0), 0.5, tensor(1024.0))",
    ),
    Audited(
        package="rockpool",
        version="3.1.0",
        target="rockpool.nn.modules.torch.lif_bitshift_torch:Bitshift",
        case="(randn(2, 3), tensor(2.0), tensor(0.75))",
    ),
    Audited(
        package="pytorch_tabnet",
        version="4.1.0",
        target="pytorch_tabnet/sparsemax.py:SparsemaxFunction",
        case="(randn(4, 6), -1)",
    ),
    Audited(
        package="pytorch_tabnet",
        version="4.1.0",
        target="pytorch_tabnet/sparsemax.py:Entmax15Function",
        case="(randn(4, 6), -1)",
    ),
    Audited(
        package="pytorch_tabnet",
        version="4.1.0",
        target="pytorch_tabnet/sparsemax.py:Entmoid15",
        case="(randn(2, 3),)",
    ),
    Audited(
        package="fairscale",
        version="0.4.13",
        target="fairscale.nn.pipe.dependency:Join",
        case="(randn(2, 3), zeros(1))",
    ),
    Audited(
        package="hypll",
        version="0.1.1",
        target="hypll.manifolds.poincare_ball.math.stats:FrechetMean",
        case="(tensor([[0.1, 0.2], [-0.3, 0.1], [0.2, -0.4]]), tensor(1.0), -1, [0], False)",
    ),
    Audited(
        package="peft",
        version="0.21.2",
        target="peft/tuners/c3a/utils.py:BlockCircularConvolution",
        case="(randn(2, 6), randn(2, 2, 3))",
    ),
)

_STEP = {"first": "forward is a step, and its docstring gives the function whose derivative backward applies"}
_STRAIGHT = {"first": "a straight-through estimator, and its docstring or name says so"}
_REVERSED = {"first": "gradient reversal: the name says it"}
_TANGENT = {"first": "gradients of PyPose are those of a left perturbation in the Lie algebra, padded with a zero"}
#: Of a function, the questions (`truth_answers.py`) whose answer is meant to be as it is, and how one knows.
DELIBERATE: Mapping[str, Mapping[str, str]] = {
    "snntorch:ATan": _STEP,
    "snntorch:FastSigmoid": _STEP,
    "snntorch:StochasticSpikeOperator": _STEP,
    "snntorch:StraightThroughEstimator": _STRAIGHT,
    "snntorch:StateQuant": _STRAIGHT,
    "spikingjelly:atan": _STEP,
    "spikingjelly:q_pseudo_spike": _STEP,
    "spikingjelly:poisson_pass": _STRAIGHT,
    "spikingjelly:KBitQuantizeATGF": _STRAIGHT,
    "pytorch_revgrad:RevGrad": _REVERSED,
    "dalib:GradientReverseFunction": _REVERSED,
    "brevitas:RoundSteFn": _STRAIGHT,
    "brevitas:TensorClampSteFn": {
        **_STRAIGHT,
        "ignored argument": "the docstring says that the gradients of min_val and max_val are None",
    },
    "brevitas:InplaceTensorClampSteFn": {
        **_STRAIGHT,
        "ignored argument": "the docstring says that the gradients of min_val and max_val are None",
    },
    "compressai:LowerBoundFunction": {
        "first": "the docstring of LowerBound: the identity where x is moved towards the bound",
        "linear": "which side x is moved to is the sign of the cotangent: the docstring of LowerBound",
    },
    "sinabs:Quantize": _STRAIGHT,
    "sinabs:StochasticRounding": _STRAIGHT,
    "bnn:SignActivation": _STRAIGHT,
    "pypose:SO3_Log": _TANGENT,
    "pypose:so3_Exp": _TANGENT,
    "pypose:SO3_Mul": _TANGENT,
    "pypose:SO3_Act": _TANGENT,
    "torch_struct:_SparseMaxGrad": {"first": "it stands for the gradient of sparsemax, and backward for its Jacobian"},
    "speechbrain:VectorQuantizationStraightThrough": _STRAIGHT,
    "megatron_core:MoEAuxLossAutoScaler": {
        "first": "the docstring: backward adds the gradient of the auxiliary loss, scaled",
        "linear": "the gradient of the auxiliary loss is there whatever the cotangent is",
    },
    "nncf:STThreshold": _STRAIGHT,
    "rockpool:StepPWL": _STEP,
    "rockpool:PeriodicExponential": {"first": "forward is a step, and backward a periodic exponential: the name"},
}

if __name__ == "__main__":  # what pip installs
    print(*sorted({f"{audited.package}=={audited.version}" for audited in PUBLISHED}))
