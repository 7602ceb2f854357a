"""Faster R-CNN, end to end, in the way of py-faster-rcnn: a data layer whose images change size,
and layers in Python for anchors, proposals and targets, whose tops take their shapes in forward."""

import caffe
import numpy as np

STRIDE, SIZES, CLASSES = 4, (10, 20), 3
A = len(SIZES)


# -- boxes: x1, y1, x2, y2 -----------------------------------------------------------------


def overlaps(boxes, others):
    x1, y1 = (np.maximum(boxes[:, None, i], others[None, :, i]) for i in (0, 1))
    x2, y2 = (np.minimum(boxes[:, None, i], others[None, :, i]) for i in (2, 3))
    inner = np.maximum(x2 - x1 + 1, 0) * np.maximum(y2 - y1 + 1, 0)
    area, other = (np.prod(b[:, 2:4] - b[:, :2] + 1, axis=1) for b in (boxes, others))
    return inner / (area[:, None] + other[None] - inner)


def centres(boxes):
    sizes = boxes[:, 2:4] - boxes[:, :2] + 1
    return boxes[:, :2] + sizes / 2, sizes


def offsets(boxes, targets):
    (centre, size), (to, wide) = centres(boxes), centres(targets)
    return np.hstack([(to - centre) / size, np.log(wide / size)])


def moved(boxes, deltas):
    centre, size = centres(boxes)
    centre, size = centre + deltas[:, :2] * size, size * np.exp(np.clip(deltas[:, 2:], -2, 2))
    return np.hstack([centre - size / 2, centre + size / 2 - 1])


def anchors(height, width):
    """In the order row, column, size."""
    y, x, size = np.meshgrid(np.arange(height), np.arange(width), SIZES, indexing="ij")
    x, y, half = (v.ravel() for v in (x * STRIDE + 2.0, y * STRIDE + 2.0, size / 2.0))
    return np.stack([x - half, y - half, x + half - 1, y + half - 1], axis=1)


def unmap(values, height, width):
    """Anchors' values as the net lays them out: 1, A · n, height, width."""
    values = values.reshape(height, width, A, -1).transpose(2, 3, 0, 1)
    return values.reshape(1, -1, height, width)


# -- layers ----------------------------------------------------------------------------------


class Still(caffe.Layer):
    """Leaves shapes alone in `reshape`, and has no gradient."""

    def reshape(self, bottom, top):
        pass

    def backward(self, top, propagate_down, bottom):
        pass


def fill(top, *arrays):
    for blob, array in zip(top, arrays):  # noqa: B905
        blob.reshape(*array.shape)
        blob.data[...] = array


class RoIDataLayer(Still):
    def setup(self, bottom, top):
        self._rng = np.random.RandomState(5)
        fill(top, np.zeros((1, 3, 60, 100)), np.zeros((1, 3)), np.zeros((1, 5)))

    def forward(self, bottom, top):
        rng = self._rng
        h, w = rng.randint(36, 73, size=2)
        image, boxes = 0.1 * rng.rand(1, 3, h, w), []
        for _ in range(rng.randint(1, 4)):
            size, label = rng.choice([10, 14, 20]), rng.randint(1, CLASSES)
            x, y = rng.randint(w - size), rng.randint(h - size)
            box = np.array([x, y, x + size - 1, y + size - 1, label])
            if boxes and overlaps(box[None], np.array(boxes)).max() > 0:
                continue
            image[0, label, y : y + size, x : x + size] = 1
            boxes.append(box)
        fill(top, image, np.array([[h, w, 1.0]]), np.array(boxes))


class AnchorTargetLayer(Still):
    def setup(self, bottom, top):
        height, width = bottom[0].data.shape[-2:]
        fill(top, np.zeros((1, 1, A * height, width)))
        for blob in top[1:]:
            blob.reshape(1, A * 4, height, width)

    def forward(self, bottom, top):
        height, width = bottom[0].data.shape[-2:]
        truth, (h, w) = bottom[1].data, bottom[2].data[0, :2]
        boxes = anchors(height, width)
        inside = (boxes[:, :2] >= -4).all(1) & (boxes[:, 2] < w + 4) & (boxes[:, 3] < h + 4)
        iou = overlaps(boxes, truth) * inside[:, None]
        best, labels = iou.argmax(1), -np.ones(len(boxes))
        labels[inside & (iou.max(1) < 0.3)] = 0
        labels[(iou == iou.max(0)).any(1) & (iou.max(1) > 0)] = 1
        labels[iou.max(1) >= 0.6] = 1
        ground = np.flatnonzero(labels == 0)
        labels[np.random.permutation(ground)[3 * int((labels == 1).sum()) :]] = -1
        fore = np.repeat(labels == 1, 4).reshape(-1, 4)
        aims = offsets(boxes, truth[best, :4])
        aims, some = aims * fore, fore / max((labels >= 0).sum(), 1)
        maps = [unmap(values, height, width) for values in (aims, fore, some)]
        fill(top, unmap(labels, height, width).reshape(1, 1, A * height, width), *maps)


class ProposalLayer(Still):
    def setup(self, bottom, top):
        top[0].reshape(1, 5)

    def forward(self, bottom, top):
        height, width = bottom[0].data.shape[-2:]
        scores = bottom[0].data[0, A:].transpose(1, 2, 0).ravel()
        deltas = bottom[1].data[0].reshape(A, 4, height, width).transpose(2, 3, 0, 1)
        boxes = moved(anchors(height, width), deltas.reshape(-1, 4).astype(float))
        h, w = bottom[2].data[0, :2]
        boxes = np.clip(boxes, 0, [w - 1, h - 1, w - 1, h - 1])
        order, kept = scores.argsort()[::-1][:200], []
        while len(order) and len(kept) < 12:
            kept.append(order[0])
            order = order[overlaps(boxes[order[:1]], boxes[order])[0] < 0.7]
        fill(top, np.hstack([np.zeros((len(kept), 1)), boxes[kept]]))


class ProposalTargetLayer(Still):
    def setup(self, bottom, top):
        fill(top, np.zeros((1, 5)), np.zeros((1, 1)))
        for blob in top[2:]:
            blob.reshape(1, CLASSES * 4)

    def forward(self, bottom, top):
        truth = bottom[1].data
        rois = np.vstack([bottom[0].data, np.hstack([np.zeros((len(truth), 1)), truth[:, :4]])])
        iou = overlaps(rois[:, 1:], truth)
        best = iou.argmax(1)
        labels = np.where(iou.max(1) >= 0.5, truth[best, 4], 0)
        aims = np.zeros((len(rois), CLASSES, 4))
        weights = np.zeros_like(aims)
        fore = np.flatnonzero(labels)
        aims[fore, labels[fore].astype(int)] = offsets(rois[:, 1:], truth[best, :4])[fore]
        weights[fore, labels[fore].astype(int)] = 1
        aims, weights = aims.reshape(len(rois), -1), weights.reshape(len(rois), -1)
        fill(top, rois, labels[:, None], aims, weights, weights)


# -- the net ---------------------------------------------------------------------------------


def python(name, layer, bottoms, tops):
    words = "".join(f'bottom: "{b}" ' for b in bottoms) + "".join(f'top: "{t}" ' for t in tops)
    return (
        f'layer {{ name: "{name}" type: "Python" {words} '
        f'python_param {{ module: "faster_rcnn_train" layer: "{layer}" }} }}\n'
    )


def conv(bottom, top, outputs, kernel, stride=1, std=None):
    filler = f'type: "gaussian" std: {std}' if std else 'type: "msra"'
    return (
        f'layer {{ name: "{top}" type: "Convolution" bottom: "{bottom}" top: "{top}" '
        f"convolution_param {{ num_output: {outputs} kernel_size: {kernel} pad: {kernel // 2} "
        f"stride: {stride} weight_filler {{ {filler} }} }} }}\n"
    )


def relu(blob):
    return f'layer {{ name: "relu_{blob}" type: "ReLU" bottom: "{blob}" top: "{blob}" }}\n'


def fully(bottom, top, outputs):
    return (
        f'layer {{ name: "{top}" type: "InnerProduct" bottom: "{bottom}" top: "{top}" '
        f'inner_product_param {{ num_output: {outputs} weight_filler {{ type: "xavier" }} }} }}\n'
    )


def smooth(name, bottoms):
    words = "".join(f'bottom: "{b}" ' for b in bottoms)
    return f'layer {{ name: "{name}" type: "SmoothL1Loss" {words} top: "{name}" loss_weight: 1 }}\n'


def shaped(bottom, top, second):
    return (
        f'layer {{ name: "{top}" type: "Reshape" bottom: "{bottom}" top: "{top}" '
        f"reshape_param {{ shape {{ dim: 0 dim: {second} dim: -1 dim: 0 }} }} }}\n"
    )


RPN = ["rpn_labels", "rpn_bbox_targets", "rpn_bbox_inside_weights", "rpn_bbox_outside_weights"]
HEAD = ["rois", "labels", "bbox_targets", "bbox_inside_weights", "bbox_outside_weights"]
NET = (
    'name: "tiny Faster R-CNN"\n'
    + python("input-data", "RoIDataLayer", [], ["data", "im_info", "gt_boxes"])
    + conv("data", "conv1", 8, 5, 2) + relu("conv1")
    + conv("conv1", "conv2", 16, 3, 2) + relu("conv2")
    + conv("conv2", "rpn/output", 16, 3) + relu("rpn/output")
    + conv("rpn/output", "rpn_cls_score", 2 * A, 1, std=0.01)
    + conv("rpn/output", "rpn_bbox_pred", 4 * A, 1, std=0.01)
    + shaped("rpn_cls_score", "rpn_cls_score_reshape", 2)
    + python("rpn-data", "AnchorTargetLayer", ["rpn_cls_score", "gt_boxes", "im_info", "data"], RPN)
    + """layer { name: "rpn_loss_cls" type: "SoftmaxWithLoss" bottom: "rpn_cls_score_reshape"
      bottom: "rpn_labels" top: "rpn_cls_loss" propagate_down: 1 propagate_down: 0 loss_weight: 1
      loss_param { ignore_label: -1 normalize: true } }\n"""
    + smooth("rpn_loss_bbox", ["rpn_bbox_pred", *RPN[1:]])
    + 'layer { name: "rpn_cls_prob" type: "Softmax" bottom: "rpn_cls_score_reshape" '
      'top: "rpn_cls_prob" }\n'
    + shaped("rpn_cls_prob", "rpn_cls_prob_reshape", 2 * A)
    + python("proposal", "ProposalLayer",
             ["rpn_cls_prob_reshape", "rpn_bbox_pred", "im_info"], ["rpn_rois"])
    + python("roi-data", "ProposalTargetLayer", ["rpn_rois", "gt_boxes"], HEAD)
    + 'layer { name: "roi_pool5" type: "ROIPooling" bottom: "conv2" bottom: "rois" top: "pool5" '
      "roi_pooling_param { pooled_w: 3 pooled_h: 3 spatial_scale: 0.25 } }\n"
    + fully("pool5", "fc6", 32) + relu("fc6")
    + fully("fc6", "cls_score", CLASSES) + fully("fc6", "bbox_pred", 4 * CLASSES)
    + """layer { name: "loss_cls" type: "SoftmaxWithLoss" bottom: "cls_score" bottom: "labels"
      top: "loss_cls" propagate_down: 1 propagate_down: 0 loss_weight: 1 }\n"""
    + smooth("loss_bbox", ["bbox_pred", *HEAD[2:]])
)  # fmt: skip

if __name__ == "__main__":
    with open("train.prototxt", "w") as f:
        f.write(NET)
    with open("solver.prototxt", "w") as f:
        f.write(
            'train_net: "train.prototxt" base_lr: 0.02 lr_policy: "fixed" momentum: 0.9 '
            "weight_decay: 0.0005 display: 0 snapshot: 0 random_seed: 3"
        )
    np.random.seed(3)
    solver = caffe.SGDSolver("solver.prototxt")
    net, sizes, rois, losses = solver.net, set(), set(), []
    for _ in range(150):
        solver.step(1)
        sizes.add(net.blobs["data"].data.shape)
        rois.add(len(net.blobs["rois"].data))
        losses.append([float(net.blobs[name].data) for name in net.outputs])
    first, last = (np.mean(part, axis=0) for part in (losses[:20], losses[-20:]))
    print("images of", len(sizes) > 100, "sizes, proposals of", len(rois) > 2, "numbers")
    print(net.outputs)
    print("all four fall:", bool((last < first).all()), "in all to", last.sum() / first.sum() < 0.6)
    found = right = 0
    for _ in range(20):
        net.forward()
        truth, boxes = net.blobs["gt_boxes"].data, net.blobs["rpn_rois"].data
        found += (overlaps(truth, boxes[:, 1:]).max(1) > 0.5).mean() / 20
        scores, labels = net.blobs["cls_score"].data, net.blobs["labels"].data.ravel()
        right += (scores.argmax(1) == labels).mean() / 20
    print(f"proposals find {found:.2f}, classes right {right:.2f}")
