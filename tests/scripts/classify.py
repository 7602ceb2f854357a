"""Classify images: Transformer, a net's own forward pass, and Classifier with oversampling."""

import caffe
import numpy as np
from PIL import Image

with open("deploy.prototxt", "w") as f:
    f.write("""
name: "colours"
input: "data"
input_dim: 10
input_dim: 3
input_dim: 24
input_dim: 24
layers { bottom: "data" top: "pool" name: "pool" type: POOLING
  pooling_param { pool: AVE kernel_size: 24 } }
layers { bottom: "pool" top: "score" name: "score" type: INNER_PRODUCT
  inner_product_param { num_output: 3 } }
layers { bottom: "score" top: "prob" name: "prob" type: SOFTMAX }
""")
labels = np.array(["blue", "green", "red"])

# The weights a training would have found: the images are BGR, from 0 to 255, less their mean.
net = caffe.Net("deploy.prototxt", caffe.TEST)
net.params["score"][0].data[...] = 0.1 * np.eye(3)
net.params["score"][1].data[...] = 0
net.save("colours.caffemodel")

rng = np.random.RandomState(0)
for name, colour in [("sunset", (220, 90, 60)), ("meadow", (60, 190, 70)), ("sea", (20, 80, 210))]:
    noise = rng.randint(-15, 16, size=(40, 60, 3))
    Image.fromarray((np.array(colour) + noise).astype(np.uint8)).save(name + ".png")
np.save("mean.npy", np.full((3, 32, 32), 110.0))

caffe.set_mode_cpu()
net = caffe.Net("deploy.prototxt", "colours.caffemodel", caffe.TEST)
mu = np.load("mean.npy").mean(1).mean(1)
print("mean-subtracted values:", list(zip("BGR", mu, strict=True)))
transformer = caffe.io.Transformer({"data": net.blobs["data"].data.shape})
transformer.set_transpose("data", (2, 0, 1))
transformer.set_mean("data", mu)
transformer.set_raw_scale("data", 255)
transformer.set_channel_swap("data", (2, 1, 0))
net.blobs["data"].reshape(1, 3, 24, 24)
for name in ["sunset", "meadow", "sea"]:
    image = caffe.io.load_image(name + ".png")
    net.blobs["data"].data[...] = transformer.preprocess("data", image)
    output = net.forward()
    prob = output["prob"][0]
    print(name, "is", labels[prob.argmax()], f"{prob.max():.2f}")

classifier = caffe.Classifier(
    "deploy.prototxt",
    "colours.caffemodel",
    mean=mu,
    channel_swap=(2, 1, 0),
    raw_scale=255,
    image_dims=(32, 32),
)
inputs = [caffe.io.load_image(name + ".png") for name in ["sunset", "meadow", "sea"]]
predictions = classifier.predict(inputs)
print("oversampled", predictions.shape, labels[predictions.argmax(1)])
predictions = classifier.predict(inputs, oversample=False)
print("centre only", predictions.shape, labels[predictions.argmax(1)])
