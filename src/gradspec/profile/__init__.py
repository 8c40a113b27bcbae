"""Which laws are run, and how hard: a profile is a TOML file, ours are package data."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass, fields
from pathlib import Path

from gradspec._scope import Scope, ScopeError, scopes_of

#: The highest limit on a check, in seconds.
DAY = 86_400
_FOLDER = Path(__file__).parent
_LISTS = {"laws", "scopes"}


class ProfileError(ValueError):
    """A profile that cannot be used; the message is one line for the user."""


@dataclass(frozen=True, kw_only=True)
class Profile:
    """Which laws, how hard."""

    #: The name of a profile that comes with the package, or the path of a file.
    name: str
    #: The laws to run; empty for all.
    laws: tuple[str, ...] = ()
    #: What the run asks about, and fails by; empty for what the specs promise.
    scopes: tuple[str, ...] = ()
    #: The backend of `torch.compile` in the compile laws.
    backend: str = "aot_eager"
    #: The device on which the cases are made.
    device: str = "cpu"
    #: The most cases of a spec, evenly spread, on which a law that compiles runs; 0 for all.
    compiled_cases: int = 0
    #: How many random cotangents a derivative law draws.
    directions: int = 2
    #: Relative tolerance of an exact comparison in float64, per term summed.
    rtol: float = 1e-12
    #: How many seconds of CPU time one check may take, in all its processes together, before it is `not measured`; and
    #: how many seconds it may sleep, up to ten times as many while others use the processors.
    time_limit: float = 60.0

    def options(self, scope: Scope) -> tuple[str, ...]:
        """Return the options of a command that runs a law of a scope under it."""
        named = () if self.name == "quick" else ("--profile", self.name)
        usual = "cuda" if self.name == "cuda" else Profile.device
        there = () if self.device == usual else ("--device", self.device)
        return (*named, *there, *(("--scope", scope) if self.scopes and scope is not Scope.TRAINING else ()))


def available() -> tuple[str, ...]:
    """Return the names of the profiles that come with the package."""
    return tuple(sorted(p.name.removesuffix(".toml") for p in _FOLDER.iterdir() if p.name.endswith(".toml")))


def load_profile(
    name: str, *, time_limit: float | None = None, scopes: tuple[str, ...] = (), device: str = ""
) -> Profile:
    """Return the profile of a name (`quick`) or of a path that ends in `.toml`.

    Args:
        name: which one.
        time_limit: replaces its `time_limit`.
        scopes: replace its `scopes`, unless empty.
        device: replaces its `device`, unless empty.

    Raises:
        ProfileError: no such profile, not TOML, an unknown key, or a value of the wrong type.
    """
    path = Path(name) if name.endswith(".toml") else _FOLDER / f"{name}.toml"
    if not path.is_file():
        raise ProfileError(
            f"no profile {name!r}: choose from {', '.join(available())}, or give the path of a .toml file"
        )
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ProfileError(f"profile {name!r} is not valid TOML: {error}") from None
    if time_limit is not None:
        table["time_limit"] = time_limit
    if scopes:
        table["scopes"] = list(scopes)
    if device:
        table["device"] = device
    defaults = {f.name: f.default for f in fields(Profile) if f.name != "name"}
    for key, value in table.items():
        if key not in defaults:
            raise ProfileError(f"profile {name!r} has the unknown key {key!r}: the keys are {', '.join(defaults)}")
        kind = list if key in _LISTS else type(defaults[key])
        given = float(value) if kind is float and type(value) is int else value
        if not isinstance(given, kind) or isinstance(value, bool):
            raise ProfileError(f"profile {name!r}: {key} is {value!r}, expected {kind.__name__}")
    for key in _LISTS & set(table):
        if not all(isinstance(word, str) for word in table[key]):
            raise ProfileError(f"profile {name!r}: {key} is {table[key]!r}, expected a list of names")
        table[key] = tuple(table[key])
    try:
        table["scopes"] = tuple(map(str, scopes_of(table.get("scopes", ()))))
    except ScopeError as error:
        raise ProfileError(f"profile {name!r}: {error}") from None
    if table.get("directions", 1) < 1 or table.get("rtol", 1.0) < 0 or not 0 < table.get("time_limit", 1.0) <= DAY:
        numbers = f"directions must be at least 1, rtol at least 0, and time_limit above 0 and at most {DAY}"
        raise ProfileError(f"profile {name!r}: {numbers}")
    # A file is named by its path, so that the command that runs a check again finds it.
    return Profile(name=name, **table)


def device_name(device: str) -> str:
    """Return a device as a reader knows it: `cpu`, or the name of the GPU."""
    if not device.startswith("cuda"):
        return device
    import torch

    return torch.cuda.get_device_name() if torch.cuda.is_available() else device
