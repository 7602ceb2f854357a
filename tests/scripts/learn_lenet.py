"""Define LeNet with NetSpec, train it step by step and watch what it learns."""

import caffe
import digits
import lmdb
import numpy as np
from caffe import layers as L
from caffe import params as P


def write_lmdb(path, images, labels):
    env = lmdb.open(path, map_size=1 << 28)
    with env.begin(write=True) as txn:
        for i, (image, label) in enumerate(zip(images, labels, strict=True)):
            datum = caffe.io.array_to_datum(image, int(label))
            txn.put(f"{i:08d}".encode("ascii"), datum.SerializeToString())
    env.close()


def lenet(source, batch_size):
    n = caffe.NetSpec()
    n.data, n.label = L.Data(
        batch_size=batch_size,
        backend=P.Data.LMDB,
        source=source,
        transform_param=dict(scale=1.0 / 255),
        ntop=2,
    )
    n.conv1 = L.Convolution(n.data, kernel_size=5, num_output=20, weight_filler=dict(type="xavier"))
    n.pool1 = L.Pooling(n.conv1, kernel_size=2, stride=2, pool=P.Pooling.MAX)
    n.conv2 = L.Convolution(
        n.pool1, kernel_size=5, num_output=50, weight_filler=dict(type="xavier")
    )
    n.pool2 = L.Pooling(n.conv2, kernel_size=2, stride=2, pool=P.Pooling.MAX)
    n.fc1 = L.InnerProduct(n.pool2, num_output=100, weight_filler=dict(type="xavier"))
    n.relu1 = L.ReLU(n.fc1, in_place=True)
    n.score = L.InnerProduct(n.relu1, num_output=10, weight_filler=dict(type="xavier"))
    n.loss = L.SoftmaxWithLoss(n.score, n.label)
    return n.to_proto()


write_lmdb("train_lmdb", *digits.draw(500, seed=1))
write_lmdb("test_lmdb", *digits.draw(200, seed=2))
with open("lenet_train.prototxt", "w") as f:
    f.write(str(lenet("train_lmdb", 50)))
with open("lenet_test.prototxt", "w") as f:
    f.write(str(lenet("test_lmdb", 100)))
with open("lenet_solver.prototxt", "w") as f:
    f.write(
        'train_net: "lenet_train.prototxt" test_net: "lenet_test.prototxt" '
        "test_iter: 2 test_interval: 1000 base_lr: 0.02 momentum: 0.9 weight_decay: 0.0005 "
        'lr_policy: "inv" gamma: 0.0001 power: 0.75 max_iter: 1000 random_seed: 1701 '
        'snapshot: 5000 snapshot_prefix: "lenet"'
    )

caffe.set_mode_cpu()
solver = caffe.SGDSolver("lenet_solver.prototxt")
print([(k, v.data.shape) for k, v in solver.net.blobs.items()])
print([(k, v[0].data.shape) for k, v in solver.net.params.items()])
solver.net.forward()
solver.test_nets[0].forward()
print("first labels", solver.net.blobs["label"].data[:8])

niter, test_interval = 40, 20
train_loss = np.zeros(niter)
test_acc = np.zeros(int(np.ceil(niter / test_interval)))
for it in range(niter):
    solver.step(1)
    train_loss[it] = solver.net.blobs["loss"].data
    if it == 0:
        solver.test_nets[0].share_with(solver.net)
    if it % test_interval == test_interval - 1:
        correct = 0
        for _ in range(2):
            solver.test_nets[0].forward()
            scores = solver.test_nets[0].blobs["score"].data
            correct += sum(scores.argmax(1) == solver.test_nets[0].blobs["label"].data)
        test_acc[it // test_interval] = correct / 200.0
print(f"loss {train_loss[0]:.3f} -> {train_loss[-5:].mean():.3f}")
print("test accuracy", test_acc)
