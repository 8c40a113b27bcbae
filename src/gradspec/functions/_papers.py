"""The papers that functions and networks come from: specs take them from here, docstrings and pages are held to it."""

from __future__ import annotations

from dataclasses import dataclass

from gradspec.spec import Reference


@dataclass(frozen=True, kw_only=True)
class Paper:
    """One paper on arXiv."""

    #: Surnames, in the order of the paper.
    authors: tuple[str, ...]
    title: str
    year: int
    #: Its number on arXiv.
    number: str

    @property
    def url(self) -> str:
        """Its address."""
        return f"https://arxiv.org/abs/{self.number}"

    def reference(self, where: str = "") -> Reference:
        """Return the reference of a spec, to a place in it: ", equation 2"."""
        return Reference(text=f"{', '.join(self.authors)}: {self.title}, {self.year}{where}", url=self.url)


CONVOLUTIONAL_SEQUENCES = Paper(
    authors=("Gehring", "Auli", "Grangier", "Yarats", "Dauphin"),
    title="Convolutional Sequence to Sequence Learning",
    year=2017,
    number="1705.03122",
)
GRADIENT_REVERSAL = Paper(
    authors=("Ganin", "Lempitsky"),
    title="Unsupervised Domain Adaptation by Backpropagation",
    year=2015,
    number="1409.7495",
)
LOGIC_GATES = Paper(
    authors=("Petersen", "Borgelt", "Kuehne", "Deussen"),
    title="Deep Differentiable Logic Gate Networks",
    year=2022,
    number="2210.08277",
)
SHAKE_SHAKE = Paper(authors=("Gastaldi",), title="Shake-Shake regularization", year=2017, number="1705.07485")
RESNEXT = Paper(
    authors=("Xie", "Girshick", "Dollár", "Tu", "He"),
    title="Aggregated residual transformations for deep neural networks",
    year=2017,
    number="1611.05431",
)
INSTANCE_DISCRIMINATION = Paper(
    authors=("Wu", "Xiong", "Yu", "Lin"),
    title="Unsupervised Feature Learning via Non-Parametric Instance Discrimination",
    year=2018,
    number="1805.01978",
)
FLASH_ATTENTION = Paper(
    authors=("Dao", "Fu", "Ermon", "Rudra", "Ré"),
    title="FlashAttention: Fast and Memory-Efficient Exact Attention with IO-Awareness",
    year=2022,
    number="2205.14135",
)
ONLINE_SOFTMAX = Paper(
    authors=("Milakov", "Gimelshein"),
    title="Online normalizer calculation for softmax",
    year=2018,
    number="1805.02867",
)
CUT_CROSS_ENTROPY = Paper(
    authors=("Wijmans", "Huval", "Hertzberg", "Koltun", "Krähenbühl"),
    title="Cut Your Losses in Large-Vocabulary Language Models",
    year=2024,
    number="2411.09009",
)
LABEL_SMOOTHING = Paper(
    authors=("Szegedy", "Vanhoucke", "Ioffe", "Shlens", "Wojna"),
    title="Rethinking the Inception Architecture for Computer Vision",
    year=2015,
    number="1512.00567",
)
COSFACE = Paper(
    authors=("Wang", "Wang", "Zhou", "Ji", "Gong", "Zhou", "Li", "Liu"),
    title="CosFace: Large Margin Cosine Loss for Deep Face Recognition",
    year=2018,
    number="1801.09414",
)
ARCFACE = Paper(
    authors=("Deng", "Guo", "Yang", "Xue", "Kotsia", "Zafeiriou"),
    title="ArcFace: Additive Angular Margin Loss for Deep Face Recognition",
    year=2019,
    number="1801.07698",
)
PAPERS = tuple(value for value in globals().values() if isinstance(value, Paper))
