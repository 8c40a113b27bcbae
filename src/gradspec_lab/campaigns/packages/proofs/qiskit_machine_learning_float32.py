"""The connector of qiskit-machine-learning is linear, and right, to the digits of a float32, in which its output is."""

import torch
from differences import off
from qiskit import QuantumCircuit
from qiskit.circuit import ParameterVector
from qiskit.quantum_info import SparsePauliOp
from qiskit_machine_learning.connectors.torch_connector import _TorchNNFunction
from qiskit_machine_learning.neural_networks import EstimatorQNN, SamplerQNN

torch.manual_seed(0)
x, w = ParameterVector("x", 2), ParameterVector("w", 4)
circuit = QuantumCircuit(2)
for i in range(2):
    circuit.ry(x[i], i)
    circuit.ry(w[i], i)
circuit.cx(0, 1)
circuit.ry(w[2], 0)
circuit.rz(w[3], 1)
options = {"circuit": circuit, "input_params": list(x), "weight_params": list(w), "input_gradients": True}
for qnn in (SamplerQNN(**options), EstimatorQNN(observables=[SparsePauliOp("ZI"), SparsePauliOp("IX")], **options)):
    data = torch.randn(4, 2, dtype=torch.float64, requires_grad=True)
    weights = torch.rand(4, dtype=torch.float64, requires_grad=True)
    y = _TorchNNFunction.apply(data, weights, qnn, False)
    assert y.dtype == torch.float32

    def gradients(cotangent, y=y, data=data, weights=weights):
        """Return the gradients of both arguments."""
        return torch.autograd.grad(y, (data, weights), cotangent.to(y.dtype), retain_graph=True)

    a, b = torch.randn(2, *y.shape, dtype=torch.float64)
    found = []
    for number in range(2):
        both = gradients(3 * a + 1000 * b)[number]
        found.append(off(both, 3 * gradients(a)[number] + 1000 * gradients(b)[number]))
    right = []
    for number, argument in enumerate((data, weights)):
        expected = torch.zeros_like(argument)
        for place in range(argument.numel()):
            ends = []
            for step in (1e-5, -1e-5):
                moved = [data.detach().clone(), weights.detach().clone()]
                moved[number].view(-1)[place] += step
                ends.append((a * torch.as_tensor(qnn.forward(*(m.numpy() for m in moved)))).sum())
            expected.view(-1)[place] = (ends[0] - ends[1]) / 2e-5
        right.append(off(gradients(a)[number], expected))
    print(
        f"{type(qnn).__name__}: output in {y.dtype}, off linear by {max(found):.0e}, "
        f"off the differences by {max(right):.0e}"
    )
    assert max(found) < 1e-6
    assert max(right) < 1e-5
