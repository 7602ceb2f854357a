"""A layer that makes one worker slow: there it computes, for nothing."""

from time import thread_time

from tests.spark.recorder import Recorder

LAYER = """layer { name: "burner" type: "Python" bottom: "label" top: "burnt"
  python_param { module: "tests.spark.burner" layer: "Burner" param_str: "%d %g" } }"""


def burning(net: str, worker: int, seconds: float) -> str:
    """The net, in which each forward pass of one worker takes so much of a processor's time."""
    return net + LAYER % (worker, seconds)


class Burner(Recorder):
    """Asks Spark in whose task it runs."""

    def setup(self, bottom, top):
        worker, seconds = self.param_str.split()
        self.worker, self.seconds = int(worker), float(seconds)

    def forward(self, bottom, top):
        from pyspark import TaskContext

        context = TaskContext.get()
        if context is not None and context.partitionId() == self.worker:
            until = thread_time() + self.seconds
            while thread_time() < until:
                pass
