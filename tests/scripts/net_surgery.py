"""Turn a classifier's fully connected layers into convolutions that slide over a larger image."""

import caffe
import digits
import numpy as np

CLASSIFIER = """
name: "classifier"
layer { name: "data" type: "Input" top: "data" input_param { shape: { dim: 1 dim: 1 dim: 28 dim: 28 } } }
layer { name: "conv1" type: "Convolution" bottom: "data" top: "conv1"
  convolution_param { num_output: 8 kernel_size: 5 weight_filler { type: "xavier" } } }
layer { name: "pool1" type: "Pooling" bottom: "conv1" top: "pool1"
  pooling_param { pool: MAX kernel_size: 2 stride: 2 } }
"""  # noqa: E501
HEAD = """
layer { name: "fc6" type: "InnerProduct" bottom: "pool1" top: "fc6"
  inner_product_param { num_output: 32 weight_filler { type: "xavier" } } }
layer { name: "relu6" type: "ReLU" bottom: "fc6" top: "fc6" }
layer { name: "fc8" type: "InnerProduct" bottom: "fc6" top: "fc8"
  inner_product_param { num_output: 10 weight_filler { type: "xavier" }
    bias_filler { type: "constant" value: 0.1 } } }
layer { name: "prob" type: "Softmax" bottom: "fc8" top: "prob" }
"""
CONV_HEAD = """
layer { name: "fc6-conv" type: "Convolution" bottom: "pool1" top: "fc6-conv"
  convolution_param { num_output: 32 kernel_size: 12 } }
layer { name: "relu6" type: "ReLU" bottom: "fc6-conv" top: "fc6-conv" }
layer { name: "fc8-conv" type: "Convolution" bottom: "fc6-conv" top: "fc8-conv"
  convolution_param { num_output: 10 kernel_size: 1 } }
layer { name: "prob" type: "Softmax" bottom: "fc8-conv" top: "prob" }
"""
with open("classifier.prototxt", "w") as f:
    f.write(CLASSIFIER + HEAD)
with open("full_conv.prototxt", "w") as f:
    f.write((CLASSIFIER + CONV_HEAD).replace("dim: 28 dim: 28", "dim: 36 dim: 44"))

caffe.set_random_seed(3)
net = caffe.Net("classifier.prototxt", caffe.TEST)
net.save("classifier.caffemodel")
params = ["fc6", "fc8"]
fc_params = {pr: (net.params[pr][0].data, net.params[pr][1].data) for pr in params}
for fc in params:
    print(f"{fc} weights are {fc_params[fc][0].shape} and biases are {fc_params[fc][1].shape}")

net_full_conv = caffe.Net("full_conv.prototxt", "classifier.caffemodel", caffe.TEST)
params_full_conv = ["fc6-conv", "fc8-conv"]
conv_params = {
    pr: (net_full_conv.params[pr][0].data, net_full_conv.params[pr][1].data)
    for pr in params_full_conv
}
for conv in params_full_conv:
    shapes = conv_params[conv][0].shape, conv_params[conv][1].shape
    print("{} weights are {} and biases are {}".format(conv, *shapes))
for pr, pr_conv in zip(params, params_full_conv, strict=True):
    conv_params[pr_conv][0].flat = fc_params[pr][0].flat
    conv_params[pr_conv][1][...] = fc_params[pr][1]
net_full_conv.save("full_conv.caffemodel")

images, _ = digits.draw(1, size=44)
image = images[0, :, :36] / 255.0
out = net_full_conv.forward(data=image[np.newaxis])
print("map of predictions", out["prob"].shape)
worst = 0.0
for row in range(out["prob"].shape[2]):
    for col in range(out["prob"].shape[3]):
        window = image[:, 2 * row : 2 * row + 28, 2 * col : 2 * col + 28]
        single = net.forward(data=window[np.newaxis])["prob"][0]
        worst = max(worst, abs(out["prob"][0, :, row, col] - single).max())
print("every place agrees with the classifier:", worst < 1e-5)
