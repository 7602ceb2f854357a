"""A Euclidean loss written in Python, in the place of Caffe's own."""

import caffe
import numpy as np


class EuclideanLossLayer(caffe.Layer):
    """Compute the Euclidean loss in the same manner as Caffe's EuclideanLossLayer."""

    def setup(self, bottom, top):
        if len(bottom) != 2:
            raise Exception("Need two inputs to compute distance.")

    def reshape(self, bottom, top):
        if bottom[0].count != bottom[1].count:
            raise Exception("Inputs must have the same dimension.")
        self.diff = np.zeros_like(bottom[0].data, dtype=np.float32)
        top[0].reshape(1)

    def forward(self, bottom, top):
        self.diff[...] = bottom[0].data - bottom[1].data
        top[0].data[...] = np.sum(self.diff**2) / bottom[0].num / 2.0

    def backward(self, top, propagate_down, bottom):
        for i in range(2):
            if not propagate_down[i]:
                continue
            sign = 1 if i == 0 else -1
            bottom[i].diff[...] = sign * self.diff / bottom[i].num


NET = """
layer { name: "x" type: "DummyData" top: "x"
  dummy_data_param { shape { dim: 10 dim: 3 dim: 2 } data_filler { type: "gaussian" std: 1 } } }
layer { name: "y" type: "DummyData" top: "y"
  dummy_data_param { shape { dim: 10 dim: 4 } data_filler { type: "constant" value: 1 } } }
layer { name: "ip" type: "InnerProduct" bottom: "x" top: "ip"
  inner_product_param { num_output: 4 weight_filler { type: "xavier" } } }
"""
PYTHON = """
layer { name: "loss" type: "Python" bottom: "ip" bottom: "y" top: "loss" loss_weight: 1
  python_param { module: "pyloss" layer: "EuclideanLossLayer" } }
"""
BUILT_IN = 'layer { name: "loss" type: "EuclideanLoss" bottom: "ip" bottom: "y" top: "loss" }'


def train(name, text):
    with open(name + ".prototxt", "w") as f:
        f.write(text)
    with open(name + "_solver.prototxt", "w") as f:
        f.write(f'net: "{name}.prototxt" base_lr: 0.05 lr_policy: "fixed" random_seed: 11')
    solver = caffe.SGDSolver(name + "_solver.prototxt")
    losses = []
    for _ in range(50):
        solver.step(1)
        losses.append(float(solver.net.blobs["loss"].data.flat[0]))
    return losses, solver.net.params["ip"][0].data.copy()


if __name__ == "__main__":
    losses, weights = train("python", NET + PYTHON)
    want, want_weights = train("built_in", NET + BUILT_IN)
    print(f"falls to a tenth: {losses[-1] < 0.1 * losses[0]}")
    print("the losses agree:", np.allclose(losses, want, rtol=1e-4))
    print("the weights agree:", np.allclose(weights, want_weights, atol=1e-5))
