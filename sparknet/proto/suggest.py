"""The nearest known word, for messages about a word that is not known."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

_LONGEST = 64
_MOST = 8


def did_you_mean(word: object, choices: Iterable[str]) -> str:
    """Return the end of a sentence, `; did you mean 'x'?`, or nothing where no word is near."""
    by_folded = {name.lower(): name for name in choices}
    folded = str(word)[:_LONGEST].lower()
    longer = [name for name in by_folded if name.startswith(f"{folded}_")]
    near = longer[:1] or get_close_matches(folded, by_folded, n=1)
    return f"; did you mean '{by_folded[near[0]]}'?" if near else ""


def one_of(word: object, choices: Iterable[str]) -> str:
    """Return the same; where no word is near, what there is: `; there are 'x', 'y'`."""
    names = [name for name in choices if "_split_" not in name]  # Caffe's own copies of blobs
    if near := did_you_mean(word, names):
        return near
    listed = ", ".join(f"'{name[:_LONGEST]}'" for name in names[:_MOST])
    more = len(names) - _MOST
    return f"; there are {listed}{f' and {more} more' if more > 0 else ''}" if names else ""
