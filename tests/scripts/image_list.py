"""Images of several sizes from a list of files, cropped and mirrored, as for fine-tuning."""

import os

import caffe
import numpy as np
from caffe import layers as L
from PIL import Image

rng = np.random.RandomState(0)
os.mkdir("images")
with open("list.txt", "w") as f:
    for i in range(30):
        label = i % 3
        h, w = rng.randint(40, 60, size=2)
        pixels = rng.randint(0, 80, size=(h, w, 3))
        pixels[:, :, label] += 120  # red, green or blue
        name = f"{i:02d}.png"
        Image.fromarray(pixels.astype(np.uint8)).save(os.path.join("images", name))
        f.write(f"{name} {label}\n")


def net(train):
    n = caffe.NetSpec()
    n.data, n.label = L.ImageData(
        transform_param=dict(mirror=train, crop_size=27, mean_value=[100, 110, 120]),
        source="list.txt", root_folder="images/", batch_size=10,
        new_height=32, new_width=32, shuffle=train, ntop=2,
    )  # fmt: skip
    frozen = [dict(lr_mult=0, decay_mult=0)] * 2
    n.pool = L.Pooling(n.data, pool=caffe.params.Pooling.AVE, global_pooling=True)
    n.scaled = L.Scale(n.pool, filler=dict(value=0.01), bias_term=True, param=frozen)
    n.score = L.InnerProduct(n.scaled, num_output=3, weight_filler=dict(type="xavier"))
    n.probs = L.Softmax(n.score)
    if train:
        n.loss = L.SoftmaxWithLoss(n.score, n.label)
    n.acc = L.Accuracy(n.score, n.label)
    return str(n.to_proto())


for name, train in (("train", True), ("test", False)):
    with open(name + ".prototxt", "w") as f:
        f.write(net(train))
with open("solver.prototxt", "w") as f:
    f.write('train_net: "train.prototxt" base_lr: 1.0 lr_policy: "fixed" random_seed: 1')

untrained = caffe.Net("test.prototxt", caffe.TEST)
untrained.forward()
image = untrained.blobs["data"].data[0]
print("BGR less the mean", image.shape, image.mean((1, 2)).round(-1) + 0.0)
print("labels", untrained.blobs["label"].data.astype(int))

solver = caffe.get_solver("solver.prototxt")
solver.step(60)
solver.net.save("colours.caffemodel")
test = caffe.Net("test.prototxt", "colours.caffemodel", caffe.TEST)
accuracy = sum(test.forward()["acc"] for _ in range(3)) / 3
print(f"accuracy {float(accuracy):.2f}")
