"""Snapshots: training that was interrupted goes on as if nothing had happened."""

import os

import caffe
import numpy as np

with open("net.prototxt", "w") as f:
    f.write("""
layer { name: "x" type: "DummyData" top: "x"
  dummy_data_param { shape { dim: 8 dim: 5 } data_filler { type: "constant" value: 0.5 } } }
layer { name: "y" type: "DummyData" top: "y"
  dummy_data_param { shape { dim: 8 dim: 2 } data_filler { type: "constant" value: -1 } } }
layer { name: "ip" type: "InnerProduct" bottom: "x" top: "ip"
  inner_product_param { num_output: 2 weight_filler { type: "gaussian" std: 0.5 } } }
layer { name: "loss" type: "EuclideanLoss" bottom: "ip" bottom: "y" }
""")
for kind in ("BINARYPROTO", "HDF5"):
    suffix = ".h5" if kind == "HDF5" else ""
    for name, seed in (("whole", 1), ("half", 1), ("other", 2)):
        with open(name + "_solver.prototxt", "w") as f:
            f.write(
                f'net: "net.prototxt" type: "Adam" base_lr: 0.05 lr_policy: "step" gamma: 0.5 '
                f"stepsize: 6 momentum: 0.9 momentum2: 0.99 max_iter: 20 snapshot: 10 "
                f'snapshot_prefix: "{name}" snapshot_format: {kind} random_seed: {seed}'
            )
    whole = caffe.get_solver("whole_solver.prototxt")
    whole.solve()
    half = caffe.get_solver("half_solver.prototxt")
    half.step(10)
    print(sorted(name for name in os.listdir(".") if name.startswith("half_iter")))
    other = caffe.get_solver("other_solver.prototxt")
    other.restore("half_iter_10.solverstate" + suffix)
    print("iteration", other.iter)
    other.step(10)
    same = all(
        np.array_equal(a.data, b.data)
        for a, b in zip(whole.net.params["ip"], other.net.params["ip"], strict=True)
    )
    again = caffe.get_solver("other_solver.prototxt")
    again.solve("half_iter_10.solverstate" + suffix)
    print(kind, "goes on as if nothing had happened:", same, again.iter)
    for name in os.listdir("."):
        if "_iter_" in name:
            os.remove(name)
