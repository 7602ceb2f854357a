"""What a message must be: one sentence, or two, that name what and where."""

import re
import tempfile
from collections.abc import Iterable

LONGEST = 420
FRAMES = re.compile(
    r"Traceback|File \"|line \d+, in |<frozen|object at 0x|TypeError|KeyError|\[Errno"
)


def judge(said: str, names: Iterable[str]) -> list[str]:
    """What is wrong with a message."""
    wrong = [f"does not name {name!r}" for name in names if name not in said]
    if "\n" in said.strip():
        wrong.append("has several lines")
    if len(said) > LONGEST:
        wrong.append(f"has {len(said)} characters")
    if FRAMES.search(said):
        wrong.append("shows what is inside")
    if tempfile.gettempdir() + "/" in said:
        wrong.append("shows a temporary path")
    if len(re.findall(r"[.!?] +[A-Z]", said)) > 1:
        wrong.append("has more than two sentences")
    return wrong
