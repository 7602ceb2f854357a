"""Small nets of the shapes of RefineDet's, MS-CNN's and DetectNet's, in words of our own."""

# ruff: noqa: E501 (a layer a line)

import numpy as np

from tests.caffe.fork_nets import XAVIER, Writer, images

CODE = "code_type: CENTER_SIZE share_location: true objectness_score: 0.01"
TRAIN, TEST = "include { phase: TRAIN }", "include { phase: TEST }"


def heads(net: Writer, stage: str, top: str, level: int, classes: int) -> list[str]:
    """Locations and scores of two anchors at each place."""
    found = []
    for what, width in (("loc", 8), ("conf", 2 * classes)):
        head = net.conv(f"{stage}_{what}{level}", top, width, relu=False)
        order = "permute_param { order: 0 order: 2 order: 3 order: 1 }"
        head = net.add("Permute", f"{head}_perm", head, order)
        found.append(net.add("Flatten", f"{head}_flat", head))
    return found


def chances(net: Writer, scores: str, classes: int) -> str:
    shape = f"reshape_param {{ shape {{ dim: 0 dim: -1 dim: {classes} }} }}"
    rows = net.add("Reshape", f"{scores}_rows", scores, shape)
    soft = net.add("Softmax", f"{scores}_p", rows, "softmax_param { axis: 2 }")
    return net.add("Flatten", f"{scores}_flat", soft)


def refinedet() -> Writer:
    """Anchors are refined by a first stage; the second has the features of the level above too."""
    truth = np.array([[0, 1, 0, 0.1, 0.1, 0.5, 0.6, 0], [1, 2, 0, 0.4, 0.3, 0.9, 0.9, 0]])
    net = Writer(data=images(2, 3, 64, 64), label=truth.reshape(1, 1, 2, 8))
    top, first, features = net.pool("pool1", net.conv("conv1", "data", 8)), [], []
    for level in (1, 2):
        top = net.pool(f"down{level}", net.conv(f"feature{level}", top, 12))
        features.append(top)
        prior = f"prior_box_param {{ min_size: {12 + 14 * level} aspect_ratio: 2 flip: false variance: 0.1 variance: 0.1 variance: 0.2 variance: 0.2 }}"
        parts = heads(net, "arm", top, level, 2)
        first.append([*parts, net.add("PriorBox", f"prior{level}", f"{top} data", prior)])
    above = net.conv("tcb2", features[1], 12)
    up = net.add("Deconvolution", "up", above, f"convolution_param {{ num_output: 12 kernel_size: 2 stride: 2 {XAVIER} }}")  # fmt: skip
    both = net.add("Eltwise", "both", f"{net.conv('tcb1', features[0], 12, relu=False)} {up}")
    second = [heads(net, "odm", own, level, 3) for level, own in ((1, both), (2, above))]
    arm_loc, arm_conf, priors = (
        net.add("Concat", name, " ".join(one[place] for one in first), f"concat_param {{ axis: {1 + (place == 2)} }}")
        for place, name in enumerate(("arm_loc", "arm_conf", "priors"))
    )  # fmt: skip
    odm_loc, odm_conf = (
        net.add("Concat", name, " ".join(one[place] for one in second))
        for place, name in enumerate(("odm_loc", "odm_conf"))
    )
    sure = chances(net, arm_conf, 2)
    for name, classes, bottoms in (
        ("arm_loss", 2, f"{arm_loc} {arm_conf} {priors} label"),
        ("odm_loss", 3, f"{odm_loc} {odm_conf} {priors} label {sure} {arm_loc}"),
    ):
        net.add("MultiBoxLoss", name, bottoms, f"multibox_loss_param {{ num_classes: {classes} {CODE} }} {TRAIN}")  # fmt: skip
    options = f"detection_output_param {{ num_classes: 3 {CODE} keep_top_k: 20 nms_param {{ nms_threshold: 0.45 top_k: 40 }} }} {TEST}"
    net.add("DetectionOutput", "found", f"{odm_loc} {chances(net, odm_conf, 3)} {priors} {sure} {arm_loc}", options)  # fmt: skip
    return net
