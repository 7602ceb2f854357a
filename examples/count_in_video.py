"""Count what a detector finds in videos, second by second.

    python examples/count_in_video.py DETECTOR VIDEO … [--every 1] [--score 0.5] [--out FOLDER]
    spark-submit examples/count_in_video.py …

DETECTOR is a saved model or a caffemodel that ends in a DetectionOutput.  The tasks of Spark share
the videos by spans of a minute.
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from sparknet.spark import SparkModel, get_session, read_videos

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def count(detections: DataFrame, column: str, score: float) -> DataFrame:
    """Return path, seconds, label, name and count: objects of a class in a frame.

    ``detections`` are frames with a column of what was detected.
    """
    from pyspark.sql.functions import explode

    boxes = detections.select("path", "seconds", explode(column).alias("box"))
    sure = boxes.where(boxes.box.score >= score)
    return sure.groupBy("path", "seconds", "box.label", "box.name").count()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("detector")
    parser.add_argument("videos", nargs="+")
    parser.add_argument("--every", type=float, default=1.0, help="seconds between two frames")
    parser.add_argument("--score", type=float, default=0.5)
    parser.add_argument("--out", help="a folder of Parquet; else the counts are printed")
    chosen = parser.parse_args()
    session = get_session(workers=2)
    model = SparkModel(chosen.detector)
    frames = read_videos(session, chosen.videos, every=chosen.every)
    picture, output = model.predictor.input_names[0], model.result_columns()[0]
    detections = model.transform(frames, columns={picture: "image"})
    counts = count(detections, output.column, chosen.score)
    if chosen.out:
        counts.write.parquet(chosen.out)
    else:
        counts.orderBy("path", "seconds", "label").show(1000, truncate=False)


if __name__ == "__main__":
    main()
