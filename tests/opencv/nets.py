"""Small nets of the kinds that cv2.dnn runs, with their weights and inputs."""

from pathlib import Path

import numpy as np

from sparknet import caffe
from sparknet.proto import parse_net

DATA = 'input: "data" input_shape { dim: 1 dim: 3 dim: 9 dim: 8 }'
CONV = """
layer { name: "conv" type: "Convolution" bottom: "data" top: "conv"
  convolution_param { num_output: 6 kernel_size: 3 pad: 1 } }
"""

CHAIN = f"""name: "chain" {DATA} {CONV}
layer {{ name: "bn" type: "BatchNorm" bottom: "conv" top: "conv" }}
layer {{ name: "scale" type: "Scale" bottom: "conv" top: "conv"
   scale_param {{ bias_term: true }} }}
layer {{ name: "relu" type: "ReLU" bottom: "conv" top: "conv" }}
layer {{ name: "pool" type: "Pooling" bottom: "conv" top: "pool"
  pooling_param {{ pool: MAX kernel_size: 3 stride: 2 }} }}
layer {{ name: "fc" type: "Convolution" bottom: "pool" top: "fc"
  convolution_param {{ num_output: 5 kernel_size: 1 }} }}
layer {{ name: "drop" type: "Dropout" bottom: "fc" top: "fc" }}
layer {{ name: "prob" type: "Softmax" bottom: "fc" top: "prob" }}
"""

BRANCHES = f"""{DATA} {CONV}
layer {{ name: "slice" type: "Slice" bottom: "conv" top: "a" top: "b"
  slice_param {{ axis: 1 slice_point: 2 }} }}
layer {{ name: "relu" type: "ReLU" bottom: "a" top: "a" relu_param {{ negative_slope: 0.1 }} }}
layer {{ name: "norm" type: "LRN" bottom: "b" top: "norm"
  lrn_param {{ local_size: 3 alpha: 2 }} }}
layer {{ name: "cat" type: "Concat" bottom: "norm" bottom: "a" top: "cat" }}
layer {{ name: "sum" type: "Eltwise" bottom: "cat" bottom: "conv" top: "sum"
  eltwise_param {{ coeff: 2 coeff: -1 }} }}
layer {{ name: "flat" type: "Flatten" bottom: "sum" top: "flat" }}
layer {{ name: "end" type: "Sigmoid" bottom: "norm" top: "end" }}
"""

STATISTICS = f"""{DATA} {CONV}
layer {{ name: "bn" type: "BatchNorm" bottom: "conv" top: "bn"
  batch_norm_param {{ use_global_stats: false }} }}
layer {{ name: "bn" type: "ReLU" bottom: "bn" top: "bn" }}
"""

TWO_INPUTS = """
input: "a" input: "b"
layer { name: "crop" type: "Crop" bottom: "a" bottom: "b" top: "crop"
  crop_param { axis: 2 offset: 1 } }
layer { name: "mul" type: "Eltwise" bottom: "crop" bottom: "b" top: "mul"
  eltwise_param { operation: PROD } }
"""

DETECTOR = f"""{DATA} {CONV}
layer {{ name: "loc" type: "Convolution" bottom: "conv" top: "loc"
  convolution_param {{ num_output: 8 kernel_size: 3 pad: 1 stride: 2 }} }}
layer {{ name: "loc_p" type: "Permute" bottom: "loc" top: "loc_p"
  permute_param {{ order: 0 order: 2 order: 3 order: 1 }} }}
layer {{ name: "loc_f" type: "Flatten" bottom: "loc_p" top: "loc_f" }}
layer {{ name: "conf" type: "Convolution" bottom: "conv" top: "conf"
  convolution_param {{ num_output: 6 kernel_size: 3 pad: 1 stride: 2 }} }}
layer {{ name: "conf_p" type: "Permute" bottom: "conf" top: "conf_p"
  permute_param {{ order: 0 order: 2 order: 3 order: 1 }} }}
layer {{ name: "conf_r" type: "Reshape" bottom: "conf_p" top: "conf_r" reshape_param {{
  shape {{ dim: 0 dim: -1 dim: 3 }} }} }}
layer {{ name: "conf_s" type: "Softmax" bottom: "conf_r" top: "conf_s"
  softmax_param {{ axis: 2 }} }}
layer {{ name: "conf_f" type: "Flatten" bottom: "conf_s" top: "conf_f" }}
layer {{ name: "prior" type: "PriorBox" bottom: "loc" bottom: "data" top: "prior"
  prior_box_param {{ min_size: 3 max_size: 5
  variance: 0.1 variance: 0.1 variance: 0.2 variance: 0.2 }} }}
layer {{ name: "boxes" type: "DetectionOutput" bottom: "loc_f" bottom: "conf_f"
  bottom: "prior"
  top: "boxes" detection_output_param {{ num_classes: 3 share_location: true background_label_id: 0
  nms_param {{ nms_threshold: 0.45 top_k: 20 }}
  code_type: CENTER_SIZE keep_top_k: 30 confidence_threshold: 0.3 }} }}
"""

LETTERS = f"""{DATA} {CONV}
layer {{ name: "mean" type: "Pooling" bottom: "conv" top: "mean"
  pooling_param {{ pool: AVE kernel_h: 9 kernel_w: 1 }} }}
layer {{ name: "steps" type: "Permute" bottom: "mean" top: "steps"
  permute_param {{ order: 3 order: 0 order: 1 order: 2 }} }}
layer {{ name: "letters" type: "Reshape" bottom: "steps" top: "letters" reshape_param {{
  shape {{ dim: 0 dim: 0 dim: -1 }} }} }}
"""

NAMED_BY_TOP = f"""{DATA}
layer {{ name: "first" type: "Convolution" bottom: "data" top: "map"
  convolution_param {{ num_output: 4 kernel_size: 3 }} }}
layer {{ name: "rectified" type: "ReLU" bottom: "map" top: "positive" }}
layer {{ name: "second" type: "Deconvolution" bottom: "positive" top: "large"
  convolution_param {{ num_output: 2 kernel_size: 2 stride: 2 }} }}
"""

NETS = {
    "named_by_top": NAMED_BY_TOP,
    "letters": LETTERS,
    "chain": CHAIN,
    "branches": BRANCHES,
    "statistics": STATISTICS,
    "two_inputs": TWO_INPUTS,
    "detector": DETECTOR,
}

SHAPES = {
    "statistics": [{"data": (1, 3, 9, 8)}, {"data": (1, 3, 17, 11)}],  # OpenCV takes one image
    "two_inputs": [{"a": (1, 2, 7, 6), "b": (1, 2, 5, 4)}, {"a": (2, 2, 9, 9), "b": (2, 2, 3, 4)}],
    "letters": [{"data": (1, 3, 9, 8)}, {"data": (1, 3, 9, 20)}],
    "detector": [{"data": (1, 3, 9, 8)}, {"data": (2, 3, 15, 20)}, {"data": (1, 3, 6, 40)}],
}
PLAIN = [{"data": (1, 3, 9, 8)}, {"data": (2, 3, 17, 11)}, {"data": (1, 3, 5, 30)}]


def write(name: str, folder: Path) -> tuple[str, str]:
    """Write a net's prototxt and a caffemodel of drawn weights; their names."""
    prototxt, caffemodel = folder / f"{name}.prototxt", folder / f"{name}.caffemodel"
    prototxt.write_text(NETS[name])
    if name == "two_inputs":
        return str(prototxt), ""
    net = caffe.Net.from_proto(
        parse_net(NETS[name].replace('"bn" type: "ReLU"', '"r" type: "ReLU"')), 1
    )
    rng = np.random.RandomState(7)
    for layer, blobs in net.params.items():
        for blob in blobs:
            blob.data[...] = rng.uniform(-0.6, 0.6, blob.shape)
        if layer == "bn":
            blobs[1].data[...] = np.abs(blobs[1].data) + 0.2
            blobs[2].data[...] = 1
    net.save(str(caffemodel))
    return str(prototxt), str(caffemodel)


def inputs(name: str) -> list[dict[str, np.ndarray]]:
    """Values for a net's inputs, at several sizes."""
    rng = np.random.RandomState(11)
    return [
        {key: rng.uniform(-2, 2, shape).astype(np.float32) for key, shape in shapes.items()}
        for shapes in SHAPES.get(name, PLAIN)
    ]


class CenteredCrop:
    """HED's Crop: cuts the middle of the first input to the size of the second."""

    def __init__(self, params, blobs):
        self.params = params

    def getMemoryShapes(self, inputs):  # noqa: N802
        source, target = inputs
        self.top, self.left = (source[2] - target[2]) // 2, (source[3] - target[3]) // 2
        self.bottom, self.right = self.top + target[2], self.left + target[3]
        return [[*source[:2], *target[2:]]]

    def forward(self, inputs):
        return [inputs[0][:, :, self.top : self.bottom, self.left : self.right]]
