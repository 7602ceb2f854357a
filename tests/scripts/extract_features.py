"""Extract a layer's features for many images into HDF5 and LMDB."""

import caffe
import digits
import h5py
import lmdb
import numpy as np

with open("deploy.prototxt", "w") as f:
    f.write("""
layer { name: "data" type: "Input" top: "data"
  input_param { shape { dim: 16 dim: 1 dim: 28 dim: 28 } } }
layer { name: "conv1" type: "Convolution" bottom: "data" top: "conv1"
  convolution_param { num_output: 4 kernel_size: 5 stride: 2 weight_filler { type: "xavier" } } }
layer { name: "relu1" type: "ReLU" bottom: "conv1" top: "conv1" }
layer { name: "pool1" type: "Pooling" bottom: "conv1" top: "pool1"
  pooling_param { pool: AVE kernel_size: 3 stride: 3 } }
layer { name: "fc" type: "InnerProduct" bottom: "pool1" top: "fc"
  inner_product_param { num_output: 10 weight_filler { type: "xavier" } } }
""")
caffe.set_random_seed(5)
net = caffe.Net("deploy.prototxt", caffe.TEST)
images, labels = digits.draw(50)
outs = net.forward_all(data=images / 255.0, blobs=["pool1"])
features = outs["pool1"]
print("features", features.shape, features.dtype)

with h5py.File("features.h5", "w") as f:
    f.create_dataset("features", data=features.reshape(len(features), -1))
    f.create_dataset("label", data=labels.astype(np.float32))
env = lmdb.open("features_lmdb", map_size=1 << 26)
with env.begin(write=True) as txn:
    for i, (feature, label) in enumerate(zip(features, labels, strict=True)):
        datum = caffe.io.array_to_datum(feature.astype(float), int(label))
        txn.put(f"{i:010d}".encode("ascii"), datum.SerializeToString())
env.close()

# Read both back, one image at a time against the whole batch.
stored = h5py.File("features.h5", "r")["features"][...]
env = lmdb.open("features_lmdb", readonly=True)
with env.begin() as txn:
    for i, (_, value) in enumerate(txn.cursor()):
        datum = caffe.proto.caffe_pb2.Datum()
        datum.ParseFromString(value)
        feature = caffe.io.datum_to_array(datum)
        assert datum.label == labels[i]
        assert np.array_equal(feature.ravel(), stored[i])
net.blobs["data"].reshape(1, 1, 28, 28)
for i in range(0, 50, 7):
    net.blobs["data"].data[...] = images[i] / 255.0
    net.forward(end="pool1")
    assert np.allclose(net.blobs["pool1"].data[0], features[i], atol=1e-5)
print("50 features in HDF5 and LMDB, equal one by one")
