"""One place where a program can be changed, and the draw among them."""

import random
from collections.abc import Iterable
from dataclasses import asdict, dataclass


@dataclass(frozen=True)
class Site:
    """A possible change, one of its file's, and the code before and after."""

    path: str
    line: int
    ordinal: int
    kind: str
    before: str
    after: str
    at_load: bool = False
    """Whether it runs when its file is loaded, before any test."""

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.kind}: {self.before} → {self.after}"

    def as_dict(self):
        return asdict(self)


WEIGHTS = {
    "comparison": 3.0,
    "arithmetic": 3.0,
    "condition": 3.0,
    "removed raise": 3.0,
    "boolean": 2.0,
    "removed statement": 2.0,
    "return": 1.5,
    "constant": 1.0,
    "arguments": 1.0,
}


def draw(sites: Iterable[Site], seed: int) -> list[Site]:
    """All sites in the order in which they are drawn, no two of them on one line.

    Kinds have weights; what runs only at loading is drawn more rarely.
    """
    chance = random.Random(seed)
    keys = [
        (chance.random() ** (1 / (WEIGHTS[site.kind] * (0.3 if site.at_load else 1))), site)
        for site in sites
    ]
    chosen: dict[tuple[str, int], Site] = {}
    for _, site in sorted(keys, key=lambda pair: -pair[0]):
        chosen.setdefault((site.path, site.line), site)
    return list(chosen.values())
