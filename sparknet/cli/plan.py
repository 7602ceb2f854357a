"""`sparknet plan`: what training would cost, and which strategy, τ and workers to take."""

from __future__ import annotations

import json
from argparse import ArgumentParser, Namespace
from typing import TYPE_CHECKING, Any

from sparknet.cli import flags, image_flags, inputs, net_file, setting_flags
from sparknet.cli.verb import Verb, WrongUse

if TYPE_CHECKING:
    from sparknet.proto.caffe_pb2 import SolverParameter
    from sparknet.training.virtual import Cluster


def _arguments(parser: ArgumentParser) -> None:
    net_file.add_solver(parser)
    flags.add_state(parser)
    flags.add_trust(parser)
    flags.add_precision(parser, training=True)
    add = parser.add_argument
    add(
        "--data",
        metavar="SOURCE",
        nargs="+",
        help=f"the training data (default: random records): {inputs.HELP}",
    )
    add(
        "--validation", metavar="SOURCE", nargs="+", help="records to validate on in simulated runs"
    )
    add(
        "--step",
        type=float,
        metavar="SECONDS",
        help="the time of one step (C), instead of measuring it",
    )
    add(
        "--bandwidth",
        type=float,
        metavar="MB/S",
        help="the network's bandwidth, instead of measuring it",
    )
    add(
        "--latency", type=float, metavar="MS", help="the network's latency, instead of measuring it"
    )
    add("--json", action="store_true", help="print JSON, which sparknet report reads")
    group = parser.add_argument_group("what is planned")
    setting_flags.add(parser, group, setting_flags.of_plan())
    setting_flags.add_spark(
        parser, "With --spark the measurements run on Spark.", "run the workers as Spark tasks"
    )
    image_flags.add(parser, training=True)
    parser.set_defaults(weights=None, snapshot=None, iterations=None)


def _execute(chosen: Namespace) -> int:
    from sparknet.training.planning import plan

    net_file.take_solver(chosen)
    on_spark = setting_flags.is_on_spark(chosen, setting_flags.SPARK_FLAGS[1:])
    settings = net_file.read_solver(chosen)
    keywords = setting_flags.keywords_of(chosen, setting_flags.of_plan().keys() - {"validation"})
    keywords |= {"cluster": _cluster(chosen), **image_flags.keywords(chosen)}
    if on_spark:
        planned = _on_spark(chosen, settings, keywords)
    else:
        how = image_flags.preprocessing(chosen)
        data, validation = (
            words and inputs.open_records(words, how) for words in (chosen.data, chosen.validation)
        )
        planned = plan(settings, data, validation=validation, **keywords)
    print(json.dumps(planned.to_json()) if chosen.json else planned)
    return 0


def _cluster(chosen: Namespace) -> Cluster | None:
    """Return the cluster of which something is given."""
    from sparknet.training.virtual import Cluster

    keywords: dict[str, Any] = {"step": chosen.step}
    if chosen.bandwidth is not None:
        keywords["bandwidth"] = 1e6 * chosen.bandwidth
    if chosen.latency is not None:
        keywords["latency"] = 1e-3 * chosen.latency
    if keywords == {"step": None}:
        return None
    return Cluster(**keywords)


def _on_spark(chosen: Namespace, settings: SolverParameter, given: dict[str, Any]) -> Any:
    from sparknet.spark import get_session, runner
    from sparknet.training.planning import plan

    if not (chosen.sql or chosen.data):
        raise WrongUse("--spark measures with data", "give --data SOURCE or --sql QUERY")
    if chosen.accuracy is not None:
        raise WrongUse("--accuracy tries in virtual time on this machine", "leave --spark out")
    given.setdefault("workers", [2])
    session = get_session(max(given["workers"]), master=chosen.master, name="sparknet plan")
    try:
        how = image_flags.preprocessing(chosen)
        frame = setting_flags.read_frame(session, chosen.sql, chosen.data, how)
        run = runner(frame, columns=setting_flags.columns(chosen), **image_flags.keywords(chosen))
        return plan(settings, run=run, **{"records": frame.count(), **given})
    finally:
        session.stop()


VERB = Verb(
    "plan",
    "Measure what a step and a synchronisation take, and advise on strategy, steps and workers.",
    _arguments,
    _execute,
)
