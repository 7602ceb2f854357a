"""Writes recorded.npz: what OpenCV 4 computes of the nets and images of these tests.

python -m tests.opencv.record        # with opencv-python-headless<5 beside sparknet
"""

import json
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from tests.opencv import images, nets

RECORDED = Path(__file__).with_name("recorded.npz")


def outputs(read, name, folder):
    """All layers' outputs of a net, at each size of its inputs.

    Each of a net of its own, as OpenCV keeps PriorBox's step of the first size.  Inner layers are
    not joined: OpenCV returns memory that it did not write for those that are.
    """
    arrays = {}

    def net(values, fusion=False):
        net = read(*nets.write(name, folder))
        net.enableFusion(fusion)
        for key, value in values.items():
            net.setInput(value, key)
        return net

    for number, values in enumerate(nets.inputs(name)):
        arrays[f"{number}/last"] = net(values, fusion=True).forward()
        for layer in net(values).getLayerNames():
            arrays[f"{number}/{layer}"] = net(values).forward(layer)
        if name == "branches":
            _, arrays[f"{number}/second"] = net(values).forwardAndRetrieve(["slice"])[0]
    return arrays


def facts(net, name):
    """What a net says of itself."""
    shapes = [value.shape for value in nets.inputs(name)[1].values()]
    numbers, bottoms, tops = net.getLayersShapes(shapes)
    return {
        "names": list(net.getLayerNames()),
        "types": list(net.getLayerTypes()),
        "ends": net.getUnconnectedOutLayers().tolist(),
        "end_names": list(net.getUnconnectedOutLayersNames()),
        "memory": list(net.getMemoryConsumption(shapes[0])) if len(shapes) == 1 else [],
        "flops": net.getFLOPS(shapes),
        "shapes": [
            numbers.tolist(),
            *([[list(map(int, s)) for s in row] for row in rows] for rows in (bottoms, tops)),
        ],
    }


def main():
    import cv2

    arrays: dict[str, np.ndarray] = {}
    said = {"version": cv2.__version__}
    with TemporaryDirectory() as folder:
        for name in nets.NETS:
            read = cv2.dnn.readNetFromCaffe
            for key, value in outputs(read, name, Path(folder)).items():
                arrays[f"{name}/{key}"] = value
            said[name] = facts(read(*nets.write(name, Path(folder))), name)
        modelled = images.modelled(cv2.dnn, lambda name: read(*nets.write(name, Path(folder))))
        cv2.dnn_registerLayer("Crop", nets.CenteredCrop)
        for key, value in outputs(read, "two_inputs", Path(folder)).items():
            arrays[f"centred/{key}"] = value
    for key, value in (images.computed(cv2.dnn) | modelled).items():
        arrays[f"images/{key}"] = value
    np.savez_compressed(RECORDED, facts=np.array(json.dumps(said)), **arrays)
    print(f"{RECORDED.name}: {len(arrays)} arrays, {RECORDED.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
