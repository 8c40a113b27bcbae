"""Where a finding about a published package is reported: its repository, as the metadata of its wheel names it."""

from __future__ import annotations

from collections.abc import Mapping

#: Three wheels name none: fairscale, hypll and speechbrain; theirs is the repository that their documentation names.
REPOSITORIES: Mapping[str, str] = {
    "bnn": "https://github.com/1adrianb/binary-networks-pytorch",
    "brevitas": "https://github.com/Xilinx/brevitas",
    "compressai": "https://github.com/InterDigitalInc/CompressAI",
    "dalib": "https://github.com/thuml/Domain-Adaptation-Lib",
    "efficientnet_pytorch": "https://github.com/lukemelas/EfficientNet-PyTorch",
    "entmax": "https://github.com/deep-spin/entmax",
    "fairscale": "https://github.com/facebookresearch/fairscale",
    "geffnet": "https://github.com/rwightman/gen-efficientnet-pytorch",
    "gpytorch": "https://github.com/cornellius-gp/gpytorch",
    "hypll": "https://github.com/maxvanspengler/hyperbolic_learning_library",
    "kymatio": "https://github.com/kymatio/kymatio",
    "megatron_core": "https://github.com/NVIDIA/Megatron-LM",
    "monai": "https://github.com/Project-MONAI/MONAI",
    "nncf": "https://github.com/openvinotoolkit/nncf",
    "peft": "https://github.com/huggingface/peft",
    "pypose": "https://github.com/pypose/pypose",
    "pytorch_revgrad": "https://github.com/janfreyberg/pytorch-revgrad",
    "pytorch_tabnet": "https://github.com/dreamquark-ai/tabnet",
    "pytorch_toolbelt": "https://github.com/BloodAxe/pytorch-toolbelt",
    "rockpool": "https://github.com/SynSense/rockpool",
    "sinabs": "https://github.com/synsense/sinabs",
    "snntorch": "https://github.com/jeshraghian/snntorch",
    "sparsemax": "https://github.com/aced125/sparsemax",
    "speechbrain": "https://github.com/speechbrain/speechbrain",
    "spikingjelly": "https://github.com/fangwei123456/spikingjelly",
    "timm": "https://github.com/huggingface/pytorch-image-models",
    "torch_struct": "https://github.com/harvardnlp/pytorch-struct",
}
