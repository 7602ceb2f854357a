"""Somebody with scripts for pycaffe."""

import numpy as np

from sparknet import caffe
from sparknet.caffe import layers as L
from sparknet.caffe import params as P

caffe.set_mode_cpu()
net = caffe.Net("deploy.prototxt", "weights.caffemodel", caffe.TEST)
transformer = caffe.io.Transformer({"data": net.blobs["data"].data.shape})
transformer.set_transpose("data", (2, 0, 1))
transformer.set_mean("data", np.array([104.0, 117.0, 123.0]))
transformer.set_raw_scale("data", 255)
transformer.set_channel_swap("data", (2, 1, 0))
net.blobs["data"].reshape(1, 3, 227, 227)
image = caffe.io.load_image("cat.jpg")
net.blobs["data"].data[...] = transformer.preprocess("data", image)
probabilities = net.forward()["prob"][0]
print(int(probabilities.argmax()), net.params["conv1"][0].data.mean())
net.forward(blobs=["fc7"], data=np.zeros((1, 3, 227, 227)))
net.save("copy.caffemodel")


def lenet(source: str, batch_size: int) -> str:
    n = caffe.NetSpec()
    n.data, n.label = L.Data(source=source, batch_size=batch_size, backend=P.Data.LMDB, ntop=2)
    n.conv = L.Convolution(n.data, kernel_size=5, num_output=20, weight_filler={"type": "xavier"})
    n.pool = L.Pooling(n.conv, kernel_size=2, stride=2, pool=P.Pooling.MAX)
    n.loss = L.SoftmaxWithLoss(n.pool, n.label)
    return str(n.to_proto())


solver = caffe.SGDSolver("solver.prototxt")
solver.net.copy_from("weights.caffemodel")
solver.step(100)
accuracy = float(solver.test_nets[0].forward()["accuracy"])
solver.snapshot()
solver.restore("a.solverstate")
classifier = caffe.Classifier("deploy.prototxt", "w.caffemodel", mean=np.zeros((3, 256, 256)))
classes = classifier.predict([image], oversample=False).argmax(axis=1)


class Doubled(caffe.Layer):
    """A layer in Python."""

    def setup(self, bottom: list[caffe.Blob], top: list[caffe.Blob]) -> None:
        self.factor = float(self.param_str or 2)

    def reshape(self, bottom: list[caffe.Blob], top: list[caffe.Blob]) -> None:
        top[0].reshape(*bottom[0].data.shape)

    def forward(self, bottom: list[caffe.Blob], top: list[caffe.Blob]) -> None:
        top[0].data[...] = self.factor * bottom[0].data
