"""Small nets that several tests use."""

from sparknet.dsl import (
    ActivationLayer,
    ConvLayer,
    LinearLayer,
    NetParams,
    PoolLayer,
    RDDLayer,
    SoftmaxWithLoss,
)


def lenet(**fields):
    """SparkNet's Listing 2."""
    return NetParams(
        "lenet",
        RDDLayer("data", shape=[64, 1, 28, 28]),
        RDDLayer("label", shape=[64]),
        ConvLayer("conv1", ["data"], kernel=(5, 5), num_filters=20),
        PoolLayer("pool1", ["conv1"], pool="max", kernel=(2, 2), stride=(2, 2)),
        ConvLayer("conv2", ["pool1"], kernel=(5, 5), num_filters=50),
        PoolLayer("pool2", ["conv2"], pool="max", kernel=(2, 2), stride=(2, 2)),
        LinearLayer("ip1", ["pool2"], num_outputs=500),
        ActivationLayer("relu1", ["ip1"], activation="relu"),
        LinearLayer("ip2", ["relu1"], num_outputs=10),
        SoftmaxWithLoss("loss", ["ip2", "label"]),
        **fields,
    )


def rebuilt(source, name="net"):
    """What a to_source text binds."""
    space = {}
    exec(source, space)
    return space[name]
