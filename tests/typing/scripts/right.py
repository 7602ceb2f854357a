"""Right uses, of which a type checker says nothing."""

from pathlib import Path

import numpy as np

import sparknet
from sparknet import (
    Convolution,
    LinearLayer,
    Net,
    NetParams,
    Pooling,
    RDDLayer,
    SolverParams,
    caffe,
)
from sparknet.dsl import InnerProduct, SoftmaxWithLoss
from sparknet.spark import SparkModel, Trainer, local_session
from sparknet.training import AllReduce, simulate

net = NetParams(
    "small",
    RDDLayer("data", shape=[8, 1, 28, 28]),
    RDDLayer("label", shape=[8]),
    Convolution("conv", "data", num_output=4, kernel_size=3, weight_filler="xavier", pad=[1, 1]),
    Pooling("pool", ["conv"], pool="MAX", kernel_size=2, stride=2, in_place=False),
    InnerProduct("ip", "pool", num_output=np.int64(10), param=["w", {"name": "b"}], lr_mult=[1, 2]),
    LinearLayer("ip2", "ip", num_outputs=10),
    SoftmaxWithLoss("loss", ["ip2", "label"], include="TRAIN", loss_param={"ignore_label": 3}),
)
solver = SolverParams(net=net, base_lr=0.1, lr_policy="fixed", stepvalue=[10, 20], test_iter=3)
rate: float = solver.but(base_lr=0.2).base_lr
steps: int = solver.max_iter
values: list[int] = list(solver.stepvalue)

images = np.zeros((100, 1, 28, 28), np.float32)
labels = np.zeros(100)
one = Net(solver, seed=1, resize=28, mean=(104, 117, 123), color="bgr")
one.set_training_data((images, labels))
loss: float = one.train(10)
scores: dict[str, float] = one.test(metrics=["confusion"])
same = Net(Path("net.prototxt"), "net.caffemodel", precision="bf16").forward({"data": images})

trained = sparknet.train(solver, (images, labels), workers=2, strategy=AllReduce(), steps=50)
reason: str = trained.outcome.reason
simulate(solver, (images, labels), workers=4)
size: int = sparknet.models.net("lenet").graph().param_count

other = caffe.Net("net.prototxt", caffe.TEST, weights="net.caffemodel")
other.forward(data=images)
caffe.get_solver("solver.prototxt").step(10)
caffe.get_solver(solver).solve()
spec = caffe.NetSpec()
spec.data = caffe.layers.Input(shape={"dim": [1, 3]})
caffe.get_solver("solver.prototxt", spec)

session = local_session()
data = session.createDataFrame([(0.0,)], ["label"])
trainer = Trainer(solver, workers=2, strategy="averaging")
model = SparkModel(one, columns={"data": "image"}, mean=104.0)
model.transform(data, ["ip"], invalid="drop").show()
trainer.fit(data)
