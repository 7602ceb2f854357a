"""What a maintainer keeps in step: versions, changelog, citation, templates of issues."""

import configparser
import re

import jinja2
import pytest
import yaml

import sparknet
from tests.goldens import ROOT

TEMPLATES = sorted((ROOT / ".github" / "ISSUE_TEMPLATE").glob("*.yml"))


def test_the_version_is_one_everywhere():
    (packaged,) = re.findall(r'^version = "(.+)"$', (ROOT / "pyproject.toml").read_text(), re.M)
    cited = yaml.safe_load((ROOT / "CITATION.cff").read_text())["version"]
    assert packaged == cited == sparknet.__version__


def test_the_changelog_has_a_part_for_each_version():
    first, *versions = re.findall(r"^## (\S+)", (ROOT / "CHANGELOG.md").read_text(), re.M)
    assert first == "Unreleased"
    assert versions[0] == sparknet.__version__
    numbers = [tuple(int(part) for part in version.split(".")) for version in versions]
    assert numbers == sorted(numbers, reverse=True)
    assert numbers[-1] == (0, 1, 0)


def test_the_extra_all_names_every_extra_of_users():
    text = (ROOT / "pyproject.toml").read_text()
    part = text.split("[project.optional-dependencies]\n")[1].split("\n[")[0]
    others = {"all", "bench", "docs", "dev", "torch"}  # PyTorch is larger than all others together
    extras = set(re.findall(r"^([\w-]+) = \[", part, re.M)) - others
    (whole,) = re.findall(r"^all = \[(.*?)^\]", part, re.M | re.S)
    named = [name for names in re.findall(r"sparknet\[(.+?)\]", whole) for name in names.split(",")]
    assert sorted(named) == sorted(extras)
    readme = (ROOT / "README.md").read_text()
    told, rest = readme.split("The extras are ")[1].split("`all` is all of them but `torch`")
    assert set(re.findall(r"`([\w-]+)`", told)) == extras
    assert rest


def test_the_conda_recipe_needs_what_the_package_needs():
    """It was not built where this was written; what can be compared is."""
    text = (ROOT / "pyproject.toml").read_text()
    template = jinja2.Template((ROOT / "conda" / "meta.yaml").read_text())
    told = template.render(
        PYTHON="python", compiler="{}-compiler".format, stdlib="{}-stdlib".format
    )
    recipe = yaml.safe_load(told)
    assert recipe["package"] == {"name": "sparknet", "version": sparknet.__version__}

    def listed(name: str) -> set[str]:
        (part,) = re.findall(rf"^{name} = \[(.*?)\]", text, re.M | re.S)
        found = re.findall(r'^ +"([^";]+)', part, re.M)
        return {spaced(one) for one in found}

    def spaced(requirement: str) -> str:
        return re.sub(r"(?<=[\w-])(?=[><=])", " ", requirement, count=1)

    needs = recipe["requirements"]
    (python,) = re.findall(r'^requires-python = "(.+)"$', text, re.M)
    onednn = {"onednn-cpu-omp >=3.2"}
    assert set(needs["run"]) == {f"python {python}"} | listed("dependencies") | onednn
    of_pip = {one for one in listed("requires") if not one.startswith("onednn")}
    assert set(needs["host"]) == {"python", "pip"} | of_pip | onednn
    (cmake,) = re.findall(r'^cmake.version = "(.+)"$', text, re.M)
    assert f"cmake {cmake}" in needs["build"]
    optional = text.split("[project.optional-dependencies]\n")[1].split("\nbench = ")[0]
    for one in needs["run_constrained"]:
        assert f'"{one.replace(" ", "", 1)}"' in optional, one
    (script,) = re.findall(r'^sparknet = "(.+)"$', text, re.M)
    assert recipe["build"]["entry_points"] == [f"sparknet = {script}"]
    assert (ROOT / "conda" / recipe["source"]["path"]).resolve() == ROOT


def test_the_paper_is_cited():
    cited = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert cited["authors"] == [{"name": "sparknet maintainers"}]
    paper = cited["preferred-citation"]
    names = [author["family-names"] for author in paper["authors"]]
    assert names == ["Moritz", "Nishihara", "Stoica", "Jordan"]
    assert paper["url"].endswith("1511.06051")


@pytest.mark.parametrize("path", TEMPLATES, ids=lambda path: path.name)
def test_issue_templates_are_forms(path):
    form = yaml.safe_load(path.read_text())
    if path.name == "config.yml":
        assert form == {"blank_issues_enabled": True}
        return
    assert {"name", "description", "body"} <= set(form)
    fields = [one for one in form["body"] if one["type"] != "markdown"]
    assert all(one["attributes"]["label"] for one in fields)
    assert any(one["validations"]["required"] for one in fields if "validations" in one)


def test_editors_are_told_what_the_linters_want():
    style = (ROOT / ".clang-format").read_text()
    told = configparser.ConfigParser()
    told.read_string("[*top*]\n" + (ROOT / ".editorconfig").read_text())
    (length,) = re.findall(r"^line-length = (\d+)$", (ROOT / "pyproject.toml").read_text(), re.M)
    assert told["*"]["max_line_length"] == length
    assert f"IndentWidth: {told['*']['indent_size']}\n" in style
    assert told["Makefile"]["indent_style"] == "tab"


def test_what_make_watches_exists():
    (watched,) = re.findall(
        r"^SOURCES := .*find (.+?) -type", (ROOT / "Makefile").read_text(), re.M
    )
    assert watched.split() == ["native", "proto"]
    for folder in watched.split():
        assert any((ROOT / folder).iterdir())
