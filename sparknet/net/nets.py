"""Nets: the nets of a solver, and a test of one over records."""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any

import numpy as np

from sparknet.errors import DataError, SpecError
from sparknet.layers import TEST, TRAIN, Shape
from sparknet.loaders.opening import open_images
from sparknet.loaders.records import with_classes
from sparknet.net.backend import Backend
from sparknet.net.description import NetMessage, NetSource, describe
from sparknet.net.entries import UnknownShape
from sparknet.net.fed import FedNet
from sparknet.net.origin import Origin
from sparknet.net.portable import portable_net, portable_solver, process_folder
from sparknet.net.scores import Means, Scores, judged_blobs
from sparknet.proto import parse_net, parse_solver
from sparknet.weights import WeightCollection, check_layers, copy_weights, open_weights


class Nets:
    """The net that is trained or run and those for testing, each built at its first use.

    ``alone`` is the phase of a net without a solver."""

    def __init__(
        self, origin: Origin, backend: Backend, alone: int, given_seed: int | None, seed: int
    ) -> None:
        self.origin, self.description = origin, origin.description
        self.backend, self.seed, self._given_seed = backend, seed, given_seed
        self._solver: Any = None
        self._shares_models = False
        if self.description.solver is None:
            self.main = self._fed(self.description.main, alone, self._make_main, "data")
            self.tests = [self.main]
        else:
            self.main = self._fed(self.description.main, TRAIN, self._make_main, "training data")
            self.tests = [
                self._fed(described, TEST, self._make_test, "validation data")
                for described in self.description.tests
            ]

    @property
    def solver(self) -> Any:
        """The pycaffe solver of the training net; None for a net without a solver."""
        _ = self.main.net
        return self._solver

    def know(self, shapes: Mapping[str, Shape]) -> None:
        """Let all of them have the shapes of records that one has found."""
        for fed in (self.main, *self.tests):
            for name, shape in shapes.items():
                fed.records.setdefault(name, shape)

    def set_data(
        self, fed: FedNet, data: Any, transformed: bool, labels: tuple[str, ...]
    ) -> tuple[str, ...]:
        """Set the records of a net; returns the names of the net's classes."""
        if isinstance(data, (str, os.PathLike)):
            data = open_images(os.fspath(data), self.origin.preprocessing)
        learns = fed is self.main and self.description.solver is not None
        data, labels = with_classes(data, labels, fed.what, learns)
        self.know(fed.set_data(data, transformed))
        return labels

    def test(self, number: int) -> FedNet:
        if not 0 <= number < len(self.tests):
            raise SpecError(f"there is no test net {number}, there are {len(self.tests)}")
        return self.tests[number]

    def share(self, fed: FedNet) -> FedNet:
        """Let a test net share the trained weights."""
        if fed is not self.main and not fed.is_shared:
            fed.net.share_with(self.main.net)
            fed.is_shared = True
        return fed

    @classmethod
    def start(cls, origin: Origin, backend: Backend, alone: int, seed: int | None) -> Nets:
        """With this seed, the solver's or a drawn one."""
        solver = origin.description.solver
        if seed is None and solver is not None and solver.random_seed >= 0:
            seed = int(solver.random_seed)
        return cls(origin, backend, alone, seed, backend.seed(seed))

    def again(self, backend: Backend, origin: Origin) -> Nets:
        """Others, not built yet, which know the shapes of records that these do."""
        others = Nets(origin, backend, self.main.phase, self._given_seed, self.seed)
        self._shares_models = others._shares_models = bool(origin.models)
        for mine, theirs in zip(
            (self.main, *self.tests), (others.main, *others.tests), strict=True
        ):
            theirs.records.update(mine.records)
            theirs.knows_pictures = mine.knows_pictures
        return others

    def __getstate__(self) -> dict[str, Any]:
        """Return what another process builds them from, without data and the solver's state."""
        origin, solver = self.origin, self.description.solver
        with suppress(UnknownShape):
            origin = origin.used(weights=WeightCollection.of(self.main.net))
        return {
            "origin": replace(origin, description=None, models=()),  # type: ignore[arg-type]
            "source": portable_net(self.description.main)
            if solver is None
            else portable_solver(solver),
            "phase": None if solver is not None else self.main.phase,
            "rest": (self.backend, self._given_seed, self.seed),
            "known": [(fed.records, fed.knows_pictures) for fed in (self.main, *self.tests)],
        }

    def __setstate__(self, state: Mapping[str, Any]) -> None:
        text, phase = state["source"].unpacked(process_folder()), state["phase"]
        message: NetSource = parse_solver(text) if phase is None else parse_net(text)
        origin = replace(state["origin"], description=describe(message, phase))
        backend, given_seed, seed = state["rest"]
        Nets.__init__(self, origin, backend, TEST if phase is None else phase, given_seed, seed)
        for fed, (records, knows) in zip((self.main, *self.tests), state["known"], strict=True):
            fed.records.update(records)
            fed.knows_pictures = knows

    def _fed(self, described: NetMessage, phase: int, make: Any, what: str) -> FedNet:
        others = (self.description.main, *self.description.tests)
        preprocessing = self.origin.preprocessing
        fed = FedNet(described, phase, make, self.backend, self.seed, what, others, preprocessing)
        fed.knows_pictures |= self.description.solver is not None
        return fed

    def _make_main(self, net: NetMessage) -> Any:
        origin = self.origin
        weights = open_weights(origin.files, dict(origin.models))
        for model in weights.values():
            model.passing = not self._shares_models
        if self.description.solver is None:
            caffe_net = self.backend.net(
                net, self.main.phase, self._given_seed, origin.flat, weights
            )
        else:
            bare = self.description.bare_solver(net)
            if self._given_seed is not None:
                bare.random_seed = self._given_seed
            self._solver = self.backend.solver(bare)
            caffe_net = self._solver.net
            copy_weights(caffe_net, weights)
        check_layers(caffe_net, weights)
        if getattr(caffe_net, "int8_param", None) is not None:
            self.description.main.int8_param.CopyFrom(caffe_net.int8_param)
        if origin.weights is not None:
            origin.weights.to_net(caffe_net)
        self.origin = origin.used()
        return caffe_net

    def _make_test(self, net: NetMessage) -> Any:
        return self.backend.net(net, TEST, self.seed)


def run_test(nets: Nets, number: int, steps: int | None, scores: Scores | None) -> Means:
    """Return the means of a test net's outputs over all records or ``steps`` batches."""
    fed = nets.test(number)
    fed.rewind()
    limit = _limit(nets, fed, steps, number)
    nets.share(fed)
    solver = nets.description.solver
    means = Means(fed.measures, fed.evaluated, "Integral" if solver is None else solver.ap_version)
    inputs = [place.name for place in fed.places]
    judged = None if scores is None else judged_blobs(fed.described, inputs)
    blobs = judged[:2] if judged else ()
    while (limit is None or means.batches < limit) and (rows := fed.fill(endless=False)):
        tops = fed.net.forward(blobs=list(blobs))
        means.add(fed.measured({name: tops[name] for name in fed.net.outputs}), rows)
        if scores is not None and judged is not None:
            predictions, targets = (np.asarray(tops[name]) for name in blobs)
            scores.add(predictions, targets, rows, judged.ignored)
    if not means.batches:
        raise DataError(f"the {fed.what} has come to its end")
    return means


def _limit(nets: Nets, fed: FedNet, steps: int | None, number: int) -> int | None:
    if steps is not None:
        if steps < 1:
            raise SpecError(f"test takes at least 1 step, not {steps}")
        return steps
    if fed.rows is not None and fed.rows.again:
        return None
    solver = nets.description.solver
    if solver is not None and number < len(solver.test_iter):
        return int(solver.test_iter[number])
    if fed.rows is None and any(
        not (one.kind.reads_files or one.kind.fills_itself) for one in fed.places
    ):
        raise DataError(f"no {fed.what} is set: set_validation_data takes the records to test")
    raise SpecError(f"the {fed.what} may have no end: say how many steps to test")
