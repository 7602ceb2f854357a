import pytest

from sparknet.proto.suggest import did_you_mean


@pytest.mark.parametrize(
    ("word", "known", "said"),
    [
        ("kernel_sise", ["kernel_size", "pad"], "; did you mean 'kernel_size'?"),
        ("CONV", ["conv1", "pool"], "; did you mean 'conv1'?"),
        ("kernel", ["kennel", "kernel_size"], "; did you mean 'kernel_size'?"),
        ("relu", ["ReLU", "ELU"], "; did you mean 'ReLU'?"),
        (2.5, ["conv1"], ""),
        ("zzz", ["conv1"], ""),
        ("x" * 10**6, ["conv1"], ""),
        ("", [], ""),
    ],
)
def test_did_you_mean(word, known, said):
    assert did_you_mean(word, known) == said
