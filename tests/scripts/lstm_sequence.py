"""An LSTM learns to say, after every symbol, which one it saw two steps before."""

import caffe
import numpy as np
from caffe import layers as L

T, N, SYMBOLS, DELAY = 16, 20, 4, 2


def net():
    n = caffe.NetSpec()
    n.data = L.Input(shape=dict(dim=[T, N]))
    n.cont = L.Input(shape=dict(dim=[T, N]))
    n.target = L.Input(shape=dict(dim=[T, N]))
    n.embedded = L.Embed(
        n.data, input_dim=SYMBOLS, num_output=8, bias_term=False,
        weight_filler=dict(type="uniform", min=-0.5, max=0.5),
    )  # fmt: skip
    n.lstm = L.LSTM(
        n.embedded, n.cont,
        recurrent_param=dict(
            num_output=24,
            weight_filler=dict(type="uniform", min=-0.2, max=0.2),
            bias_filler=dict(type="constant", value=0),
        ),
    )  # fmt: skip
    n.predict = L.InnerProduct(
        n.lstm, num_output=SYMBOLS, axis=2, weight_filler=dict(type="xavier")
    )
    n.loss = L.SoftmaxWithLoss(
        n.predict, n.target, softmax_param=dict(axis=2), loss_param=dict(ignore_label=-1)
    )
    n.accuracy = L.Accuracy(n.predict, n.target, axis=2, ignore_label=-1)
    return n.to_proto()


with open("lstm.prototxt", "w") as f:
    f.write(str(net()))
with open("lstm_solver.prototxt", "w") as f:
    f.write(
        'net: "lstm.prototxt" type: "Adam" base_lr: 0.02 momentum: 0.9 momentum2: 0.999 '
        'lr_policy: "fixed" clip_gradients: 5 random_seed: 6'
    )
solver = caffe.get_solver("lstm_solver.prototxt")
print(type(solver).__name__, [b.data.shape for b in solver.net.params["lstm"]])
rng = np.random.RandomState(0)
for it in range(200):
    symbols = rng.randint(SYMBOLS, size=(T, N))
    target = np.full((T, N), -1)
    target[DELAY:] = symbols[:-DELAY]
    solver.net.blobs["data"].data[...] = symbols
    solver.net.blobs["cont"].data[0] = 0
    solver.net.blobs["cont"].data[1:] = 1
    solver.net.blobs["target"].data[...] = target
    solver.step(1)
    if it % 50 == 0:
        print(it, f"{float(solver.net.blobs['loss'].data):.2f}")
print(f"accuracy {float(solver.net.blobs['accuracy'].data):.2f}")
