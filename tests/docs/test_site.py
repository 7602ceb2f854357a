"""`make docs` refuses links that lead nowhere, and writes the pages that are made from the code."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.goldens import ROOT

pytestmark = pytest.mark.slow


@pytest.fixture
def tree(tmp_path):
    """A copy of the documentation beside the package."""
    shutil.copytree(ROOT / "docs", tmp_path / "docs")
    shutil.copy(ROOT / "mkdocs.yml", tmp_path)
    for name in ("examples", "sparknet", "tests"):
        (tmp_path / name).symlink_to(ROOT / name)
    return tmp_path


def build(tree: Path) -> subprocess.CompletedProcess[str]:
    words = [sys.executable, "-m", "mkdocs", "build"]
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    return subprocess.run(words, cwd=tree, env=environment, capture_output=True, text=True)


def test_the_site_is_whole_and_asks_nothing_of_the_network(tree):
    """Generated pages are written again."""
    (tree / "docs" / "layers.md").write_text("written by hand\n")
    (tree / "docs" / "settings.md").unlink()
    done = build(tree)
    assert done.returncode == 0, done.stderr
    assert (tree / "docs" / "layers.md").read_text() == (ROOT / "docs" / "layers.md").read_text()
    assert 'id="every-training"' in (tree / "build" / "site" / "settings.html").read_text()
    site = tree / "build" / "site"
    guides = [path.relative_to(tree / "docs") for path in (tree / "docs").rglob("*.md")]
    assert len(guides) > 30
    for guide in guides:
        name = guide.with_suffix(".html") if guide.name != "README.md" else Path("index.html")
        text = (site / name).read_text(encoding="utf-8")
        assert not re.search(r'<(?:script|img)[^>]* src="http|<link[^>]* href="http', text), name
    spark = (site / "reference" / "spark.html").read_text(encoding="utf-8")
    assert 'id="sparknet.spark.Trainer.fit"' in spark
    assert 'href="examples/tables.html"' in (site / "spark.html").read_text(encoding="utf-8")
    tables = (site / "examples" / "tables.html").read_text(encoding="utf-8")
    assert "Train on tables as TensorSpark did" in tables
    assert "NetFeaturizer" in tables
    linked = "examples/notebooks/fine_tune_a_caffemodel.html"
    assert f'href="{linked}"' in (site / "notebooks.html").read_text(encoding="utf-8")
    notebook = (site / linked).read_text(encoding="utf-8")
    assert "<h1" in notebook
    assert "SGDSolver" in notebook
    assert 'href="fine_tune_a_caffemodel.ipynb"' in notebook
    given = (ROOT / linked).with_suffix(".ipynb")
    assert (site / linked).with_suffix(".ipynb").read_bytes() == given.read_bytes()


def test_a_link_that_leads_nowhere(tree):
    with (tree / "docs" / "threads.md").open("a") as page:
        page.write("\n[a](nothing.md) [b](spark.md#nothing)\n")
    done = build(tree)
    assert done.returncode != 0
    assert "nothing.md" in done.stderr
    assert "'spark.md#nothing'" in done.stderr
