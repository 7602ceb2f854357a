"""Somebody who runs a model that others trained, and makes it smaller."""

import numpy as np

from sparknet import Net, read_model, read_net, write_model
from sparknet.loaders import ImageFiles

net = Net("deploy.prototxt", "weights.caffemodel", resize=256, crop=224, mean=(104, 117, 123))
images = ImageFiles("photographs", size=(256, 256), invalid="drop")
net.quantize(images, exclude=["fc8"], method="max", most_records=100, most_loss=0.2)
net.save("small.caffemodel")
small = Net("small.caffemodel", precision="int8", trusted=False, unknown="skip")
batch = {"data": np.zeros((4, 3, 224, 224), np.float32)}
answers = small.forward(batch, ["prob"])
best: list[int] = [int(row.argmax()) for row in answers["prob"]]
small.set_validation_data("test_lmdb")
scores: dict[str, float] = small.test(metrics=["confusion"])
weights = small.get_weights()
print(weights.flat.shape, read_net("deploy.prototxt").name)
write_model("copy.caffemodel", read_model("weights.caffemodel"))
