"""Architectures of timm and transformers by way of ONNX, against onnxruntime.

    python -m benchmarks.onnx_families [NAME ...] [--dynamo] [--write]

Each has random weights, is exported with an open number of records (and an open length, where it
reads text), converted, and compared for three numbers of records and two lengths: the largest
difference as a share of the largest value.  Each is made by a process of its own, so that one that
fails or hangs costs its own row.  ``--write`` puts the result into docs/onnx-models.md.  Neither
package is a dependency: `pip install timm transformers onnxscript`.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.onnx_zoo import classifiers

LIMIT = 300
"""Seconds for one model."""
TOLERANCE = 1e-4
FOLDING = ("volo_d1_224", "MobileViTV2")
"""They have an operator that opset 17 lacks."""
COMMAND, END = "`python -m benchmarks.onnx_families --write`", "<!-- end of the families -->"
PAGE = Path(__file__).parents[1] / "docs" / "onnx-models.md"

PICTURES = (
    *("botnet26t_256", "coat_tiny", "coatnet_nano_rw_224", "convformer_s18", "convmixer_768_32"),
    *("convnextv2_atto", "crossvit_tiny_240", "cs3darknet_s", "darknet53", "davit_tiny"),
    *("deit3_small_patch16_224", "dla34", "dm_nfnet_f0", "dpn48b", "edgenext_xx_small"),
    *("efficientformerv2_s0", "efficientvit_b0", "fastvit_t8", "gc_efficientnetv2_rw_t"),
    *("ghostnetv2_100", "gmixer_24_224", "hgnet_tiny", "hiera_tiny_224", "hrnet_w18_small"),
    *("inception_resnet_v2", "lambda_resnet26t", "levit_128s", "maxxvit_rmlp_nano_rw_256"),
    *("mixnet_s", "mobilenetv4_conv_small", "mobileone_s0", "mobilevitv2_050", "mvitv2_tiny"),
    *("nasnetalarge", "nest_tiny", "nf_regnet_b0", "pit_ti_224", "poolformer_s12"),
    *("pvt_v2_b0", "regnetz_005", "repvgg_a0", "res2net50_14w_8s", "resnest14d", "resnetblur18"),
    *("resnetv2_50x1_bit", "rexnet_100", "selecsls42", "skresnet18", "swinv2_tiny_window8_256"),
    *("tinynet_e", "tresnet_m", "twins_svt_small", "visformer_tiny", "volo_d1_224", "vovnet39a"),
    *("xcit_nano_12_p16_224", "eva02_tiny_patch14_224", "focalnet_tiny_srf", "maxvit_nano_rw_256"),
    *("efficientformer_l1", "levit_conv_128s", "repvit_m0_9", "mambaout_femto", "starnet_s1"),
    *("tiny_vit_5m_224", "sequencer2d_s", "swiftformer_xs", "shvit_s1", "efficientvit_m0"),
    *("inception_next_atto", "caformer_s18", "resmlp_12_224", "cait_xxs24_224", "convit_tiny"),
    *("tnt_s_patch16_224", "nextvit_small", "vitamin_small_224", "hieradet_small"),
    *("repghostnet_050", "gcvit_xxtiny", "vit_relpos_small_patch16_224", "mobilevit_xxs"),
    *("vit_base_patch16_siglip_224", "bat_resnext26ts", "halonet26t", "eca_botnext26ts_256"),
    *("beitv2_base_patch16_224", "flexivit_small", "rdnet_tiny", "csatv2"),
    *("coat_lite_mini", "convnext_zepto_rms", "cpubone_t0", "crossvit_9_240", "cspnext_tiny"),
    *(
        "densenet121",
        "edgenext_x_small",
        "efficientnet_lite0",
        "efficientvim_m1",
        "efficientvit_b1",
    ),
    *("fasternet_t0", "fastvit_t12", "gcresnext26ts", "gmlp_ti16_224", "hardcorenas_a"),
    *("hgnetv2_b0", "iformer_t", "inception_next_tiny", "inception_v3", "lcnetv2_small"),
    *("legacy_seresnet18", "lowformer_b0", "maxvit_tiny_rw_224", "mnasnet_small"),
    *("mobilenetv4_hybrid_medium", "pit_s_distilled_224", "poolformerv2_s12", "pvt_v2_b1"),
    *("regnety_004", "sebotnet33ts_256", "shvit_s2", "spnasnet_100", "swin_s3_tiny_224"),
    *("swinv2_cr_tiny_ns_224", "tf_efficientnetv2_b0", "tnt_s_legacy_patch16_224"),
    *("twins_pcpvt_small", "vit_small_patch14_reg4_dinov2", "vit_tiny_r_s16_p8_224", "xception41p"),
)
"""Of timm."""

BASE = {"hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4}
TEXT = {**BASE, "intermediate_size": 128, "vocab_size": 200, "max_position_embeddings": 66}
CAUSAL = {**TEXT, "num_key_value_heads": 2, "use_cache": False}
FEW_WORDS = {**CAUSAL, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}
WIDTHS = {"vocab_size": 200, "d_model": 64, "n_head": 4, "d_inner": 128}
T5 = {"vocab_size": 200, "d_model": 64, "d_kv": 16, "d_ff": 128, "num_layers": 2, "num_heads": 4}
BOTH = {**T5, "use_cache": False}
HEADS = {**CAUSAL, "head_dim": 16}
RELATIVE = {"relative_attention": True, "pos_att_type": ["p2c", "c2p"]}
IMAGE = {**BASE, "intermediate_size": 128, "image_size": 64, "patch_size": 16}
STAGES = {"hidden_sizes": [16, 32, 40, 64], "depths": [1, 1, 1, 1]}
SOUND = {
    **BASE,
    "intermediate_size": 128,
    "conv_dim": [32] * 7,
    "num_conv_pos_embeddings": 16,
    "num_conv_pos_embedding_groups": 4,
}
KERNELS = {"conv_kernel": [10, 3, 3, 3, 3, 2, 2]}
SQUEEZED = {**SOUND, "squeeze_factor": 2, "conv_stride": [5, 2, 2, 2, 2, 2, 2], **KERNELS}
DEBERTA = {**TEXT, **RELATIVE, "position_buckets": 16, "norm_rel_ebd": "layer_norm"}
WINDOWS = {"image_size": 64, "embed_dim": 16, "num_heads": [2, 4], "window_size": 4}
PARTS = {
    "encoder_layers": 2,
    "encoder_attention_heads": 4,
    "encoder_ffn_dim": 128,
    "decoder_layers": 2,
    "decoder_attention_heads": 4,
    "decoder_ffn_dim": 128,
    "vocab_size": 200,
    "d_model": 64,
    "max_position_embeddings": 66,
    "use_cache": False,
    "pad_token_id": 1,
    "bos_token_id": 0,
    "eos_token_id": 2,
    "decoder_start_token_id": 2,
}
ROTARY = {
    "vocab_size": 200,
    "n_embd": 64,
    "n_layer": 2,
    "n_head": 4,
    "n_positions": 66,
    "rotary_dim": 8,
    "use_cache": False,
}
TEXTS: Mapping[str, dict[str, Any]] = {
    **dict.fromkeys(("Bert", "Roberta", "Electra", "Ernie", "XLMRoberta", "RoFormer"), TEXT),
    **dict.fromkeys(("MegatronBert", "MPNet", "LayoutLM", "Nystromformer", "ConvBert"), TEXT),
    "Albert": {**TEXT, "embedding_size": 32},
    "DebertaV2": DEBERTA,
    "Deberta": {**TEXT, **RELATIVE, "max_relative_positions": 32},
    "MobileBert": {
        **TEXT,
        "intermediate_size": 64,
        "embedding_size": 32,
        "intra_bottleneck_size": 32,
        "true_hidden_size": 32,
    },
    "SqueezeBert": {**TEXT, "embedding_size": 64},
    "ModernBert": {**TEXT, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2},
    "DistilBert": {"vocab_size": 200, "dim": 64, "n_layers": 2, "n_heads": 4, "hidden_dim": 128},
    "XLNet": {**WIDTHS, "n_layer": 2},
    "Funnel": {**WIDTHS, "block_sizes": [1, 1], "d_head": 16, "num_decoder_layers": 1},
    "Longformer": {**TEXT, "attention_window": 4},
    "BigBird": {**TEXT, "attention_type": "original_full"},
    **dict.fromkeys(("Data2VecText", "Splinter", "RemBert", "RoCBert", "NomicBert"), TEXT),
    **dict.fromkeys(("Yoso", "Camembert", "IBert"), TEXT),
    **dict.fromkeys(("T5Encoder", "MT5Encoder", "UMT5Encoder"), T5),
    "GPT2": {"vocab_size": 200, "n_embd": 64, "n_layer": 2, "n_head": 4, "use_cache": False},
    **dict.fromkeys(("Llama", "Qwen2", "Mistral", "Phi", "StableLm", "Starcoder2"), CAUSAL),
    **dict.fromkeys(("Olmo2", "Granite", "GPTNeoX", "EuroBert", "Phi3"), FEW_WORDS),
    **dict.fromkeys(("Gemma", "Gemma2", "Qwen3"), HEADS),
    "SmolLM3": {**HEADS, "pad_token_id": 0},
    "Esm": {**TEXT, "pad_token_id": 1, "mask_token_id": 2},
    "OPT": {**TEXT, "ffn_dim": 128, "word_embed_proj_dim": 64, "use_cache": False},
    "Bloom": {"vocab_size": 200, "hidden_size": 64, "n_layer": 2, "n_head": 4, "use_cache": False},
    "CLIPText": {**TEXT, "eos_token_id": 199},
    **dict.fromkeys(("XLMRobertaXL", "RobertaPreLayerNorm", "Gte"), TEXT),
    **dict.fromkeys(("Persimmon", "Arcee", "Cwm"), CAUSAL),
    **dict.fromkeys(("Olmo", "Olmo3", "ModernBertDecoder"), FEW_WORDS),
    **dict.fromkeys(("SeedOss", "Exaone4"), HEADS),
    **dict.fromkeys(("GPTJ", "CodeGen"), ROTARY),
    "BioGpt": FEW_WORDS,
    "Mpt": {
        "vocab_size": 200,
        "d_model": 64,
        "n_layers": 2,
        "n_heads": 4,
        "max_seq_len": 66,
        "use_cache": False,
    },
}
PAIRS: Mapping[str, dict[str, Any]] = {
    **dict.fromkeys(("Bart", "MBart", "Marian", "Pegasus", "PLBart", "M2M100"), PARTS),
    **dict.fromkeys(("Blenderbot", "BlenderbotSmall"), PARTS),
    **dict.fromkeys(("T5", "UMT5"), BOTH),
}
"""Those with a decoder, which reads a text of its own."""
IMAGES: Mapping[str, dict[str, Any]] = {
    **dict.fromkeys(("ViT", "DeiT", "Dinov2", "Beit", "CLIPVision", "SiglipVision"), IMAGE),
    **dict.fromkeys(("Segformer", "PoolFormer", "PvtV2"), STAGES),
    "ResNet": {**STAGES, "embedding_size": 16},
    "ConvNextV2": STAGES,
    "Swin": {**WINDOWS, "depths": [2, 2]},
    "Swinv2": {**WINDOWS, "depths": [1, 1]},
    "MobileViT": {"image_size": 64},
    **dict.fromkeys(("DINOv3ViT", "ViTMSN", "Data2VecVision"), IMAGE),
    **dict.fromkeys(("Dinov2WithRegisters", "IJepa", "Pixio"), IMAGE),
    "FocalNet": {"image_size": 64, "embed_dim": 16, "depths": [1, 1], "focal_levels": [2, 2]},
    "Pvt": {**STAGES, "image_size": 64},
    "Cvt": {"depth": [1, 1, 1]},
    "Levit": {"image_size": 64, "hidden_sizes": [32, 48, 64], "depths": [1, 1, 1]},
    "MobileViTV2": {"image_size": 64, "width_multiplier": 0.5},
}
SOUNDS: Mapping[str, dict[str, Any]] = {
    **dict.fromkeys(("Wav2Vec2", "Hubert", "WavLM", "UniSpeech", "UniSpeechSat"), SOUND),
    **dict.fromkeys(("Data2VecAudio", "Wav2Vec2Conformer"), SOUND),
    "SEW": SQUEEZED,
    "SEWD": {**SQUEEZED, "position_buckets": 16, "max_position_embeddings": 64},
}
"""Of transformers: what its configuration is given."""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    names = [*PICTURES, *TEXTS, *PAIRS, *IMAGES, *SOUNDS]
    parser.add_argument("names", nargs="*", default=names)
    parser.add_argument("--dynamo", action="store_true", help="export by torch.export")
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--one", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        print(json.dumps(tried(options.names[0], options.dynamo)))
        return 0
    found = {}
    for name in options.names:
        found[name] = _apart(name, options.dynamo)
        print(f"{name}: {found[name]}", flush=True)
    text = summary(found)
    print(text)
    if options.write:
        page = PAGE.read_text()
        begin, end = page.index(COMMAND) + len(COMMAND), page.index(END)
        PAGE.write_text(f"{page[:begin]}\n\n{text}\n\n{page[end:]}")
    return 0


def _apart(name: str, dynamo: bool) -> float | str:
    command = [sys.executable, "-m", "benchmarks.onnx_families", "--one", name]
    try:
        done = subprocess.run(
            [*command, *(["--dynamo"] if dynamo else [])],
            capture_output=True,
            text=True,
            timeout=LIMIT,
        )
    except subprocess.TimeoutExpired:
        return f"it took more than {LIMIT} s"
    lines = done.stdout.strip().splitlines()  # exporters print, too
    if done.returncode or not lines:
        return f"its process ended with {done.returncode}: {done.stderr.strip()[-200:]}"
    found: float | str = json.loads(lines[-1])
    return found


def summary(found: Mapping[str, float | str]) -> str:
    """Which are right, and why the others are not."""
    right = [name for name, one in found.items() if not isinstance(one, str) and one < TOLERANCE]
    worst = max((one for one in found.values() if not isinstance(one, str)), default=0.0)
    pictures = [name for name in right if name in PICTURES]
    texts = [name for name in right if name not in PICTURES]
    lines = [
        f"| {len(right)} of {len(found)} right, the worst to {worst:.1g} | |",
        "|---|---|",
        f"| timm | {', '.join(pictures)} |",
        f"| transformers | {', '.join(texts)} |",
    ]
    others = {name: one for name, one in found.items() if name not in right}
    if others:
        lines += ["", "| model | what is said |", "|---|---|"]
        lines += [f"| {name} | {one} |" for name, one in others.items()]
    return "\n".join(lines)


def tried(name: str, dynamo: bool) -> float | str:
    """The largest difference, or why there is none."""
    warnings.simplefilter("ignore")
    classifiers()
    import torch

    torch.manual_seed(1)
    model, feeds = made(name)
    lively(model)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.onnx"
        try:
            export(model, path, feeds, dynamo, 18 if name in FOLDING else 17)
        except Exception as error:  # the exporter's
            return f"the exporter: {str(error).strip().splitlines()[0][:120]}"
        try:
            return compared(path, feeds)
        except Exception as error:  # the page says it
            return str(error).splitlines()[0].removeprefix(f"{path}: ")


def made(name: str) -> tuple[Any, dict[str, Any]]:
    """A model whose first output by position is meant, and what it reads, two records."""
    import torch

    if name in PICTURES:
        model = import_module("timm").create_model(name, pretrained=False).eval()
        return model, {"data": torch.randn(2, *model.default_cfg["input_size"])}
    transformers = import_module("transformers")
    given = {**TEXTS, **PAIRS, **IMAGES, **SOUNDS}[name]
    config = getattr(transformers, f"{name.removesuffix('Encoder')}Config")(**given)
    model = getattr(transformers, f"{name}Model")(config)
    if name in TEXTS or name in PAIRS:
        mask = torch.ones(2, 12, dtype=torch.long)
        mask[1, 9:] = 0
        feeds = {"input_ids": torch.randint(5, 199, (2, 12)), "attention_mask": mask}
        if name in PAIRS:
            feeds["decoder_input_ids"] = torch.randint(5, 199, (2, 12))
    elif name in IMAGES:
        feeds = {"pixel_values": torch.randn(2, 3, 64, 64)}
    else:
        feeds = {"input_values": torch.randn(2, 4000)}
    return _positional(model.eval(), list(feeds)), feeds


def _positional(model: Any, names: list[str]) -> Any:
    import torch

    class Positional(torch.nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.model = model

        def forward(self, *given: Any) -> Any:
            return self.model(**dict(zip(names, given, strict=True)), return_dict=False)[0]

    return Positional().eval()


def lively(model: Any) -> None:
    """Statistics, factors and biases that are not those of a fresh model."""
    import torch

    random = torch.Generator().manual_seed(3)
    for module in model.modules():
        if getattr(module, "running_var", None) is not None:
            module.running_mean.normal_(0, 0.1, generator=random)
            module.running_var.uniform_(0.5, 1.5, generator=random)
    for value in model.parameters():
        if value.ndim and not value.any():
            value.data.normal_(0, 0.02, generator=random)
        elif value.ndim == 1 and float(value.abs().max()) < 1e-3:
            value.data.uniform_(0.1, 0.5, generator=random)


def export(model: Any, path: Path, feeds: Mapping[str, Any], dynamo: bool, opset: int = 17) -> None:
    import torch

    is_text = "input_ids" in feeds
    axes = {0: "batch", 1: "sequence"} if is_text else {0: "batch"}
    how: dict[str, Any] = {"dynamic_axes": dict.fromkeys(feeds, axes), "opset_version": opset}
    if dynamo:
        dims = tuple(dict.fromkeys(axes, torch.export.Dim.DYNAMIC) for _ in feeds)
        how = {"dynamic_shapes": dims if "data" in feeds else (dims,), "verbose": False}
    with torch.no_grad():
        torch.onnx.export(
            model, tuple(feeds.values()), str(path), dynamo=dynamo, input_names=list(feeds), **how
        )


def compared(path: Path, feeds: Mapping[str, Any]) -> float:
    """The largest difference to onnxruntime for two records, one and three, and another length."""
    import sparknet
    from sparknet.onnx.onnxruntime_check import largest_difference, run

    net = sparknet.Net(str(path))
    worst = 0.0
    for records, length in ((2, None), (1, None), (3, 7 if "input_ids" in feeds else None)):
        rows = {
            name: np.concatenate([value.numpy()] * 2)[:records, :length]
            if length
            else np.concatenate([value.numpy()] * 2)[:records]
            for name, value in feeds.items()
        }
        want = run(path, rows)
        got = net.forward(rows, outputs=list(want))
        worst = max(worst, largest_difference(got, want))
    return worst


if __name__ == "__main__":
    sys.exit(main())
