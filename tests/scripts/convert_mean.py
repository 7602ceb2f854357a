"""The mean of an image database: binaryproto to npy and back, and in a net's transformation."""

import caffe
import digits
import lmdb
import numpy as np

images, labels = digits.draw(60, seed=4)
env = lmdb.open("images_lmdb", map_size=1 << 26)
with env.begin(write=True) as txn:
    for i in range(len(images)):
        datum = caffe.proto.caffe_pb2.Datum()
        datum.channels, datum.height, datum.width = images.shape[1:]
        datum.data = images[i].tobytes()
        datum.label = int(labels[i])
        txn.put(f"{i:08}".encode("ascii"), datum.SerializeToString())
env.close()

# What compute_image_mean does.
total = np.zeros(images.shape[1:])
env = lmdb.open("images_lmdb", readonly=True)
with env.begin() as txn:
    for _key, value in txn.cursor():
        datum.ParseFromString(value)
        flat = np.frombuffer(datum.data, dtype=np.uint8)
        total += flat.reshape(datum.channels, datum.height, datum.width)
env.close()
blob = caffe.io.array_to_blobproto((total / 60)[np.newaxis])
with open("mean.binaryproto", "wb") as f:
    f.write(blob.SerializeToString())

# What everybody's convert_protomean.py does.
blob = caffe.proto.caffe_pb2.BlobProto()
data = open("mean.binaryproto", "rb").read()
blob.ParseFromString(data)
arr = np.array(caffe.io.blobproto_to_array(blob))
out = arr[0]
np.save("mean.npy", out)
print("mean", out.shape, np.allclose(out, images.mean(0)))

with open("data.prototxt", "w") as f:
    f.write("""
layer { name: "data" type: "Data" top: "data" top: "label"
  transform_param { mean_file: "mean.binaryproto" scale: 0.00390625 }
  data_param { source: "images_lmdb" batch_size: 20 backend: LMDB } }
""")
net = caffe.Net("data.prototxt", caffe.TEST)
want = (images - np.load("mean.npy")) * 0.00390625
for batch in range(3):
    net.forward()
    part = slice(20 * batch, 20 * batch + 20)
    assert np.allclose(net.blobs["data"].data, want[part], atol=1e-5)
    assert np.array_equal(net.blobs["label"].data, labels[part])
print("three batches less the mean, in order")
