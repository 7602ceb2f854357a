"""Score the readings of many sensors as they arrive: how far each is from what an LSTM expects.

    python examples/sensors.py

An LSTM learns to forecast the next reading of sensors that work.  On the stream it goes from
reading to reading, and keeps its state for each sensor: `transform_with_states`.  The sensor that
is stuck has the highest scores.  A query that is started again goes on with the states of its
checkpoint.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

import sparknet
from sparknet import Net
from sparknet.spark import get_session, transform_with_states

SENSORS, HOURS, HIDDEN = 8, 96, 16
STUCK = 5
STORE = "spark.sql.streaming.stateStore.providerClass"
ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
STATES = {"expected": "forecast", "h_0": "h_T", "c_0": "c_T"}
"""Input of the net → the blob that is its value for the sensor's next reading."""


def blob(name: str, *sizes: int) -> str:
    shape = " ".join(f"dim: {size}" for size in sizes)
    top = f'name: "{name}" type: "Input" top: "{name}"'
    return f"layer {{ {top} input_param {{ shape {{ {shape} }} }} }}"


def lstm(steps: int, streams: int, states: str, tops: str) -> str:
    """The net from readings to forecasts; time is the first axis, sensors are the second."""
    exposes = "expose_hidden: true" if tops else ""
    return f"""
        {blob("reading", steps, streams, 1)} {blob("cont", steps, streams)}
        layer {{ name: "lstm" type: "LSTM" bottom: "reading" bottom: "cont" {states}
          top: "hidden" {tops} recurrent_param {{ num_output: {HIDDEN}
          weight_filler {{ type: "uniform" min: -0.2 max: 0.2 }} {exposes} }} }}
        layer {{ name: "forecast" type: "InnerProduct" bottom: "hidden" top: "forecast"
          inner_product_param {{ num_output: 1 axis: 2 weight_filler {{ type: "xavier" }} }} }}"""


LEARNER = f"""net_param {{ {lstm(HOURS - 1, 4, "", "")} {blob("next", HOURS - 1, 4, 1)}
  layer {{ name: "loss" type: "EuclideanLoss" bottom: "forecast" bottom: "next" top: "loss" }} }}
  type: "Adam" base_lr: 0.01 lr_policy: "fixed" random_seed: 1"""
SCORER = f"""
  {blob("expected", 1, 1, 1)} {blob("h_0", 1, 1, HIDDEN)} {blob("c_0", 1, 1, HIDDEN)}
  {lstm(1, 1, 'bottom: "h_0" bottom: "c_0"', 'top: "h_T" top: "c_T"')}
  layer {{ name: "apart" type: "Eltwise" bottom: "reading" bottom: "expected" top: "apart"
    eltwise_param {{ operation: SUM coeff: 1 coeff: -1 }} }}
  layer {{ name: "score" type: "AbsVal" bottom: "apart" top: "score" }}"""


def readings(sensors: int, seed: int) -> Any:
    """The temperature of a day and night, with each sensor's own phase and noise."""
    rng = np.random.default_rng(seed)
    angles = 2 * np.pi * np.arange(HOURS) / 24 + rng.uniform(0, 2 * np.pi, (sensors, 1))
    return (np.sin(angles) + 0.05 * rng.normal(size=angles.shape)).astype(np.float32)


def learn(folder: Path) -> Net:
    """Return the net that scores, with the weights of the one that forecasts."""
    values = readings(64, seed=0)[..., np.newaxis]
    data = {"reading": values[:, :-1], "next": values[:, 1:], "cont": np.ones((64, HOURS - 1))}
    data["cont"][:, 0] = 0  # where a sequence begins
    sparknet.train(LEARNER, data, steps=300).net.save(folder / "forecast.caffemodel")
    return Net(SCORER, folder / "forecast.caffemodel")


def write(folder: Path) -> None:
    """The readings of new sensors, a file for each day."""
    values = readings(SENSORS, seed=1)
    values[STUCK, HOURS // 2 :] = values[STUCK, HOURS // 2]
    for day in range(HOURS // 24):
        rows = [
            {"sensor": sensor, "hour": hour, "reading": float(values[sensor, hour])}
            for hour in range(24 * day, 24 * (day + 1))
            for sensor in range(SENSORS)
        ]
        file = folder / f"{day}.json"
        file.write_text("\n".join(map(json.dumps, rows)))
        os.utime(file, (1.7e9 + day, 1.7e9 + day))  # a stream reads the oldest first


def main() -> None:
    spark = get_session()
    spark.conf.set(STORE, ROCKSDB)
    with TemporaryDirectory() as name:
        folder = Path(name)
        net = learn(folder)
        (folder / "arriving").mkdir()
        write(folder / "arriving")
        stream = spark.readStream.schema("sensor long, hour long, reading float")
        arriving = stream.option("maxFilesPerTrigger", 1).json(str(folder / "arriving"))
        rows = arriving.selectExpr("*", "1 AS cont")
        scores = transform_with_states(rows, net, "sensor", STATES, order="hour", outputs=["score"])
        sink = scores.writeStream.format("parquet")
        query = sink.option("checkpointLocation", str(folder / "checkpoint"))
        query.trigger(availableNow=True).start(str(folder / "scores")).awaitTermination()
        late = spark.read.parquet(str(folder / "scores")).where(f"hour > {HOURS // 2}")
        means = late.groupBy("sensor").agg({"score": "mean"}).collect()
    by_sensor = sorted(((row[1], row[0]) for row in means), reverse=True)
    for score, sensor in by_sensor:
        print(f"sensor {sensor}: {score:.3f}{' (stuck)' if sensor == STUCK else ''}")
    assert by_sensor[0][1] == STUCK


if __name__ == "__main__":
    main()
