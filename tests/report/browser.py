"""Pages in a real browser: headless Chromium, without a network."""

import html
import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")

LOOK = """
<script>addEventListener('load', () => {
  const seen = () => {
    const shown = [...document.querySelectorAll('svg')].filter(s => s.getClientRects().length);
    const drawn = s => [...s.querySelectorAll('polyline,rect,circle,path')]
      .map(p => p.getBoundingClientRect()).filter(b => b.width + b.height > 0).length;
    return {
      text: document.body.innerText, inside: document.documentElement.clientWidth,
      wide: document.documentElement.scrollWidth,
      charts: shown.map(s => ({name: s.getAttribute('aria-label'), drawn: drawn(s),
        width: s.getBoundingClientRect().width,
        labels: [...s.querySelectorAll('text')].map(t => t.textContent)})),
    };
  };
  const found = {before: seen()};
  const other = document.querySelector('label[for=by-time]');
  if (other) { other.click(); found.after = seen(); }
  parent.postMessage(JSON.stringify(found), '*');
});</script>
"""
FRAME = """<!doctype html><body><script>addEventListener('message', e => {
  const p = document.createElement('pre'); p.id = 'found'; p.textContent = e.data;
  document.body.append(p); });</script>
<iframe src="page.html" style="border:0;width:WIDEpx;height:5000px"></iframe>"""


def browser() -> str:
    """The program; skips the test where there is none."""
    found = next(filter(None, map(shutil.which, NAMES)), None)
    if found is None:
        pytest.skip("there is no Chromium here")
    return found


def look_at(page, width, folder):
    """What a page shows at a width: text, charts, whether it is wider than the window."""
    text = page.read_text(encoding="utf-8")
    policy = re.compile(r"<meta http-equiv=\"Content-Security-Policy\"[^>]*>")
    assert policy.search(text)
    (folder / "page.html").write_text(policy.sub("", text) + LOOK, encoding="utf-8")
    frame = folder / "frame.html"
    frame.write_text(FRAME.replace("WIDE", str(width)), encoding="utf-8")
    dom = chromium(folder, "--dump-dom", "--virtual-time-budget=5000", frame.as_uri())
    match = re.search(r'<pre id="found">(.*?)</pre>', dom, re.DOTALL)
    assert match, dom[:500]
    return json.loads(html.unescape(match[1]))


def chromium(folder: Path, *arguments: str) -> str:
    usual = ("--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars")
    command = [browser(), *usual, f"--user-data-dir={folder / 'profile'}", *arguments]
    return subprocess.run(
        command, capture_output=True, text=True, check=True, timeout=120, cwd=folder
    ).stdout
