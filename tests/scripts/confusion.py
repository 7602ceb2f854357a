"""A confusion matrix over a test database, image by image and through forward_all."""

import sys
from collections import defaultdict

import caffe
import digits
import lmdb
import numpy as np

solver_text = """
base_lr: 0.02 lr_policy: "step" stepsize: 60 gamma: 0.1 momentum: 0.9 random_seed: 3
net_param {
  layer { name: "data" type: "MemoryData" top: "data" top: "label"
    memory_data_param { batch_size: 50 channels: 1 height: 18 width: 18 } }
  layer { name: "scale" type: "Power" bottom: "data" top: "scaled"
    power_param { scale: 0.00390625 } }
  layer { name: "conv" type: "Convolution" bottom: "scaled" top: "conv"
    convolution_param { num_output: 16 kernel_size: 4 stride: 2 weight_filler { type: "msra" } } }
  layer { name: "relu" type: "ReLU" bottom: "conv" top: "conv" }
  layer { name: "score" type: "InnerProduct" bottom: "conv" top: "score"
    inner_product_param { num_output: 10 weight_filler { type: "xavier" } } }
  layer { name: "loss" type: "SoftmaxWithLoss" bottom: "score" bottom: "label" }
}
"""
DEPLOY = """
input: "data" input_dim: 1 input_dim: 1 input_dim: 18 input_dim: 18
layer { name: "scale" type: "Power" bottom: "data" top: "scaled" power_param { scale: 0.00390625 } }
layer { name: "conv" type: "Convolution" bottom: "scaled" top: "conv"
  convolution_param { num_output: 16 kernel_size: 4 stride: 2 } }
layer { name: "relu" type: "ReLU" bottom: "conv" top: "conv" }
layer { name: "score" type: "InnerProduct" bottom: "conv" top: "score"
  inner_product_param { num_output: 10 } }
layer { name: "prob" type: "Softmax" bottom: "score" top: "prob" }
"""
with open("solver.prototxt", "w") as f:
    f.write(solver_text)
with open("deploy.prototxt", "w") as f:
    f.write(DEPLOY)

images, labels = digits.draw(600, size=18, seed=1)
solver = caffe.SGDSolver("solver.prototxt")
solver.net.set_input_arrays(images.astype(np.float32), labels.astype(np.float32))
solver.step(100)
solver.net.save("digits.caffemodel")

images, labels = digits.draw(150, size=18, seed=2)
env = lmdb.open("test_lmdb", map_size=1 << 26)
with env.begin(write=True) as txn:
    for i in range(150):
        datum = caffe.io.array_to_datum(images[i], int(labels[i]))
        txn.put(f"{i:08}".encode(), datum.SerializeToString())
env.close()

net = caffe.Net("deploy.prototxt", "digits.caffemodel", caffe.TEST)
count, correct = 0, 0
matrix = defaultdict(int)
labels_set = set()
lmdb_env = lmdb.open("test_lmdb", readonly=True)
lmdb_txn = lmdb_env.begin()
for _key, value in lmdb_txn.cursor():
    datum = caffe.proto.caffe_pb2.Datum()
    datum.ParseFromString(value)
    label = int(datum.label)
    image = caffe.io.datum_to_array(datum).astype(np.uint8)
    out = net.forward_all(data=np.asarray([image]))
    plabel = int(out["prob"][0].argmax(axis=0))
    count += 1
    correct += label == plabel
    matrix[(label, plabel)] += 1
    labels_set.update([label, plabel])
print(f"{count} images, {100.0 * correct / count:.0f}% right")
for label in sorted(labels_set):
    sys.stdout.write(f"{label} | ")
    print(" ".join(f"{matrix[(label, plabel)]:3d}" for plabel in sorted(labels_set)))

net.blobs["data"].reshape(64, 1, 18, 18)
prob = net.forward_all(data=images)["prob"]
again = np.zeros((10, 10), int)
np.add.at(again, (labels, prob.argmax(1)), 1)
print("in batches the same:", all(again[key] == number for key, number in matrix.items()))
