"""Run judges on kernels: each kernel and its reference once a run, and all judges on the same results."""

import dataclasses
import itertools
import json
import random
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from gradspec_lab.kernels._judges import Judge
from gradspec_lab.kernels._kernel import Kernel, Measured, derive, random_cotangents, upcast
from gradspec_lab.kernels._truth import results
from gradspec_lab.kernels.public import SOUND, UNSOUND
from gradspec_lab.kernels.wrong import PAIRS, Occasion


@dataclass(frozen=True, kw_only=True)
class Run:
    """One call of one kernel, which a seed repeats."""

    kernel: Kernel
    #: The kernel's name, or that of the pair it belongs to.
    name: str
    #: "sound", "unsound", or for a pair "friendly", "revealing" or "twin": the sound one on revealing arguments.
    case: str
    number: int
    dtype: torch.dtype
    setting: str
    occasion: Callable[[torch.Generator], Occasion]

    @property
    def key(self) -> str:
        """What a file of results knows it by."""
        return f"{self.name}|{self.case}|{self.number}"


def plan(runs: int, only: str = "", cases: tuple[str, ...] = ("sound", "unsound", "wrong")) -> Iterator[Run]:
    """So many runs of each kernel, whose settings are drawn without repetition until all are used."""
    for case, kernels in (("sound", SOUND), ("unsound", UNSOUND)):
        for kernel in kernels.values():
            if case in cases and only in kernel.name:
                yield from _of_kernel(kernel, case, runs)
    for name, pair in PAIRS.items():
        if "wrong" not in cases or only not in name:
            continue
        for number in range(runs):
            dtype = (torch.bfloat16, torch.float16, torch.float32)[number % 3]
            hidden = pair.hidden_in if pair.hidden_in != torch.float64 else dtype
            for case, kernel, make, used in (
                ("friendly", pair.wrong, pair.friendly, hidden),
                ("revealing", pair.wrong, pair.revealing, dtype),
                ("twin", pair.twin, pair.revealing, dtype),
            ):
                occasion = _bound(make, used)
                yield Run(kernel=kernel, name=name, case=case, number=number, dtype=used, setting="", occasion=occasion)


def _bound(
    make: Callable[[torch.dtype, torch.Generator], Occasion], dtype: torch.dtype
) -> Callable[[torch.Generator], Occasion]:
    return lambda generator: make(dtype, generator)


def _of_kernel(kernel: Kernel, case: str, runs: int) -> Iterator[Run]:
    settings = list(itertools.product(kernel.dtypes, kernel.scales, kernel.shapes))
    random.Random(kernel.name).shuffle(settings)
    for number in range(runs):
        dtype, scale, shape = settings[number % len(settings)]

        def occasion(
            generator: torch.Generator, shape: Any = shape, dtype: Any = dtype, scale: str = scale
        ) -> Occasion:
            return Occasion(args=kernel.make(shape, dtype, scale, generator))

        yield Run(
            kernel=kernel, name=kernel.name, case=case, number=number, dtype=dtype,
            setting=f"{scale} {'x'.join(map(str, shape))}", occasion=occasion,
        )  # fmt: skip


def judged(run: Run, judges: dict[str, Judge]) -> dict[str, Any]:
    """Call the kernel and its reference, and let each judge speak."""
    line: dict[str, Any] = {
        "key": run.key, "name": run.name, "case": run.case, "run": run.number, "dtype": str(run.dtype)[6:],
        "setting": run.setting, "judges": {},
    }  # fmt: skip
    generator = torch.Generator().manual_seed(run.number)
    occasion = run.occasion(generator)
    kept: list[tuple[Tensor, ...]] = []

    def cotangents(outputs: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        if not kept:
            kept.append(occasion.cotangents or random_cotangents(generator)(outputs))
        return kept[0]

    try:
        started = time.perf_counter()
        *again, found = results(run.kernel, occasion, cotangents)
        line["seconds"] = round(time.perf_counter() - started, 4)
        exact = derive(run.kernel.reference, run.kernel, upcast(occasion.args), upcast(kept[0]))
        low = derive(run.kernel.reference, run.kernel, occasion.args, _as_outputs(run, occasion, kept[0]))
    except Exception as error:
        return line | {"error": f"{type(error).__name__}: {error}"[:300]}
    fields = {field.name: getattr(run.kernel, field.name) for field in dataclasses.fields(Kernel)}
    measured = Measured(**fields, results=found, exact=exact, low=low, again=tuple(again))
    for name, judge in judges.items():
        started = time.perf_counter()
        try:
            verdicts: Any = judge(measured, occasion.args, kept[0])
        except Exception as error:
            verdicts = {"": (None, f"the judge raised {type(error).__name__}: {error}"[:300])}
        line["judges"][name] = {
            "verdicts": {place: list(verdict) for place, verdict in verdicts.items()},
            "seconds": round(time.perf_counter() - started, 4),
        }
    return line


def _as_outputs(run: Run, occasion: Occasion, cotangents: tuple[Tensor, ...]) -> Callable[..., tuple[Tensor, ...]]:
    """The cotangents in the dtypes of the low reference's outputs, which may differ from the kernel's."""
    return lambda outputs: tuple(
        cotangent.to(output.dtype) for cotangent, output in zip(cotangents, outputs, strict=True)
    )


def read(path: Path) -> dict[str, dict[str, Any]]:
    """The lines of a file of results by key; those of one key are merged, and a torn last line is left out."""
    merged: dict[str, dict[str, Any]] = {}
    if not path.exists():
        return merged
    for text in path.read_text(encoding="utf-8").splitlines():
        try:
            line = json.loads(text)
        except json.JSONDecodeError:
            continue
        before = merged.get(line["key"], {"judges": {}})
        merged[line["key"]] = before | line | {"judges": before["judges"] | line["judges"]}
    return merged


def run_all(runs: list[Run], judges: dict[str, Judge], path: Path) -> Iterator[dict[str, Any]]:
    """Each run that a file lacks, appended to it as it is done; what is there is given as it is."""
    there = read(path)
    torn = path.exists() and not path.read_text(encoding="utf-8").endswith("\n") and path.stat().st_size
    with path.open("a", encoding="utf-8") as file:
        if torn:
            file.write("\n")
        for run in runs:
            before = there.get(run.key, {"judges": {}})
            missing = {name: judge for name, judge in judges.items() if name not in before["judges"]}
            if not missing or "error" in before:
                yield before
                continue
            line = judged(run, missing)
            file.write(json.dumps(line) + "\n")
            file.flush()
            yield before | line | {"judges": before["judges"] | line["judges"]}
