"""crnn.caffe: text in pictures (Shi et al., 2015), and its loss (Graves et al., 2006)."""

from __future__ import annotations

TYPES = {
    "ContinuationIndicator": "continuation_indicator",
    "CtcLoss": "ctc_loss",
    "LabelsequenceAccuracy": "labelsequence_accuracy",
}
"""A layer type, and its module here."""

HOSTS = {
    "ContinuationIndicator",
    "CtcLoss",
    "LabelsequenceAccuracy",
}
"""Those that Python computes, in `hosts`."""
