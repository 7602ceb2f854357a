"""Logistic regression over HDF5 files, and a net with one hidden layer beside it."""

import caffe
import h5py
import numpy as np
from caffe import layers as L
from caffe import params as P

rng = np.random.RandomState(0)
X = rng.randn(1000, 4).astype(np.float32)
y = (X[:, 0] * X[:, 1] + X[:, 2] > 0).astype(np.float32)
for name, part in (("train", slice(0, 750)), ("test", slice(750, 1000))):
    with open(name + ".txt", "w") as f:
        for half in range(2):
            with h5py.File(f"{name}_{half}.h5", "w") as h:
                comp_kwargs = {"compression": "gzip", "compression_opts": 1}
                h.create_dataset("data", data=X[part][half::2], **comp_kwargs)
                h.create_dataset("label", data=y[part][half::2], **comp_kwargs)
            f.write(f"{name}_{half}.h5\n")


def logreg(hdf5, batch_size, hidden=0):
    n = caffe.NetSpec()
    n.data, n.label = L.HDF5Data(batch_size=batch_size, source=hdf5, ntop=2)
    last = n.data
    if hidden:
        n.ip1 = L.InnerProduct(n.data, num_output=hidden, weight_filler=dict(type="xavier"))
        n.relu1 = last = L.ReLU(n.ip1, in_place=True)
    n.ip2 = L.InnerProduct(last, num_output=2, weight_filler=dict(type="xavier"))
    n.accuracy = L.Accuracy(n.ip2, n.label)
    n.loss = L.SoftmaxWithLoss(n.ip2, n.label)
    return n.to_proto()


def solver(name, train, test):
    s = caffe.proto.caffe_pb2.SolverParameter()
    s.train_net, s.max_iter, s.random_seed = train, 1200, 3
    s.test_net.append(test)
    s.test_interval = 600
    s.test_iter.append(25)
    s.base_lr, s.lr_policy, s.gamma, s.stepsize = 0.1, "step", 0.3, 500
    s.momentum, s.weight_decay = 0.9, 5e-4
    s.display, s.snapshot, s.snapshot_prefix = 1000, 10000, name
    s.solver_mode = caffe.proto.caffe_pb2.SolverParameter.CPU
    with open(name + "_solver.prototxt", "w") as f:
        f.write(str(s))
    return caffe.get_solver(name + "_solver.prototxt")


print(P.Data.LMDB, P.Pooling.AVE)
for name, hidden in (("linear", 0), ("hidden", 40)):
    for part in ("train", "test"):
        with open(f"{name}_{part}.prototxt", "w") as f:
            f.write(str(logreg(part + ".txt", 10, hidden)))
    trained = solver(name, f"{name}_train.prototxt", f"{name}_test.prototxt")
    trained.solve()
    accuracy, test_iters = 0, 25
    for _ in range(test_iters):
        trained.test_nets[0].forward()
        accuracy += trained.test_nets[0].blobs["accuracy"].data
    print(f"{name}: accuracy {accuracy / test_iters:.2f}")
