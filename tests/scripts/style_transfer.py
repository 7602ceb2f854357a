"""Style transfer: the content of one image, the textures of another, as statistics of layers."""

import caffe
import numpy as np
from caffe.proto import caffe_pb2
from google.protobuf import text_format

DEPLOY = """
input: "data"
input_shape { dim: 1 dim: 3 dim: 32 dim: 32 }
layer { name: "conv1" type: "Convolution" bottom: "data" top: "conv1"
  convolution_param { num_output: 16 kernel_size: 3 pad: 1 weight_filler { type: "msra" } } }
layer { name: "relu1" type: "ReLU" bottom: "conv1" top: "conv1" }
layer { name: "pool1" type: "Pooling" bottom: "conv1" top: "pool1"
  pooling_param { pool: AVE kernel_size: 2 stride: 2 } }
layer { name: "conv2" type: "Convolution" bottom: "pool1" top: "conv2"
  convolution_param { num_output: 24 kernel_size: 3 pad: 1 weight_filler { type: "msra" } } }
layer { name: "relu2" type: "ReLU" bottom: "conv2" top: "conv2" }
layer { name: "pool2" type: "Pooling" bottom: "conv2" top: "pool2"
  pooling_param { pool: AVE kernel_size: 2 stride: 2 } }
layer { name: "conv3" type: "Convolution" bottom: "pool2" top: "conv3"
  convolution_param { num_output: 32 kernel_size: 3 pad: 1 weight_filler { type: "msra" } } }
layer { name: "relu3" type: "ReLU" bottom: "conv3" top: "conv3" }
layer { name: "fc4" type: "InnerProduct" bottom: "conv3" top: "fc4"
  inner_product_param { num_output: 10 weight_filler { type: "xavier" } } }
layer { name: "prob" type: "Softmax" bottom: "fc4" top: "prob" }
"""

STYLE = {"conv1": 0.4, "conv2": 0.3, "conv3": 0.3}
CONTENT = {"conv2": 1.0}
LAYERS = ["conv1", "conv2", "conv3"]
END = "relu3"
RATIO = 1e3


def load(image):
    net.blobs["data"].reshape(1, *image.shape)
    net.blobs["data"].data[0] = image


def gram(layer):
    F = net.blobs[layer].data[0].copy()  # noqa: N806
    F.shape = (F.shape[0], -1)
    return F, F.dot(F.T) / F.size


def represent(image):
    load(image)
    net.forward(end=END)
    return {layer: gram(layer) for layer in LAYERS}


def objective(x, shape, content, style):
    """The loss and its gradient with respect to the image; backward layer by layer."""
    load(x.reshape(shape))
    net.forward(end=END)
    loss = 0.0
    net.blobs[LAYERS[-1]].diff[:] = 0
    for i, layer in reversed(list(enumerate(LAYERS))):
        grad = net.blobs[layer].diff[0]
        F, G = gram(layer)  # noqa: N806
        d = G - style[layer][1]
        loss += RATIO * STYLE[layer] * float((d**2).sum()) / 4
        grad += (RATIO * STYLE[layer] * d.dot(F) / F.size * (F > 0)).reshape(grad.shape)
        if layer in CONTENT:
            d = F - content[layer][0]
            loss += CONTENT[layer] * float((d**2).mean()) / 2
            grad += (CONTENT[layer] * d / d.size * (F > 0)).reshape(grad.shape)
        net.backward(start=layer, end=LAYERS[i - 1] if i else None)
    return loss, net.blobs["data"].diff[0].ravel().astype(np.float64)


def lbfgs(fun, x, steps, memory=8):
    """Two loops over the last steps, and halved steps until the loss falls."""
    f, g = fun(x)
    losses, pairs = [f], []
    for _ in range(steps):
        q, alphas = g.copy(), []
        for s, y in reversed(pairs):
            alphas.append(s.dot(q) / y.dot(s))
            q -= alphas[-1] * y
        q *= pairs[-1][0].dot(pairs[-1][1]) / pairs[-1][1].dot(pairs[-1][1]) if pairs else 1
        for (s, y), a in zip(pairs, reversed(alphas)):  # noqa: B905
            q += s * (a - y.dot(q) / y.dot(s))
        t = 1.0 if pairs else 10 / np.abs(q).max()
        for _ in range(20):
            new, (f_new, g_new) = x - t * q, fun(x - t * q)
            if f_new < f:
                break
            t /= 2
        s, y = new - x, g_new - g
        if s.dot(y) > 1e-12:
            pairs = (pairs + [(s, y)])[-memory:]
        x, f, g = new, f_new, g_new
        losses.append(f)
    return x, losses


np.random.seed(0)
caffe.set_random_seed(2)
param = caffe_pb2.NetParameter()
text_format.Merge(DEPLOY, param)
param.force_backward = True
with open("style.prototxt", "w") as file:
    file.write(str(param))
net = caffe.Net("style.prototxt", caffe.TEST)

rows, columns = np.mgrid[:40, :28]
content_image = np.zeros((3, 40, 28), np.float32)
content_image[:, 10:30, 8:20] = 1
style_image = np.stack([np.sin(0.9 * c) for c in np.mgrid[:36, :36][1:].repeat(3, 0)]) + 0.5
content, style = represent(content_image), represent(np.float32(style_image))

fun = lambda x: objective(x, content_image.shape, content, style)  # noqa: E731
x = np.random.normal(0.5, 0.1, content_image.size)
slope = fun(x)[1]
steep = np.sqrt(slope.dot(slope))
ahead, back = (fun(x + e * slope / steep)[0] for e in (1e-2, -1e-2))
print("gradient agrees with differences:", abs((ahead - back) / 2e-2 - steep) < 0.01 * steep)

x, losses = lbfgs(fun, x, 40)
print("shapes", net.blobs["conv3"].data.shape, net.blobs["fc4"].data.shape)
print("falls to a tenth:", losses[-1] < losses[0] / 10)
load(np.zeros((3, 32, 32)))
print("a class again:", net.forward()["prob"].shape)
