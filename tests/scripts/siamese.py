"""A siamese net: both sides share their parameters by name."""

import caffe
import digits
import numpy as np

SIDE = """
layer { name: "ip1{p}" type: "InnerProduct" bottom: "{data}" top: "ip1{p}"
  param { name: "ip1_w" lr_mult: 1 } param { name: "ip1_b" lr_mult: 2 }
  inner_product_param { num_output: 60 weight_filler { type: "xavier" } } }
layer { name: "relu1{p}" type: "ReLU" bottom: "ip1{p}" top: "ip1{p}" }
layer { name: "feat{p}" type: "InnerProduct" bottom: "ip1{p}" top: "feat{p}"
  param { name: "feat_w" lr_mult: 1 } param { name: "feat_b" lr_mult: 2 }
  inner_product_param { num_output: 2 weight_filler { type: "xavier" } } }
"""
PAIRS = """
name: "siamese"
layer { name: "in" type: "Input" top: "pair_data" top: "sim"
  input_param { shape { dim: 64 dim: 2 dim: 9 dim: 9 } shape { dim: 64 } } }
layer { name: "slice_pair" type: "Slice" bottom: "pair_data" top: "data" top: "data_p"
  slice_param { slice_dim: 1 slice_point: 1 } }
"""
LOSS = """
layer { name: "loss" type: "ContrastiveLoss" bottom: "feat" bottom: "feat_p" bottom: "sim"
  top: "loss" contrastive_loss_param { margin: 1 } }
"""


def side(p, data):
    return SIDE.replace("{p}", p).replace("{data}", data)


with open("siamese.prototxt", "w") as f:
    f.write(PAIRS + side("", "data") + side("_p", "data_p") + LOSS)
with open("solver.prototxt", "w") as f:
    f.write(
        'net: "siamese.prototxt" base_lr: 0.02 momentum: 0.9 weight_decay: 0.0 '
        'lr_policy: "inv" gamma: 0.0001 power: 0.75 random_seed: 9'
    )
with open("deploy.prototxt", "w") as f:
    f.write('input: "data" input_shape { dim: 64 dim: 1 dim: 9 dim: 9 }' + side("", "data"))

images, labels = digits.draw(600, size=9)
images, labels = images[labels < 3] / 255.0, labels[labels < 3]
rng = np.random.RandomState(0)
solver = caffe.SGDSolver("solver.prototxt")
losses = []
for _ in range(300):
    one, other = rng.randint(len(images), size=(2, 64))
    solver.net.blobs["pair_data"].data[:, 0] = images[one, 0]
    solver.net.blobs["pair_data"].data[:, 1] = images[other, 0]
    solver.net.blobs["sim"].data[...] = labels[one] == labels[other]
    solver.step(1)
    losses.append(float(solver.net.blobs["loss"].data))

params = solver.net.params
print(list(params))
shared = all(
    np.array_equal(params["ip1"][i].data, params["ip1_p"][i].data)
    and np.array_equal(params["feat"][i].data, params["feat_p"][i].data)
    for i in range(2)
)
print("both sides are the same:", shared)
print("falls to a fifth:", np.mean(losses[-20:]) < 0.2 * np.mean(losses[:5]))
solver.net.save("siamese.caffemodel")

net = caffe.Net("deploy.prototxt", "siamese.caffemodel", caffe.TEST)
feat = net.forward_all(data=images)["feat"]
centres = np.array([feat[labels == digit].mean(0) for digit in range(3)])
nearest = np.square(feat[:, None] - centres).sum(2).argmin(1)
print(f"nearest centre {(nearest == labels).mean():.2f}")
