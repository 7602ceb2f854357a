"""Gradient ascent on the image: let a layer see more of what it sees, at several scales."""

import caffe
import numpy as np
from caffe.proto import caffe_pb2
from google.protobuf import text_format

with open("deploy.prototxt", "w") as f:
    f.write("""
input: "data"
input_shape { dim: 1 dim: 3 dim: 48 dim: 48 }
layer { name: "conv1" type: "Convolution" bottom: "data" top: "conv1"
  convolution_param { num_output: 12 kernel_size: 5 pad: 2
    weight_filler { type: "gaussian" std: 0.05 } } }
layer { name: "relu1" type: "ReLU" bottom: "conv1" top: "conv1" }
layer { name: "norm1" type: "LRN" bottom: "conv1" top: "norm1" lrn_param { local_size: 5 } }
layer { name: "conv2" type: "Convolution" bottom: "norm1" top: "conv2"
  convolution_param { num_output: 16 kernel_size: 3 pad: 1
    weight_filler { type: "gaussian" std: 0.05 } } }
layer { name: "pool2" type: "Pooling" bottom: "conv2" top: "pool2"
  pooling_param { pool: AVE kernel_size: 12 stride: 12 } }
layer { name: "classifier" type: "InnerProduct" bottom: "pool2" top: "classifier"
  inner_product_param { num_output: 10 weight_filler { type: "xavier" } } }
layer { name: "prob" type: "Softmax" bottom: "classifier" top: "prob" }
""")

# The gradient with respect to the input is computed only if the net is forced to.
model = caffe_pb2.NetParameter()
text_format.Merge(open("deploy.prototxt").read(), model)
model.force_backward = True
open("tmp.prototxt", "w").write(str(model))
caffe.set_random_seed(0)
caffe.Net("deploy.prototxt", caffe.TEST).save("weights.caffemodel")
net = caffe.Classifier(
    "tmp.prototxt",
    "weights.caffemodel",
    mean=np.float32([104.0, 116.0, 122.0]),
    channel_swap=(2, 1, 0),
)


def preprocess(net, img):
    return np.float32(np.rollaxis(img, 2)[::-1]) - net.transformer.mean["data"]


def deprocess(net, img):
    return np.dstack((img + net.transformer.mean["data"])[::-1])


def objective_L2(dst):  # noqa: N802
    dst.diff[:] = dst.data


def make_step(net, step_size=1.5, end="conv2", jitter=4, clip=True, objective=objective_L2):
    src = net.blobs["data"]
    dst = net.blobs[end]
    ox, oy = np.random.randint(-jitter, jitter + 1, 2)
    src.data[0] = np.roll(np.roll(src.data[0], ox, -1), oy, -2)
    net.forward(end=end)
    objective(dst)
    net.backward(start=end)
    g = src.diff[0]
    src.data[:] += step_size / np.abs(g).mean() * g
    src.data[0] = np.roll(np.roll(src.data[0], -ox, -1), -oy, -2)
    if clip:
        bias = net.transformer.mean["data"]
        src.data[:] = np.clip(src.data, -bias, 255 - bias)
    return np.square(dst.data).mean()


def enlarge(img, h, w):
    rows = np.arange(h) * img.shape[1] // h
    return img[:, rows][:, :, np.arange(w) * img.shape[2] // w]


def deepdream(net, base_img, iter_n=8, octave_n=3, octave_scale=1.4, end="conv2"):
    octaves = [preprocess(net, base_img)]
    for _ in range(octave_n - 1):
        h, w = octaves[-1].shape[-2:]
        octaves.append(enlarge(octaves[-1], int(h / octave_scale), int(w / octave_scale)))
    src = net.blobs["data"]
    detail = np.zeros_like(octaves[-1])
    for octave, octave_base in enumerate(octaves[::-1]):
        h, w = octave_base.shape[-2:]
        if octave > 0:
            detail = enlarge(detail, h, w)
        src.reshape(1, 3, h, w)
        src.data[0] = octave_base + detail
        energies = [make_step(net, end=end) for _ in range(iter_n)]
        print(octave, (h, w), "grows" if energies[-1] > 1.5 * energies[0] else energies)
        detail = src.data[0] - octave_base
    return deprocess(net, src.data[0])


np.random.seed(1)
img = np.float32(np.random.randint(100, 150, size=(48, 40, 3)))
dream = deepdream(net, img)
print("image", dream.shape, f"{dream.min():.0f} to {dream.max():.0f}")
np.save("dream.npy", np.uint8(dream))
