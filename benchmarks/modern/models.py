"""The models as ONNX files of a fixed batch, with random weights, and their inputs.

``python -m benchmarks.modern.models FOLDER NAME BATCH`` writes NAME-BATCH.onnx and NAME-BATCH.npz.
It needs torch, torchvision and transformers, and nothing of sparknet's.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

Arrays = dict[str, Any]
TOKENS, WORDS = 128, 30522


def images(height: int = 224, width: int = 224) -> Callable[[int], Arrays]:
    def made(batch: int) -> Arrays:
        rng = np.random.default_rng(1)
        return {"data": rng.standard_normal((batch, 3, height, width)).astype(np.float32)}

    return made


def sentences(batch: int) -> Arrays:
    """Sentences of several lengths, padded to the longest."""
    rng = np.random.default_rng(1)
    lengths = np.linspace(TOKENS, TOKENS // 2, batch).astype(int)
    mask = (np.arange(TOKENS) < lengths[:, None]).astype(np.int64)
    return {"input_ids": rng.integers(1, WORDS, (batch, TOKENS)) * mask, "attention_mask": mask}


def sounds(batch: int) -> Arrays:
    rng = np.random.default_rng(1)
    return {"data": rng.standard_normal((batch, 80, 3000)).astype(np.float32)}


def torchvision(name: str) -> Callable[[], Any]:
    def made() -> Any:
        from benchmarks.onnx_zoo import lively

        return lively(name)

    return made


def minilm() -> Any:
    """BERT of the size of all-MiniLM-L6, the most used of the small sentence embeddings."""
    from transformers import BertConfig, BertModel

    sizes = {"hidden_size": 384, "num_hidden_layers": 6, "intermediate_size": 1536}
    return _text(BertModel(BertConfig(**sizes), add_pooling_layer=False))


def distilbert() -> Any:
    from transformers import DistilBertConfig, DistilBertModel

    return _text(DistilBertModel(DistilBertConfig()))


def whisper() -> Any:
    """The encoder of Whisper-tiny."""
    from transformers import WhisperConfig
    from transformers.models.whisper.modeling_whisper import WhisperEncoder

    sizes = {"d_model": 384, "encoder_layers": 4, "encoder_attention_heads": 6}
    return _first(WhisperEncoder(WhisperConfig(**sizes, encoder_ffn_dim=1536)))


def recogniser() -> Any:
    """A reader of lines of text: a mobile net over an image of 48 x 320, two LSTMs, and a class for
    each column, as CRNN and PP-OCR's recogniser are."""
    import torch
    from torch import nn

    class Block(nn.Sequential):  # type: ignore[misc]
        def __init__(self, before: int, after: int, stride: tuple[int, int]) -> None:
            super().__init__(
                nn.Conv2d(before, before, 3, stride, 1, groups=before, bias=False),
                nn.BatchNorm2d(before),
                nn.Hardswish(),
                nn.Conv2d(before, after, 1, bias=False),
                nn.BatchNorm2d(after),
                nn.Hardswish(),
            )

    class Reader(nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            down = [(1, 1), (2, 1), (1, 1), (2, 1), *[(1, 1)] * 3, (2, 1), (1, 2)]
            widths = [32, 64, 128, 128, *[256] * 4, 512, 512]
            blocks = [
                Block(before, after, stride)
                for before, after, stride in zip(widths[:-1], widths[1:], down, strict=True)
            ]
            self.body = nn.Sequential(nn.Conv2d(3, 32, 3, 2, 1), nn.Hardswish(), *blocks)
            self.rows = nn.LSTM(512, 96, num_layers=2, bidirectional=True, batch_first=True)
            self.end = nn.Linear(192, 6625)

        def forward(self, data: Any) -> Any:
            columns = self.body(data).mean(2).transpose(1, 2)
            return self.end(self.rows(columns)[0]).softmax(2)

    torch.manual_seed(1)
    return Reader()


def _text(model: Any) -> Any:
    from torch import nn

    class Text(nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.model = model

        def forward(self, input_ids: Any, attention_mask: Any) -> Any:
            return self.model(input_ids=input_ids, attention_mask=attention_mask)[0]

    return Text()


def _first(model: Any) -> Any:
    from torch import nn

    class First(nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.model = model

        def forward(self, data: Any) -> Any:
            return self.model(data)[0]

    return First()


@dataclass(frozen=True)
class Modern:
    """A model and what it reads."""

    make: Callable[[], Any]
    inputs: Callable[[int], Arrays]
    batch: int


MODELS = {
    "efficientnet_b0": Modern(torchvision("efficientnet_b0"), images(), 8),
    "minilm": Modern(minilm, sentences, 8),
    "vit_b_16": Modern(torchvision("vit_b_16"), images(), 4),
    "convnext_tiny": Modern(torchvision("convnext_tiny"), images(), 4),
    "mobilenet_v3_large": Modern(torchvision("mobilenet_v3_large"), images(), 8),
    "regnet_y_400mf": Modern(torchvision("regnet_y_400mf"), images(), 8),
    "swin_t": Modern(torchvision("swin_t"), images(), 4),
    "distilbert": Modern(distilbert, sentences, 8),
    "whisper_encoder": Modern(whisper, sounds, 2),
    "recogniser": Modern(recogniser, images(48, 320), 8),
}


def export(folder: Path, name: str, batch: int, lengths: str = "") -> None:
    """Write the model and its inputs; with `lengths` of any number of texts of any length."""
    import torch

    torch.manual_seed(1)
    described = MODELS[name]
    inputs = described.inputs(batch)
    given = tuple(torch.from_numpy(value) for value in inputs.values())
    torch.onnx.export(
        described.make().eval(),
        given,
        folder / f"{name}-{batch}.onnx",
        dynamo=False,
        opset_version=17,
        input_names=list(inputs),
        output_names=["output"],
        dynamic_axes={key: {0: "batch", 1: "length"} for key in inputs} if lengths else None,
    )
    np.savez(folder / f"{name}-{batch}.npz", **inputs)


if __name__ == "__main__":
    export(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]), *sys.argv[4:])
