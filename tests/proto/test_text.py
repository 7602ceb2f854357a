"""The text format: the dialect of Caffe's C++ parser, and text that any Caffe reads."""

import math
import os
import time
from contextlib import suppress

import pytest
from google.protobuf import descriptor_pb2, text_format
from hypothesis import given, settings
from hypothesis import strategies as st

from sparknet.errors import FileError, TextError
from sparknet.proto import caffe_pb2, format_text, parse_text, read_text, write_text
from sparknet.proto.text import short_float
from tests.goldens import GOLDENS, cases, index
from tests.proto.messages import MESSAGES, messages

Net = caffe_pb2.NetParameter
Blob = caffe_pb2.BlobProto
SYNTAX, ERRORS = GOLDENS / "formats" / "syntax", GOLDENS / "errors"
# Parses, and is refused by the upgrade (test_upgrade.py).
LATER = {"text_layer_and_layers"}
REFUSED = [
    case
    for case in index("errors")
    if case["name"].startswith("text_") and case["name"] not in LATER and case["action"] == "net"
]
# Where Caffe's own place differs: it looks at the token after the one at fault.
PLACES = {
    "text_unbalanced": (2, 1),
    "text_unknown_field": (1, 32),
    "text_unknown_subfield": (1, 51),
    "text_bad_enum": (1, 57),
    "text_quoted_enum": (1, 57),
    "text_negative_unsigned": (1, 74),
    "text_float_for_int": (1, 74),
    "text_twice": (1, 19),
    "text_submessage_twice": (1, 68),
    "text_no_colon": (1, 6),
    "text_unterminated_string": (1, 7),
    "text_unquoted_string": (1, 15),
    "text_plus_sign": (1, 54),
    "text_hex_float": (1, 54),
    "text_trailing_comma": (1, 32),
    "text_bad_bool": (1, 17),
    "text_binary": (2, 1),
    "text_required_missing": (0, 0),
}


def same(got, want):
    return bool(
        got.SerializeToString(deterministic=True) == want.SerializeToString(deterministic=True)
    )


@cases("formats/syntax")
def test_unusual_spelling(case):
    message_class = getattr(caffe_pb2, case["message"])
    got = read_text(SYNTAX / f"{case['name']}.in.prototxt", message_class)
    assert same(got, read_text(SYNTAX / f"{case['name']}.out.prototxt", message_class))


@pytest.mark.parametrize("case", REFUSED, ids=lambda case: str(case["name"]))
def test_refuses_what_caffe_refuses(case):
    with pytest.raises(TextError) as raised:
        read_text(ERRORS / case["file"], Net)
    assert case["file"] in str(raised.value)
    assert (raised.value.line, raised.value.column) == PLACES[case["name"]]


def test_every_net_of_the_vectors_parses_as_protobuf_parses_it():
    paths = [p for p in GOLDENS.rglob("*.prototxt") if "syntax" not in str(p)]
    nets = [p for p in paths if "errors" not in p.parts and "solver" not in p.name]
    assert len(nets) > 500
    for path in nets:
        assert same(read_text(path, Net), text_format.Parse(path.read_text(), Net())), path


@pytest.mark.parametrize("name", [case["name"] for case in index("formats/netspec")])
def test_writes_what_protobuf_writes(name):
    path = GOLDENS / "formats" / "netspec" / f"{name}.prototxt"
    assert format_text(read_text(path, Net)) == path.read_text()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("layer { nam: 3 }", "<text>:1:9: LayerParameter has no field 'nam'; did you mean 'name'"),
        ('name: "a"\n\n  naem: "b"', "<text>:3:3: NetParameter has no field 'naem'"),
        ("layer { pooling_param { kernel: 3 } }", "did you mean 'kernel_size'"),
        ("layer { type: ReLU }", "1:15: expected a quoted string for 'type', found 'ReLU'"),
        ("layer { phase: TESTS }", "'TESTS' is no value of 'phase'; did you mean 'TEST'"),
        ("layer { phase: 2 }", "1:16: 2 is no value of 'phase'"),
        ("layer { phase: -1 }", "1:16: -1 is no value of 'phase'"),
        ("input_dim: 2147483648", "'2147483648' is out of range for 'input_dim'"),
        ("input_dim: -2147483649", "out of range"),
        ("input_dim: 08", "'08' begins with zero, so only octal digits may follow"),
        ("input_dim: 0x", "'0x' begins no number"),
        ("input_dim: 5x", "'5x' begins no number"),
        ("input_dim: 1 input_dim: --1", "expected an integer for 'input_dim', found '-'"),
        ("force_backward: 2", "'2' is out of range for 'force_backward'"),
        ("force_backward: TRUE", "expected true or false"),
        ("layer { loss_weight: 1.2.3 }", "'1.2.' begins no number"),
        ("layer { loss_weight: 017 }", "expected a decimal number"),
        ("layer { loss_weight: .e1 }", "expected a number for 'loss_weight', found '.'"),
        ("layer { loss_weight: infinite }", "expected a number"),
        ('name: "a\\q"', "'\\q' in a string begins no escape"),
        ('name: "\\x"', "begins no escape"),
        ('name: "\\377"', "the string of 'name' is not UTF-8"),
        ("name: 'a", "a string is not closed on its line"),
        ('name: "a";; name: "b"', "expected a field of NetParameter, found ';'"),
        ("input: [,]", "expected a quoted string for 'input', found ','"),
        ("name: ['a']", "expected a quoted string for 'name', found '['"),
        ("layer 3", "expected '{' after 'layer', found '3'"),
        ("layer: { ]", "expected a field of LayerParameter or '}', found ']'"),
        ("layer < }", "or '>', found '}'"),
        ("}", "expected a field of NetParameter, found '}'"),
        ("[caffe.x]: 1", "expected a field of NetParameter, found '['"),
        ("1: 2", "expected a field of NetParameter, found '1'"),
        ("name", "expected ':' after 'name', found the end of the text"),
        ("name: \u00e9", "1:7: character '\\xe9' outside a string or comment"),
        ("name: 'x' \x00", "control character '\\x00'"),
        ("# \x00", "control character"),
        ("input_dim: " + "9" * 5000, "a number of 5000 digits"),
    ],
)
def test_refusals(text, message):
    with pytest.raises(TextError) as raised:
        parse_text(text, Net)
    assert message in str(raised.value)
    assert len(str(raised.value)) < 300


def test_accepted_spellings():
    net = parse_text(
        "\ufeffinput: [] input_dim: [0x10, 010, -0] layer: < name: 'a' \"b\"\n'c'; >,"
        " layer { loss_weight: [1f, 1.F, .5e+1, -Infinity, 1e400, 12345678901234567890123] }"
        " force_backward: t#comment",
        Net,
    )
    assert list(net.input_dim) == [16, 8, 0]
    assert net.layer[0].name == "abc"
    assert list(net.layer[1].loss_weight)[:5] == [1, 1, 5, -math.inf, math.inf]
    assert net.layer[1].loss_weight[5] == pytest.approx(1.2345678901234568e22)
    assert net.force_backward


def test_strings():
    datum = parse_text(r'data: "\a\b\f\n\r\t\v\\\?\'\"\0\12\377\xfF\u00e9"', caffe_pb2.Datum)
    assert datum.data == b"\a\b\f\n\r\t\v\\?'\"\x00\x0a\xff\xff\xc3\xa9"
    net = parse_text(r'name: "\U0001F600 \ud83d\ude00 é"', Net)
    assert net.name == "\U0001f600 \U0001f600 \u00e9"
    with pytest.raises(TextError, match="not UTF-8"):
        parse_text(r'name: "\ud800"', Net)
    with pytest.raises(TextError, match="surrogate"):
        parse_text('name: "\ud800"', Net)


def test_comments_in_any_encoding():
    raw = '# 网络\nname: "a"'.encode("gbk")
    assert parse_text(raw, Net).name == "a"
    with pytest.raises(TextError, match="not UTF-8"):
        parse_text(b'name: "\xcd\xf8"', Net)
    assert parse_text(b'data: "\xcd\xf8"', caffe_pb2.Datum).data == b"\xcd\xf8"


def test_missing_required_fields_are_named_by_path():
    with pytest.raises(TextError, match=r"layer\[1\].clip_param.max"):
        parse_text("layer { } layer { clip_param { min: 0 } }", Net)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.1, "0.1"),
        (2.0, "2.0"),
        (1e-8, "1e-08"),
        (1 / 3, "0.33333334"),
        (16777216.0, "16777216.0"),
        (3.4028234663852886e38, "3.4028235e+38"),
        (1.401298464324817e-45, "1.4013e-45"),
        (-0.0, "-0.0"),
        (math.inf, "inf"),
        (-math.inf, "-inf"),
        (math.nan, "nan"),
    ],
)
def test_numbers_are_as_short_as_they_go(value, text):
    blob = Blob(data=[value])
    assert short_float(blob.data[0]) == text
    assert same(parse_text(f"data: {text}", Blob), blob) or math.isnan(value)


def test_strings_are_written_in_ascii():
    assert format_text(Net(name='it\'s "é"\n\x01')) == (
        'name: "it\\\'s \\"\\303\\251\\"\\n\\001"\n'
    )


@settings(max_examples=200)
@given(messages())
def test_any_message_survives(message):
    text = format_text(message)
    back = parse_text(text, type(message))
    assert format_text(back) == text
    assert text_format.MessageToString(back) == text_format.MessageToString(message)
    if "3.4028235e+38" not in text:  # infinite to protobuf 4 and 5 in pure Python
        theirs = text_format.Parse(text, type(message)())
        assert text_format.MessageToString(theirs) == text_format.MessageToString(message)


WORDS = ["layer", "name", "pooling_param", "pool", "MAX", "data", "nan", "1", "0x1", "1.5f"]
WORDS += ["{", "}", "<", ">", "[", "]", ":", ",", ";", "-", '"a"', "'", "\\", "#", "\n", "\0", "é"]


@settings(max_examples=300)
@given(
    st.sampled_from(MESSAGES),
    st.text(max_size=60)
    | st.binary(max_size=60)
    | st.lists(st.sampled_from(WORDS), max_size=30).map(" ".join),
)
def test_any_text_is_read_or_refused(message_class, text):
    try:
        message = parse_text(text, message_class)
    except TextError:
        return
    assert format_text(parse_text(format_text(message), message_class)) == format_text(message)


@pytest.mark.parametrize(
    "text",
    [
        " " * 400_000,
        "#\n" * 200_000,
        '"' + "a" * 400_000,
        '"' + "\\a" * 200_000,
        "layer {" * 50_000,
        "data: 1 " * 50_000,
        "data: [" + "0.25," * 80_000 + "1]",
        "1" * 400_000,
        "x" * 400_000,
        "name: " + "'a' " * 100_000,
    ],
    ids=lambda text: str(text)[:8],
)
def test_time_is_linear(text):
    """What is not linear takes minutes of processor time here; what is, under a second."""
    start = time.process_time()
    for message_class in (Blob, Net):
        with suppress(TextError):
            parse_text(text, message_class)
    assert time.process_time() - start < 20


def test_messages_lie_only_so_deep():
    text = "nested_type {" * 200 + "}" * 200
    with pytest.raises(TextError, match="more than 100 deep"):
        parse_text(text, descriptor_pb2.DescriptorProto)


def test_files(tmp_path):
    path = tmp_path / "net.prototxt"
    write_text(path, Net(name="a"))
    write_text(path, Net(name="b"))
    assert path.read_text() == 'name: "b"\n'
    assert read_text(path, Net).name == "b"
    assert os.listdir(tmp_path) == ["net.prototxt"]  # noqa: PTH208
    for absent in (tmp_path / "no.prototxt", tmp_path, tmp_path / "a\0b"):
        with pytest.raises(FileError, match=r"no such file|is a folder|null"):
            read_text(absent, Net)
    with pytest.raises(FileError, match="no such file"):
        write_text(tmp_path / "no" / "net.prototxt", Net())
