"""Digits drawn by numpy: a 5 x 7 font, enlarged, shifted and sprinkled with noise."""

import numpy as np

FONT = [
    "01110 10001 10011 10101 11001 10001 01110",
    "00100 01100 00100 00100 00100 00100 01110",
    "01110 10001 00001 00110 01000 10000 11111",
    "11110 00001 00001 01110 00001 00001 11110",
    "00010 00110 01010 10010 11111 00010 00010",
    "11111 10000 11110 00001 00001 10001 01110",
    "00110 01000 10000 11110 10001 10001 01110",
    "11111 00001 00010 00100 01000 01000 01000",
    "01110 10001 10001 01110 10001 10001 01110",
    "01110 10001 10001 01111 00001 00010 01100",
]
GLYPHS = np.array([[list(map(int, row)) for row in glyph.split()] for glyph in FONT])


def draw(count, size=28, seed=0):
    """Images (count x 1 x size x size, uint8) and their labels."""
    rng = np.random.RandomState(seed)
    labels = rng.randint(10, size=count)
    images = rng.randint(0, 60, size=(count, 1, size, size))
    factor = size // 9
    height, width = 7 * factor, 5 * factor
    for image, label in zip(images, labels, strict=True):
        top = (size - height) // 2 + rng.randint(-1, 2)
        left = (size - width) // 2 + rng.randint(-1, 2)
        glyph = np.kron(GLYPHS[label], np.ones((factor, factor), int))
        image[0, top : top + height, left : left + width] += rng.randint(120, 190) * glyph
    return images.astype(np.uint8), labels
