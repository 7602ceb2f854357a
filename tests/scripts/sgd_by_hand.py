"""Stochastic gradient descent by hand, over net.params and their diffs, against a solver."""

import caffe
import digits
import numpy as np

with open("net.prototxt", "w") as f:
    f.write("""
layer { name: "in" type: "Input" top: "data" top: "label"
  input_param { shape { dim: 25 dim: 1 dim: 9 dim: 9 } shape { dim: 25 } } }
layer { name: "ip1" type: "InnerProduct" bottom: "data" top: "ip1"
  param { lr_mult: 1 decay_mult: 1 } param { lr_mult: 2 decay_mult: 0 }
  inner_product_param { num_output: 30 weight_filler { type: "xavier" } } }
layer { name: "tanh" type: "TanH" bottom: "ip1" top: "ip1" }
layer { name: "ip2" type: "InnerProduct" bottom: "ip1" top: "ip2"
  param { lr_mult: 1 decay_mult: 1 } param { lr_mult: 2 decay_mult: 0 }
  inner_product_param { num_output: 10 weight_filler { type: "xavier" } } }
layer { name: "loss" type: "SoftmaxWithLoss" bottom: "ip2" bottom: "label" top: "loss" }
""")
with open("solver.prototxt", "w") as f:
    f.write(
        'net: "net.prototxt" base_lr: 0.1 lr_policy: "fixed" momentum: 0.9 weight_decay: 0.001 '
        "random_seed: 8"
    )
images, labels = digits.draw(100, size=9)
caffe.set_mode_cpu()
solver = caffe.SGDSolver("solver.prototxt")
solver.net.save("start.caffemodel")
net = caffe.Net("net.prototxt", "start.caffemodel", caffe.TRAIN)

base_lr, momentum, weight_decay = 0.1, 0.9, 0.001
lr_w_mult, lr_b_mult = 1, 2
momentum_hist = {layer: [np.zeros_like(b.data) for b in net.params[layer]] for layer in net.params}
for it in range(80):
    batch = slice(25 * (it % 4), 25 * (it % 4) + 25)
    net.blobs["data"].data[...] = images[batch] / 255.0
    net.blobs["label"].data[...] = labels[batch]
    net.clear_param_diffs()
    net.forward()
    net.backward()
    for layer in net.params:
        w, b = net.params[layer]
        hist = momentum_hist[layer]
        hist[0] = momentum * hist[0] + base_lr * lr_w_mult * (w.diff + weight_decay * w.data)
        hist[1] = momentum * hist[1] + base_lr * lr_b_mult * b.diff
        w.data[...] -= hist[0]
        b.data[...] -= hist[1]
    solver.net.blobs["data"].data[...] = images[batch] / 255.0
    solver.net.blobs["label"].data[...] = labels[batch]
    solver.step(1)
    if it % 20 == 0:
        print(it, f"{float(net.blobs['loss'].data):.2f}")
print(f"at last {float(net.blobs['loss'].data):.2f}")
worst = max(
    np.abs(net.params[layer][i].data - solver.net.params[layer][i].data).max()
    for layer in net.params
    for i in range(2)
)
print("the solver has the same weights:", worst < 1e-4)
