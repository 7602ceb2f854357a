"""report: one page about a run, two runs, a plan; as text, and in a browser."""

import json
import re
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from sparknet import models
from sparknet.cli import main
from sparknet.errors import FileError, SettingError
from sparknet.graph.boxes import drawing
from sparknet.graph.summary import outline
from sparknet.proto import write_text
from sparknet.report import RunFolder, report
from sparknet.report.runs import ReportedRun, read
from sparknet.training import Averaging, Cluster, simulate
from sparknet.training.planning import plan
from tests.report import browser
from tests.training import small

STRAGGLING = Cluster(step=0.5, slow={1: 2.0}, failures=[(2, 20.0)], restart=5.0, latency=0.25)


def trained(folder: Path, strategy: Averaging, cluster: Cluster) -> Path:
    """A virtual run of three workers, 60 steps."""
    listener = RunFolder(folder, small.settings(), cluster="a <b>cluster</b>")
    simulate(
        small.settings(),
        small.records(),
        workers=3,
        strategy=strategy,
        cluster=cluster,
        steps=60,
        validation=small.records(24),
        validate_every=2,
        histograms_every=3,
        snapshot_every=2,
        on_event=listener,
    )
    listener.close()
    return folder


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    place = tmp_path_factory.mktemp("runs")
    return (
        trained(place / "short rounds", Averaging(5), STRAGGLING),
        trained(place / "long rounds", Averaging(20), Cluster(step=0.5)),
    )


def page(out: Path, *sources: Path) -> str:
    report(*sources, out=out)
    return out.read_text(encoding="utf-8")


# -- what the page says ----------------------------------------------------------------------


def test_a_page_asks_nothing_of_the_network(runs, tmp_path):
    text = page(tmp_path / "page.html", *runs)
    assert "default-src 'none'" in text
    assert not re.findall(r"(?:src|href)=|url\(|<script|@import", text)
    assert not re.findall(r"https?://(?!www\.w3\.org)", text)


def test_what_a_run_brings_is_escaped(runs, tmp_path):
    text = page(tmp_path / "page.html", runs[0])
    assert "a &lt;b&gt;cluster&lt;/b&gt;" in text
    assert "<b>cluster" not in text


def test_each_workers_time_is_told(runs, tmp_path):
    """Worker 1 is twice as slow: the others wait 2.5 s in each round, and 0.25 s for a message."""
    run = read(runs[0])
    assert isinstance(run, ReportedRun)
    rounds = run.rounds
    text = page(tmp_path / "page.html", runs[0])
    told = {
        (int(worker), part): float(seconds)
        for worker, part, seconds in re.findall(r"<title>worker (\d): (\w+) ([\d.]+) seconds", text)
    }
    assert told[1, "computing"] == pytest.approx(5.0 * len(rounds), rel=0.01)
    assert told[0, "computing"] == pytest.approx(2.5 * len(rounds), rel=0.01)
    assert told[0, "waiting"] == pytest.approx(2.75 * len(rounds), rel=0.01)
    assert told[1, "waiting"] == pytest.approx(0.25 * len(rounds), rel=0.01)
    assert told[1, "communicating"] == pytest.approx(0.5 * len(rounds), rel=0.01)
    assert len(rounds) >= 12  # those of before the loss are told as well


def test_totals_are_those_of_the_events(runs, tmp_path):
    run = read(runs[1])
    assert isinstance(run, ReportedRun)
    last = run.rounds[-1]
    text = page(tmp_path / "page.html", runs[1])
    tiles = dict(re.findall(r'tile"><small>([^<]*)</small><b>([^<]*)</b>', text))
    assert tiles["samples"] == f"{last['total_samples']:,}" == "720"
    assert tiles["training loss"] == f"{last['loss']:.4g}"
    assert tiles["ended because"] == "all steps are done"
    spent = [
        (one["seconds_computing"], one["seconds_communicating"])
        for event in run.rounds
        for one in event["workers"]
    ]
    computing, communicating = map(sum, zip(*spent, strict=True))
    share = communicating / (computing + communicating)
    assert tiles["communicating"] == f"{share:.0%}"


def test_settings_that_differ_are_marked(runs, tmp_path):
    text = page(tmp_path / "page.html", *runs)
    marked = re.findall(r'<tr class="differs"><td>([^<]*)</td><td>([^<]*)</td><td>([^<]*)', text)
    assert ("strategy: steps", "5", "20") in marked
    same = re.findall(r'<tr class=""><td>([^<]*)</td>', text)
    assert {"net", "workers", "python", "numpy", "cores"} <= set(same)


def test_stragglers_and_failures_are_listed(runs, tmp_path):
    text = page(tmp_path / "page.html", runs[0])
    assert "worker 1 on virtual (process 1): 1 s a step, others 0.5 s" in text
    assert "worker 2: PeerLost: " in text
    assert "<td>restart</td><td>attempt 2</td>" in text
    assert "There were none." in page(tmp_path / "other.html", runs[1])


def test_classes_are_told_apart(tmp_path):
    metrics = {"accuracy": 0.7, **{f"confusion[{n}]": v for n, v in enumerate([6, 2, 1, 1])}}
    event = {"event": "validation", "iteration": 5, "metrics": metrics}
    (tmp_path / "log.jsonl").write_text(json.dumps(event) + "\n", encoding="utf-8")
    text = page(tmp_path / "page.html", tmp_path / "log.jsonl")
    cells = '<td style="--share:{}%">{}</td><td style="--share:{}%">{}</td>'
    assert f"<th>0</th><td>75.0%</td>{cells.format(75, 6, 25, 2)}" in text
    assert f"<th>1</th><td>50.0%</td>{cells.format(50, 1, 50, 1)}" in text
    assert "predicted class" in text
    assert "true class" in text


def test_tiles_of_two_runs_say_whose_they_are(runs, tmp_path):
    text = page(tmp_path / "page.html", *runs)
    [samples] = re.findall(r"<small>samples</small>(.*?)</div>", text)
    told = re.findall(r'<i class="f(\d)"></i>([a-z ]+)</span> ([\d,]+)<', samples)
    assert [(shade, name) for shade, name, _ in told] == [
        ("0", "short rounds"),
        ("1", "long rounds"),
    ]
    assert '<span class="of">' not in page(tmp_path / "one.html", runs[0])


def test_a_resumed_run_is_marked(tmp_path):
    begun = {"event": "start", "iteration": 0, "net": "LeNet", "workers": 2, "steps": 10}
    again = {**begun, "iteration": 10, "steps": 20, "resumed": "/snapshots/run-1/round-10"}
    first = {"event": "round", "iteration": 10, "loss": 2.0, "samples": 640}
    second = {**first, "iteration": 20, "loss": 1.0}
    lines = "\n".join(json.dumps(one) for one in (begun, first, again, second))
    (tmp_path / "log.jsonl").write_text(lines + "\n", encoding="utf-8")
    text = page(tmp_path / "page.html", tmp_path / "log.jsonl")
    assert "resumed at iteration 10</p>" in text
    assert "<td>10</td><td>resumed</td><td>from /snapshots/run-1/round-10</td>" in text
    assert "<td>steps</td><td>20</td>" in text


def test_one_worker_has_nothing_to_send(tmp_path):
    with closing(RunFolder(tmp_path / "alone", small.settings())) as listener:
        simulate(small.settings(), small.records(), workers=1, steps=20, on_event=listener)
    text = page(tmp_path / "page.html", tmp_path / "alone")
    assert "1 worker, averaging" in text
    for said in ("Bytes sent by all workers", "Divergence of the workers", "0 bytes"):
        assert said not in text


def test_norms_and_histograms_of_layers_are_shown(runs, tmp_path):
    run = read(runs[1])
    assert isinstance(run, ReportedRun)
    [look] = run.of_kind("layers")
    text = page(tmp_path / "page.html", runs[1])
    assert text.count('aria-label="ip1: weights"') == 1
    assert text.count('aria-label="ip2[1]: gradients"') == 1
    norm = look["parameters"][0]["gradients"]["norm"]
    assert "<td>ip1</td><td>15</td><td>" in text
    assert f"<td>{norm:.4g}</td>" in text
    (tmp_path / "log").write_text(json.dumps(run.rounds[0]) + "\n", encoding="utf-8")
    assert "Weights and gradients" not in page(tmp_path / "page.html", tmp_path / "log")


# -- the net ---------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["lenet", "googlenet", "resnet50"])
def test_nets_of_the_zoo_are_drawn(name):
    found = outline(models.net(name).to_proto())
    drawn = drawing(found)
    own = [one for one in found if not (one["bottoms"] and one["bottoms"] == one["tops"])]
    assert drawn.count('class="layer ') == len(own)
    places = re.findall(r'<rect x="(-?\d+)" y="(-?\d+)"', drawn)
    assert len(set(places)) == len(own)  # no box hides another


# -- in a browser ----------------------------------------------------------------------------


def test_a_browser_shows_a_run(runs, tmp_path):
    page(tmp_path / "run.html", runs[0])
    found = browser.look_at(tmp_path / "run.html", 1100, tmp_path)
    first, second = found["before"], found["after"]
    for words in (
        "Loss and accuracy",
        "Where the time went",
        "Restarts, stragglers and failures",
        "Learning",
        "Weights and gradients",
    ):
        assert words in first["text"]
    charts = {chart["name"]: chart for chart in first["charts"]}
    assert {
        "Loss",
        "Seconds in all rounds",
        "Seconds of worker 2",
        "Samples per second",
        "Learning rate",
        "Norms of weights",
        "Norms of gradients",
        "Bytes sent by all workers",
        "the net",
    } <= set(charts)
    assert all(chart["drawn"] > 0 and chart["width"] > 100 for chart in first["charts"])
    assert charts["Loss"]["labels"][-1] == "samples"
    [loss] = [chart for chart in second["charts"] if chart["name"] == "Loss"]
    assert loss["labels"][-1] == "seconds"  # a click on "time" shows the other axis
    assert first["wide"] <= first["inside"]


@pytest.mark.parametrize("width", [360, 1100])
def test_two_runs_fit_a_phone_and_a_desk(runs, width, tmp_path):
    page(tmp_path / "runs.html", *runs)
    found = browser.look_at(tmp_path / "runs.html", width, tmp_path)["before"]
    assert found["inside"] == width
    assert found["wide"] <= width
    assert "short rounds: training" in found["text"]
    assert "long rounds: training" in found["text"]
    charts = [chart["width"] for chart in found["charts"] if chart["name"] != "the net"]
    assert min(charts) > 250
    assert max(charts) < width


def test_a_browser_shows_a_plan(tmp_path):
    made = plan(small.settings(), workers=[1, 4], cluster=Cluster(step=0.01, latency=0.01))
    (tmp_path / "plan.json").write_text(json.dumps(made.to_json()), encoding="utf-8")
    assert main(["report", str(tmp_path / "plan.json")]) == 0
    found = browser.look_at(tmp_path / "plan.html", 360, tmp_path)["before"]
    assert "Advice:" in found["text"]
    assert [chart["name"] for chart in found["charts"]] == [
        "Milliseconds of an iteration",
        "Communication, % of the time",
    ]
    assert found["wide"] <= 360
    page = (tmp_path / "plan.html").read_text(encoding="utf-8")
    assert "<th>iteration, ms</th>" in page
    [row] = re.findall(r"<tr[^>]*><td>Averaging\(steps=1\)</td><td>4</td>(.*?)</tr>", page)
    step = next(row for row in made.rows if str(row.workers) == "4").iteration
    assert f"<td>{1e3 * step:.4g}</td>" in row


# -- files -----------------------------------------------------------------------------------


def test_train_writes_a_folder_that_report_reads(tmp_path):
    solver = small.settings()
    solver.snapshot_prefix = str(tmp_path / "small")
    write_text(tmp_path / "solver.prototxt", solver)
    records = small.records().take(slice(0, small.RECORDS))
    arrays = []
    for name, values in records.items():
        np.save(tmp_path / f"{name}.npy", values)
        arrays.append(f"{name}={tmp_path / name}.npy")
    run = tmp_path / "run"
    words = ["train", "-solver", str(tmp_path / "solver.prototxt"), "-iterations", "20", "--data"]
    assert main([*words, *arrays, "--run-folder", str(run)]) == 0
    assert main(["report", str(run)]) == 0
    text = (run / "report.html").read_text(encoding="utf-8")
    assert "base_lr: 0.05" in text
    assert "<td>data</td><td>x=" in text
    assert text.count('class="layer ') == 5


def test_a_log_alone_is_a_run(runs, tmp_path):
    text = page(tmp_path / "log.html", runs[0] / "events.jsonl")
    assert "Where the time went" in text


@pytest.mark.parametrize(
    ("content", "wrong"),
    [
        ("", "has no round"),
        ("nonsense\n", "line 1 is no event"),
        ('{"event": "start"}\n', "no round"),
    ],
)
def test_what_is_no_run_is_refused(content, wrong, tmp_path):
    (tmp_path / "log.jsonl").write_text(content, encoding="utf-8")
    with pytest.raises(FileError, match=wrong):
        report(tmp_path / "log.jsonl", out=tmp_path / "page.html")


def test_an_empty_folder_is_refused(tmp_path):
    with pytest.raises(FileError, match="holds no run: there is no events"):
        report(tmp_path, out=tmp_path / "page.html")


def test_a_plan_is_not_beside_a_run(runs, tmp_path):
    (tmp_path / "plan.json").write_text('{"event": "plan"}', encoding="utf-8")
    with pytest.raises(SettingError, match="only runs can be compared, and plan is a plan"):
        report(runs[0], tmp_path / "plan.json", out=tmp_path / "page.html")


def test_events_of_earlier_versions_are_shown(tmp_path):
    """Without the parts of the times, and without totals."""
    events = [
        {"event": "start", "iteration": 0, "workers": 1},
        *(
            {
                "event": "round",
                "iteration": n,
                "loss": 1 / n,
                "samples": 8,
                "seconds_computing": 2.0,
            }
            for n in (1, 2, 3)
        ),
    ]
    lines = "".join(json.dumps(event) + "\n" for event in events)
    (tmp_path / "old.jsonl").write_text(lines, encoding="utf-8")
    text = page(tmp_path / "page.html", tmp_path / "old.jsonl")
    assert "<b>24</b>" in text
    assert "<b>6 s</b>" in text
