"""Detection training in the way of py-faster-rcnn: a data layer that the trainer hands its data."""

import time

import caffe
import numpy as np
from caffe.proto import caffe_pb2
from google.protobuf import text_format


class RoIDataLayer(caffe.Layer):
    """One image of another size in every iteration, its regions and their labels."""

    def setup(self, bottom, top):
        self._name_to_top_map = {"data": 0, "rois": 1, "labels": 2}
        top[0].reshape(1, 3, 64, 64)
        top[1].reshape(1, 5)
        top[2].reshape(1)

    def set_roidb(self, roidb):
        self._roidb, self._cur = roidb, 0

    def forward(self, bottom, top):
        entry = self._roidb[self._cur]
        self._cur = (self._cur + 1) % len(self._roidb)
        for blob_name, blob in entry.items():
            top_ind = self._name_to_top_map[blob_name]
            top[top_ind].reshape(*blob.shape)
            top[top_ind].data[...] = blob.astype(np.float32, copy=False)

    def backward(self, top, propagate_down, bottom):
        pass

    def reshape(self, bottom, top):
        pass


NET = """
name: "tiny Fast R-CNN"
layer { name: "data" type: "Python" top: "data" top: "rois" top: "labels"
  python_param { module: "roidb_train" layer: "RoIDataLayer" } }
layer { name: "conv1" type: "Convolution" bottom: "data" top: "conv1"
  convolution_param { num_output: 8 kernel_size: 5 pad: 2 stride: 2
    weight_filler { type: "xavier" } } }
layer { name: "relu1" type: "ReLU" bottom: "conv1" top: "conv1" }
layer { name: "roi_pool" type: "ROIPooling" bottom: "conv1" bottom: "rois" top: "pool"
  roi_pooling_param { pooled_w: 3 pooled_h: 3 spatial_scale: 0.5 } }
layer { name: "cls_score" type: "InnerProduct" bottom: "pool" top: "cls_score"
  inner_product_param { num_output: 3 weight_filler { type: "xavier" } } }
layer { name: "loss_cls" type: "SoftmaxWithLoss" bottom: "cls_score" bottom: "labels"
  top: "loss_cls" }
"""


def make_roidb(count):
    """Boxes of one colour or another on a grey ground; class 0 is the ground."""
    rng = np.random.RandomState(0)
    roidb = []
    for _ in range(count):
        h, w = rng.randint(48, 80, size=2)
        image = 0.1 * rng.rand(1, 3, h, w)
        rois, labels = [], []
        for _ in range(rng.randint(4, 9)):
            x, y, label = rng.randint(w - 20), rng.randint(h - 20), rng.randint(3)
            image[0, :, y : y + 20, x : x + 20] = 0.1
            if label:
                image[0, label, y : y + 20, x : x + 20] = 1
            rois.append([0, x, y, x + 19, y + 19])
            labels.append(label)
        roidb.append(dict(data=image, rois=np.array(rois), labels=np.array(labels)))
    return roidb


class SolverWrapper:
    def __init__(self, solver_prototxt, roidb, output_dir):
        self.output_dir = output_dir
        self.solver = caffe.SGDSolver(solver_prototxt)
        self.solver_param = caffe_pb2.SolverParameter()
        with open(solver_prototxt) as f:
            text_format.Merge(f.read(), self.solver_param)
        self.solver.net.layers[0].set_roidb(roidb)

    def snapshot(self):
        filename = f"{self.solver_param.snapshot_prefix}_iter_{self.solver.iter:d}.caffemodel"
        self.solver.net.save(str(filename))
        print(f"Wrote snapshot to: {filename:s}")

    def train_model(self, max_iters):
        first, times = None, []
        while self.solver.iter < max_iters:
            start = time.time()
            self.solver.step(1)
            times.append(time.time() - start)
            loss = float(self.solver.net.blobs["loss_cls"].data)
            first = loss if first is None else first
            if self.solver.iter % 50 == 0:
                self.snapshot()
        return first


if __name__ == "__main__":
    with open("train.prototxt", "w") as f:
        f.write(NET)
    with open("solver.prototxt", "w") as f:
        f.write(
            'train_net: "train.prototxt" base_lr: 0.01 lr_policy: "step" gamma: 0.1 '
            "stepsize: 80 display: 0 average_loss: 20 momentum: 0.9 snapshot: 0 "
            'snapshot_prefix: "frcnn" random_seed: 3'
        )
    sw = SolverWrapper("solver.prototxt", make_roidb(20), ".")
    sw.train_model(100)
    net = sw.solver.net
    hits = total = 0
    for _ in range(20):
        net.forward()
        scores, labels = net.blobs["cls_score"].data, net.blobs["labels"].data
        assert len(scores) == len(labels) == len(net.blobs["rois"].data)
        hits += (scores.argmax(1) == labels).sum()
        total += len(labels)
    print(f"{hits / total:.2f} of {total} regions")
