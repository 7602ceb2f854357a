"""Several labels for each image, from a data layer written in Python."""

import caffe
import numpy as np
from caffe import layers as L


class MultilabelDataLayer(caffe.Layer):
    """Images with some of four bright corners; a label says which."""

    def setup(self, bottom, top):
        self.top_names = ["data", "label"]
        params = eval(self.param_str)
        for name in ("batch_size", "split", "im_shape"):
            assert name in params, f"Params must include {name}."
        self.batch_size, self.im_shape = params["batch_size"], params["im_shape"]
        self.rng = np.random.RandomState(params["split"] == "val")
        top[0].reshape(self.batch_size, 1, *self.im_shape)
        top[1].reshape(self.batch_size, 4)

    def reshape(self, bottom, top):
        """There is no need to reshape the data, since the input is of fixed size."""

    def forward(self, bottom, top):
        for itt in range(self.batch_size):
            label = self.rng.randint(2, size=4)
            image = 0.3 * self.rng.rand(*self.im_shape)
            for corner in np.flatnonzero(label):
                row, col = 8 * (corner // 2), 8 * (corner % 2)
                image[row : row + 8, col : col + 8] += 0.5
            top[0].data[itt, ...] = image
            top[1].data[itt, ...] = label

    def backward(self, top, propagate_down, bottom):
        """These layers does not back propagate."""


def net(split):
    n = caffe.NetSpec()
    params = dict(batch_size=32, split=split, im_shape=[16, 16])
    n.data, n.label = L.Python(
        module="multilabel", layer="MultilabelDataLayer", ntop=2, param_str=str(params)
    )
    n.conv1 = L.Convolution(
        n.data, kernel_size=4, stride=4, num_output=6, weight_filler=dict(type="xavier")
    )
    n.relu1 = L.ReLU(n.conv1, in_place=True)
    n.score = L.InnerProduct(n.relu1, num_output=4, weight_filler=dict(type="xavier"))
    n.loss = L.SigmoidCrossEntropyLoss(n.score, n.label)
    return str(n.to_proto())


def hamming_distance(gt, est):
    return sum(1 for (g, e) in zip(gt, est, strict=True) if g == e) / float(len(gt))


def check_accuracy(net, num_batches, batch_size=32):
    acc = 0.0
    for _ in range(num_batches):
        net.forward()
        gts = net.blobs["label"].data
        ests = net.blobs["score"].data > 0
        for gt, est in zip(gts, ests, strict=True):
            acc += hamming_distance(gt, est)
    return acc / (num_batches * batch_size)


if __name__ == "__main__":
    for split in ("train", "val"):
        with open(split + ".prototxt", "w") as f:
            f.write(net(split))
    with open("solver.prototxt", "w") as f:
        f.write(
            'train_net: "train.prototxt" test_net: "val.prototxt" test_iter: 1 '
            'test_interval: 500 base_lr: 0.01 lr_policy: "fixed" momentum: 0.9 random_seed: 2'
        )
    solver = caffe.SGDSolver("solver.prototxt")
    solver.test_nets[0].share_with(solver.net)
    solver.step(1)
    print(f"at first {check_accuracy(solver.test_nets[0], 5):.2f}")
    solver.step(150)
    print(f"at last {check_accuracy(solver.test_nets[0], 5):.2f}")
