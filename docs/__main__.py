"""``make layers`` writes docs/layers.md again from the registry and the schema, and
docs/settings.md from the settings of training."""

from __future__ import annotations

import inspect
from pathlib import Path

from docs import settings_page
from sparknet.dsl.fields import default_text, option_fields
from sparknet.layers import LAYERS

PAGE = Path(__file__).with_name("layers.md")

HEAD = """# Layers

Every layer type that sparknet knows, with the options that it reads. `make docs` writes this
page from the classes (`sparknet/layers`) and the schema (`proto/caffe.proto`); do not
edit it by hand. In the DSL each option is a keyword: `Pooling("pool1", ["conv1"], kernel_size=2)`.
"""


def section(type_name: str) -> str:
    layer = LAYERS[type_name]
    lines = [f"## {type_name}", ""]
    if doc := inspect.getdoc(layer) if layer.__doc__ else None:
        lines += [doc, ""]
    place = "may work in place" if layer.works_in_place else "not in place"
    lines += [f"Bottoms: {layer.bottoms}. Tops: {layer.tops}. {place.capitalize()}.", ""]
    options = option_fields(type_name)
    if options:
        lines += ["| option | takes | message |", "|---|---|---|"]
        lines += [
            f"| `{name}` | {default_text(field).replace('|', ', ')} | `{group}` |"
            for name, (group, field) in options.items()
        ]
        lines.append("")
    return "\n".join(lines)


def page() -> str:
    types = sorted(LAYERS, key=str.lower)
    contents = ", ".join(f"[{name}](#{name.lower()})" for name in types)
    return "\n".join([HEAD, contents + ".", "", *map(section, types)])


if __name__ == "__main__":
    PAGE.write_text(page())
    settings_page.PAGE.write_text(settings_page.page())
