"""Calls of cv2.dnn's functions of images and boxes, for OpenCV and for sparknet alike."""

import numpy as np


def picture(height: int = 22, width: int = 17, channels: int = 3, kind: str = "u1") -> np.ndarray:
    rng = np.random.RandomState(height * width)
    coarse = rng.randint(0, 256, (height // 4 + 2, width // 4 + 2, channels))
    fine = coarse.repeat(4, 0).repeat(4, 1)[:height, :width] + rng.randint(
        -9, 10, (height, width, channels)
    )
    image = np.clip(fine, 0, 255).astype(kind)
    return image[:, :, 0] if channels == 1 else image


BLOBS = {
    "plain": ({}, {}),
    "smaller": ({}, {"size": (9, 12), "mean": (104, 117.5, 123)}),
    "larger": ({}, {"size": (30, 25), "scalefactor": 1 / 127.5, "mean": (127.5, 127.5, 127.5)}),
    "swapped": ({}, {"size": (10, 10), "mean": (1, 2, 3), "swapRB": True, "scalefactor": 0.5}),
    "grey": ({"channels": 1}, {"size": (8, 8), "mean": 7, "scalefactor": 2.0}),
    "four": ({"channels": 4}, {"size": (8, 8), "mean": (1, 2, 3, 4), "swapRB": True}),
    "float": ({"kind": "f4"}, {"size": (11, 9), "mean": (1, 2, 3), "scalefactor": 0.25}),
    "bytes": ({}, {"size": (9, 12), "swapRB": True, "ddepth": 0}),
    "cropped": ({"height": 20, "width": 40}, {"size": (10, 10), "crop": True}),
    "half_cropped": (
        {"height": 24, "width": 16},
        {"size": (8, 8), "crop": True, "mean": (9, 9, 9)},
    ),
}


def computed(dnn):
    """Results by name; ``dnn`` is cv2.dnn or sparknet's."""
    results = {
        name: dnn.blobFromImage(picture(**how), **call) for name, (how, call) in BLOBS.items()
    }
    two = [picture(12, 13), picture(15, 11)]
    results["several"] = dnn.blobFromImages(two, 1.0, (8, 9), (5, 6, 7), swapRB=True)
    for name, mode in (("stretched", 0), ("centred", 1), ("letterbox", 2)):
        how = dnn.Image2BlobParams()
        how.size, how.mean, how.scalefactor = (12, 12), (1.0, 2.0, 3.0, 0.0), (0.5, 0.25, 2.0, 1.0)
        how.swapRB, how.paddingmode, how.borderValue = True, mode, (9.0, 8.0, 7.0, 0.0)
        results[f"params_{name}"] = dnn.blobFromImageWithParams(picture(24, 16), how)
    for number, image in enumerate(dnn.imagesFromBlob(results["several"])):
        results[f"image_{number}"] = image
    return results | boxes(dnn)


def boxes(dnn):
    rng = np.random.RandomState(5)
    corners = np.hstack([rng.randint(0, 40, (60, 2)), rng.randint(4, 30, (60, 2))])
    scores = rng.uniform(0, 1, 60).astype(np.float32)
    classes = rng.randint(0, 3, 60)
    whole, real = corners.tolist(), (corners + 0.25).tolist()
    calls = {
        "nms": dnn.NMSBoxes(whole, scores.tolist(), 0.2, 0.3),
        "nms_real": dnn.NMSBoxes(real, scores, 0.1, 0.5),
        "nms_top": dnn.NMSBoxes(whole, scores, 0.1, 0.6, 1.0, 9),
        "nms_eta": dnn.NMSBoxes(whole, scores, 0.1, 0.7, 0.9),
        "nms_none": dnn.NMSBoxes(whole, scores, 1.5, 0.7),
        "nms_classes": dnn.NMSBoxesBatched(whole, scores, classes.tolist(), 0.2, 0.3),
        "soft": dnn.softNMSBoxes(whole, scores.tolist(), 0.2, 0.3),
        "soft_linear": dnn.softNMSBoxes(
            whole, scores.tolist(), 0.2, 0.3, method=dnn.SOFT_NMSMETHOD_SOFTNMS_LINEAR
        ),
        "soft_top": dnn.softNMSBoxes(whole, scores.tolist(), 0.2, 0.3, 7, 0.3),
    }
    arrays = {}
    for name, call in calls.items():
        parts = call if name.startswith("soft") else (call,)
        for number, part in enumerate(parts):
            arrays[f"{name}_{number}"] = np.asarray(part)
    return arrays


def modelled(dnn, read):
    """What the models say of pictures; ``read`` makes a net by its name."""
    results: dict[str, np.ndarray] = {}
    image = picture(30, 50)
    detector = dnn.DetectionModel(read("detector"))
    detector.setInputParams(1 / 200, (20, 15), (127, 127, 127), True)
    for name, call in (
        ("all", (image, 0.4)),
        ("none", (image, 2.0)),
        ("tall", (picture(60, 21), 0.9)),
    ):
        for part, array in zip(("classes", "scores", "boxes"), detector.detect(*call), strict=True):
            results[f"detect_{name}_{part}"] = np.asarray(array)
    classifier = dnn.ClassificationModel(read("chain"))
    classifier.setInputScale(1 / 64).setInputMean((9, 9, 9)).setInputSize((20, 20)).setInputCrop(
        True
    )
    results["classify"] = np.array(classifier.classify(image))
    classifier.setEnableSoftmaxPostProcessing(True)
    results["classify_softmax"] = np.array(classifier.classify(image))
    segmenter = dnn.SegmentationModel(read("chain"))
    segmenter.setInputParams(scale=1 / 64, size=(30, 28))
    results["segment"] = segmenter.segment(image)
    results["predict"] = segmenter.predict(image)[0]
    points = dnn.KeypointsModel(read("chain"))
    points.setInputParams(1 / 64, (30, 28), (1, 2, 3))
    results["estimate"] = np.asarray(points.estimate(image, 0.4))
    reader = dnn.TextRecognitionModel(read("letters"))
    reader.setVocabulary(["a", "b", "c", "d", "e"])
    reader.setInputParams(1 / 64, (40, 9), (127, 127, 127))
    for kind in ("CTC-greedy", "CTC-prefix-beam-search"):
        reader.setDecodeType(kind)
        results[kind] = np.array(reader.recognize(image))
    reader.setDecodeOptsCTCPrefixBeamSearch(3, 4)
    results["beam"] = np.array(reader.recognize(image))
    return results
