"""A training's events, as the tests here use them."""

START = {
    "event": "start",
    "net": "small",
    "workers": 2,
    "strategy": "Averaging(steps=10)",
    "iteration": 0,
    "steps": 40,
}


def round_event(number, **fields):
    """Ten steps, 640 samples, in a second, a quarter of it in communication."""
    return {
        "event": "round",
        "round": number,
        "iteration": 10 * number,
        "epoch": number / 2,
        "steps": 10,
        "samples": 640,
        "loss": 2.0 / number,
        "seconds_computing": 0.75,
        "seconds_communicating": 0.25,
        "bytes_sent": 1000,
        "divergence": 0.5,
    } | fields


def validation(number, **metrics):
    return {"event": "validation", "iteration": 10 * number, "metrics": metrics}


def layers(number, norm=2.0):
    """A look at two blobs."""
    counts = {"norm": norm, "low": -1.0, "high": 1.0, "counts": [1, 3]}
    blobs = [{"layer": "ip", "blob": blob, "size": 4} for blob in range(2)]
    parameters = [{**one, "weights": counts, "gradients": counts} for one in blobs]
    return {"event": "layers", "round": number, "iteration": 10 * number, "parameters": parameters}


TRAINING = [
    START,
    round_event(1),
    validation(1, accuracy=0.5, loss=1.5),
    round_event(2),
    {"event": "snapshot", "iteration": 20, "path": "snapshots/round-2"},
    round_event(3),
    validation(3, accuracy=0.9, loss=0.7),
    round_event(4),
    {"event": "stop", "iteration": 40, "reason": "steps"},
]
