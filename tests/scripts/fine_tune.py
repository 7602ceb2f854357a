"""Fine-tune: the trained layers by their names, a new last layer, and the first one frozen."""

import caffe
import digits
import numpy as np
from caffe import layers as L


def net(classes, last, frozen=False):
    learned = [dict(lr_mult=0)] * 2 if frozen else [dict(lr_mult=1), dict(lr_mult=2)]
    xavier = dict(type="xavier")
    n = caffe.NetSpec()
    n.data = L.Input(shape=dict(dim=[40, 1, 18, 18]))
    n.label = L.Input(shape=dict(dim=[40]))
    n.conv1 = L.Convolution(
        n.data, kernel_size=5, stride=2, num_output=16, param=learned, weight_filler=xavier
    )
    n.relu1 = L.ReLU(n.conv1, in_place=True)
    n.fc = L.InnerProduct(n.relu1, num_output=40, weight_filler=xavier)
    n.relu2 = L.ReLU(n.fc, in_place=True)
    n[last] = L.InnerProduct(n.relu2, num_output=classes, weight_filler=xavier)
    n.loss = L.SoftmaxWithLoss(n[last], n.label)
    n.acc = L.Accuracy(n[last], n.label)
    return str(n.to_proto())


def make_solver(name, net_text, lr):
    with open(name + ".prototxt", "w") as f:
        f.write(net_text)
    with open(name + "_solver.prototxt", "w") as f:
        f.write(
            f'net: "{name}.prototxt" base_lr: {lr} lr_policy: "fixed" momentum: 0.9 '
            f"random_seed: 4 snapshot_after_train: false"
        )
    return caffe.get_solver(name + "_solver.prototxt")


def train(solver, images, labels, niter):
    loss, acc = np.zeros(niter), np.zeros(niter)
    for it in range(niter):
        begin = it * 40 % len(images)
        solver.net.blobs["data"].data[...] = images[begin : begin + 40] / 255.0
        solver.net.blobs["label"].data[...] = labels[begin : begin + 40]
        solver.step(1)
        loss[it], acc[it] = (solver.net.blobs[name].data.copy() for name in ("loss", "acc"))
    return loss, acc


images, labels = digits.draw(400, size=18)
base = make_solver("base", net(10, "fc8"), 0.02)
loss, acc = train(base, images, labels, 60)
base.net.save("base.caffemodel")
print(f"ten digits: accuracy {acc[-10:].mean():.2f}")

# Another task: odd or even.  fc8 has another name, so it starts anew.
tuned = make_solver("tuned", net(2, "fc8_parity", frozen=True), 0.02)
tuned.net.copy_from("base.caffemodel")
before = tuned.net.params["conv1"][0].data.copy()
assert np.array_equal(before, base.net.params["conv1"][0].data)
scratch = make_solver("scratch", net(2, "fc8_parity"), 0.02)
tuned_loss, tuned_acc = train(tuned, images, labels % 2, 30)
scratch_loss, scratch_acc = train(scratch, images, labels % 2, 30)
print("frozen layer unchanged:", np.array_equal(before, tuned.net.params["conv1"][0].data))
print(f"odd or even: accuracy {tuned_acc[-10:].mean():.2f}")
print("better than from scratch:", tuned_loss[-10:].mean() < scratch_loss[-10:].mean())

# The renamed layer refuses weights of another shape under the old name.
try:
    caffe.Net("tuned.prototxt", caffe.TEST).copy_from("base.caffemodel")
    with open("clash.prototxt", "w") as f:
        f.write(net(2, "fc8"))
    caffe.Net("clash.prototxt", "base.caffemodel", caffe.TEST)
except Exception as error:
    print("refused:", error)
