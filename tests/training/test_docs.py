"""docs/strategies.md knows every strategy."""

from dataclasses import fields

from sparknet.training import STRATEGIES
from tests.guides import guide


def test_every_setting_is_listed():
    page = guide("strategies.md")
    for name, kind in STRATEGIES.items():
        assert f"`{name}`" in page
        assert f"| {kind.__name__} |" in page or f"| `{kind.__name__}(" in page
        for field in fields(kind):
            assert f"`{field.name}`" in page, f"{kind.__name__}.{field.name} is not in the guide"
