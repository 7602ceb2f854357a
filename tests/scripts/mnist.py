"""Train LeNet on MNIST by its solver file and report the accuracy on the test set.

mnist.py solver.prototxt train_lmdb test_lmdb weights.npz
"""

import sys

import caffe
import numpy as np
from caffe import layers as L
from caffe import params as P
from caffe.proto import caffe_pb2
from google.protobuf import text_format


def data(source, batch_size, phase):
    return L.Data(
        name="mnist",
        source=source,
        backend=P.Data.LMDB,
        batch_size=batch_size,
        transform_param=dict(scale=1.0 / 256),
        include=dict(phase=phase),
        ntop=2,
    )


def lenet(train_lmdb, test_lmdb):
    w, b = dict(lr_mult=1), dict(lr_mult=2)
    fill = dict(weight_filler=dict(type="xavier"), bias_filler=dict(type="constant"), param=[w, b])
    test = caffe.NetSpec()
    test.data, test.label = data(test_lmdb, 100, caffe.TEST)
    n = caffe.NetSpec()
    n.data, n.label = data(train_lmdb, 64, caffe.TRAIN)
    n.conv1 = L.Convolution(n.data, num_output=20, kernel_size=5, **fill)
    n.pool1 = L.Pooling(n.conv1, pool=P.Pooling.MAX, kernel_size=2, stride=2)
    n.conv2 = L.Convolution(n.pool1, num_output=50, kernel_size=5, **fill)
    n.pool2 = L.Pooling(n.conv2, pool=P.Pooling.MAX, kernel_size=2, stride=2)
    n.ip1 = L.InnerProduct(n.pool2, num_output=500, **fill)
    n.relu1 = L.ReLU(n.ip1, in_place=True)
    n.ip2 = L.InnerProduct(n.ip1, num_output=10, **fill)
    n.accuracy = L.Accuracy(n.ip2, n.label, include=dict(phase=caffe.TEST))
    n.loss = L.SoftmaxWithLoss(n.ip2, n.label)
    return 'name: "LeNet"\n' + str(test.to_proto()) + str(n.to_proto())


solver_file, train_lmdb, test_lmdb, weights = sys.argv[1:]
with open("lenet_train_test.prototxt", "w") as f:
    f.write(lenet(train_lmdb, test_lmdb))
settings = caffe_pb2.SolverParameter()
with open(solver_file) as f:
    text_format.Merge(f.read(), settings)
settings.net = "lenet_train_test.prototxt"
settings.random_seed = 1701
settings.snapshot_prefix = "lenet"
settings.max_iter = 1500
settings.test_iter[0] = 15
with open("solver.prototxt", "w") as f:
    f.write(str(settings))

solver = caffe.get_solver("solver.prototxt")
solver.solve()
net = solver.test_nets[0]
accuracy = 0.0
for _ in range(15):
    accuracy += net.forward()["accuracy"] / 15
print(f"iteration {solver.iter}: accuracy {float(accuracy):.4f}")
params = solver.net.params
np.savez(weights, **{f"{name}_{i}": b.data for name in params for i, b in enumerate(params[name])})
