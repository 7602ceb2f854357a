"""The pages that are made from the code say what the code says."""

import doctest
import re
from pathlib import Path

import pytest

import sparknet
from docs import settings_page
from docs.__main__ import PAGE
from docs.__main__ import page as layers_page
from sparknet.training.settings.fields import settings_of
from tests.goldens import ROOT

GUIDES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("models/**/*.md")])


def test_the_layer_reference_is_current():
    assert PAGE.read_text() == layers_page(), "run make layers"


def test_the_settings_reference_is_current():
    assert settings_page.PAGE.read_text() == settings_page.page(), "run make layers"


def test_every_setting_is_in_the_reference_once():
    rows = re.findall(r"^\| `(\w+)` \|", settings_page.page(), re.MULTILINE)
    known = {name for kind, _ in settings_page.GROUPS.values() for name in settings_of(kind)}
    assert sorted(rows) == sorted(known)


@pytest.mark.parametrize("guide", GUIDES, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_lead_somewhere(guide):
    for target in re.findall(r"\]\(([^)\s]+)\)", guide.read_text()):
        name, _, place = target.partition("#")
        page = guide.parent / name if name else guide
        if "://" not in target:
            assert page.exists(), f"{guide.name} links to {target}"
            assert not place or place in anchors(page), f"{guide.name} links to {target}"


def anchors(guide: Path) -> list[str]:
    """What a page's headings are called in links, as GitHub has it."""
    headings = re.findall(r"^#+ (.*)$", guide.read_text(), re.MULTILINE)
    return [re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings]


EXPLAINED = [name for name in sparknet.__all__ if callable(getattr(sparknet, name))]


@pytest.mark.parametrize("name", ["sparknet", *EXPLAINED])
def test_examples_in_docstrings(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    thing = getattr(sparknet, name, sparknet)
    found = doctest.DocTestFinder(recurse=False).find(thing, name, globs={name: thing})
    for examples in found:
        assert doctest.DocTestRunner().run(examples).failed == 0
