"""The look of a report: one column on a phone, two on a desk, by day and by night."""

from __future__ import annotations

STYLE = (
    """
:root{--bg:#fff;--panel:#f7f7f5;--ink:#1d2126;--soft:#667;--rule:#e2e2de;--mark:#fff3cd;
--c0:#2f6fb0;--c1:#d9731a;--c2:#3a8f4d;--c3:#b8433f;--c4:#7a5bb0;--c5:#8a6a4f;--c6:#c2619a;--c7:#5d7378;
--s0:#e0a526;--s1:#2f6fb0;--s2:#b9bec6;--s3:#7a5bb0}
@media(prefers-color-scheme:dark){:root{--bg:#16181b;--panel:#1f2226;--ink:#e8e8e4;--soft:#9aa0a8;
--rule:#33373d;--mark:#4a3f1a;--c0:#6ba6e0;--c1:#f09a4e;--c2:#6fbf80;--c3:#e0807c;--c4:#aa8fe0;
--c5:#bfa081;--c6:#e39ac5;--c7:#93aab0;--s0:#e0b24d;--s1:#6ba6e0;--s2:#5b6169;--s3:#aa8fe0}}
*{box-sizing:border-box}
body{margin:0;background:var(--bg);color:var(--ink);font:15px/1.5 system-ui,sans-serif}
main{max-width:1080px;margin:0 auto;padding:16px}
h1{font-size:1.5rem;margin:.2em 0}h2{font-size:1.1rem;margin:1.6em 0 .5em}
.sub,figcaption,.legend,.tile small{color:var(--soft)}
.tiles,.charts{display:grid;gap:12px;grid-template-columns:repeat(auto-fit,minmax(min(100%,150px),1fr))}
.charts{grid-template-columns:repeat(auto-fill,minmax(min(100%,400px),1fr))}
.tile,figure{background:var(--panel);border-radius:8px;padding:10px 12px;margin:0;min-width:0}
.tile b{display:block;font-size:1.2rem;overflow-wrap:anywhere}
.tile small{display:block}
.tile .of{display:block;font-size:.8rem;font-weight:400;color:var(--soft)}
.of i{display:inline-block;width:10px;height:10px;border-radius:2px;margin-right:5px}
figcaption{font-weight:600}
svg.chart{width:100%;height:auto;display:block}
svg text{font:11px system-ui,sans-serif;fill:var(--soft)}
.grid{stroke:var(--rule)}
.line{fill:none;stroke-width:1.8;stroke-linejoin:round}.dashed{stroke-dasharray:5 4}
.legend{margin:.2em 0;display:flex;flex-wrap:wrap;gap:2px 14px;font-size:.85rem}
.legend i{display:inline-block;width:10px;height:10px;border-radius:2px;margin-right:5px}
.legend i.open{
background-image:repeating-linear-gradient(90deg,transparent 0 3px,var(--panel) 3px 5px)}
h3{font-size:.95rem;margin:1em 0 .4em}
.scroll{overflow-x:auto;max-width:100%}.charts+.scroll,.scroll+.scroll{margin-top:1em}.scroll.net{max-height:70vh;overflow:auto;background:var(--panel);border-radius:8px}
svg.net{display:block;margin:0 auto}
.layer rect{fill:var(--bg);stroke:var(--soft)}.learns rect{stroke:var(--c0);stroke-width:2}
.source rect{stroke:var(--c2);stroke-width:2}.layer text{fill:var(--ink);font-size:11px}
.layer .kind{fill:var(--soft);font-size:9.5px}.edge{fill:none;stroke:var(--soft)}
table{border-collapse:collapse;font-size:.88rem;min-width:100%}
th,td{text-align:left;padding:3px 12px 3px 0;border-bottom:1px solid var(--rule);white-space:nowrap}
td:last-child{white-space:normal;overflow-wrap:anywhere;min-width:8em}
td{font-variant-numeric:tabular-nums}tr.differs td{background:var(--mark)}
.confusion{min-width:0}.confusion td,.confusion th{padding:3px 9px;text-align:center}
.confusion td:last-child{min-width:0}
.confusion td[style]{background:color-mix(in srgb,var(--c0) calc(var(--share)*.7),transparent)}
pre{overflow-x:auto;background:var(--panel);padding:10px;border-radius:8px;font-size:.82rem}
details{margin:.6em 0}summary{cursor:pointer}
.axes input{position:absolute;opacity:0}
.axes label{display:inline-block;padding:2px 12px;border:1px solid var(--rule);
border-radius:14px;margin:0 4px 8px 0;cursor:pointer}
.axes .on{display:none}
.axes input:focus-visible+label{outline:2px solid var(--c0)}
"""
    + "".join(
        f".c{n}{{stroke:var(--c{n})}}.f{n}{{fill:var(--c{n});background:var(--c{n})}}"
        for n in range(8)
    )
    + "".join(f".s{n}{{fill:var(--s{n});background:var(--s{n})}}" for n in range(4))
    + "".join(
        f"#by-{axis}:checked~.on.{axis}{{display:grid}}"
        f"#by-{axis}:checked+label{{background:var(--ink);color:var(--bg)}}"
        for axis in ("samples", "time", "epochs")
    )
)
