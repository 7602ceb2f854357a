"""Read a caffemodel with and without a net, and tile its filters into one picture."""

import caffe
import numpy as np
from PIL import Image

with open("net.prototxt", "w") as f:
    f.write("""
name: "eyes"
layer { name: "data" type: "Input" top: "data"
  input_param { shape { dim: 1 dim: 3 dim: 32 dim: 32 } } }
layer { name: "conv1" type: "Convolution" bottom: "data" top: "conv1"
  convolution_param { num_output: 10 kernel_size: 7 weight_filler { type: "gaussian" std: 1 } } }
layer { name: "relu1" type: "ReLU" bottom: "conv1" top: "conv1" }
layer { name: "conv2" type: "Convolution" bottom: "conv1" top: "conv2"
  convolution_param { num_output: 4 kernel_size: 3 group: 2 weight_filler { type: "msra" } } }
""")
caffe.Net("net.prototxt", caffe.TRAIN).save("eyes.caffemodel")


def vis_square(data):
    """Tile (n, height, width) or (n, height, width, 3) into a square grid of pictures."""
    data = (data - data.min()) / (data.max() - data.min())
    n = int(np.ceil(np.sqrt(data.shape[0])))
    padding = ((0, n**2 - data.shape[0]), (0, 1), (0, 1)) + ((0, 0),) * (data.ndim - 3)
    data = np.pad(data, padding, mode="constant", constant_values=1)
    data = data.reshape((n, n) + data.shape[1:])
    data = data.transpose((0, 2, 1, 3) + tuple(range(4, data.ndim)))
    return data.reshape((n * data.shape[1], n * data.shape[3]) + data.shape[4:])


net = caffe.Net("net.prototxt", caffe.TEST, weights="eyes.caffemodel")
for layer_name, blob in net.blobs.items():
    print(layer_name + "\t" + str(blob.data.shape))
for layer_name, param in net.params.items():
    print(layer_name + "\t" + str(param[0].data.shape), str(param[1].data.shape))
filters = net.params["conv1"][0].data
picture = vis_square(filters.transpose(0, 2, 3, 1))
print("picture", picture.shape)
Image.fromarray((255 * picture).astype(np.uint8)).save("filters.png")

net.forward(data=np.random.RandomState(0).rand(1, 3, 32, 32))
feat = net.blobs["conv1"].data[0, :9]
print("features", vis_square(feat).shape, "histogram", np.histogram(feat, bins=100)[0].sum())

# The same model as a message: what is in a file whose prototxt is lost?
model = caffe.proto.caffe_pb2.NetParameter()
with open("eyes.caffemodel", "rb") as f:
    model.ParseFromString(f.read())
for layer in model.layer:
    if len(layer.blobs):
        arrays = [caffe.io.blobproto_to_array(blob) for blob in layer.blobs]
        print(layer.name, layer.type, [a.shape for a in arrays])
same = np.array_equal(caffe.io.blobproto_to_array(model.layer[1].blobs[0]), filters)
print("equal to the net's:", same)
