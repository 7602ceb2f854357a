"""The pages that are made from the code say what the code says."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from docs.__main__ import PAGE, page
from tests.goldens import ROOT

GUIDES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("models/**/*.md")])


def test_the_layer_reference_is_current() -> None:
    assert PAGE.read_text() == page(), "run make docs"


@pytest.mark.parametrize("guide", GUIDES, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_lead_somewhere(guide: Path) -> None:
    for target in re.findall(r"\]\(([^)#\s]+)", guide.read_text()):
        if "://" not in target:
            assert (guide.parent / target).exists(), f"{guide.name} links to {target}"
