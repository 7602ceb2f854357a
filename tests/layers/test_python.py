import sys
from types import ModuleType

import numpy as np
import pytest

from sparknet.errors import LayerError
from sparknet.layers.user_layer import ShapeBlob, UserLayer, caffe_importable, use_caffe
from tests.layers.nets import layer, plan, shapes_of_params

SOURCE = """
import caffe

class Double(caffe.Layer):
    setups = 0

    def setup(self, bottom, top):
        Double.setups += 1
        self.blobs.add_blob(2, 3)
        self.blobs[0].data[...] = 7
        self.seen = (self.param_str, self.phase, len(bottom), len(top))

    def reshape(self, bottom, top):
        b = bottom[0]
        assert b.data.shape == tuple(b.shape) and not b.data.any()
        top[0].reshape(2 * b.num, b.channels, b.height, b.count)

class Plain:
    def __init__(self, parameter):
        pass
    def setup(self, bottom, top):
        pass
    def reshape(self, bottom, top):
        top[0].reshape(*bottom[0].shape)

class Odd(Exception):
    def __init__(self, one, two):
        super().__init__(one, two)

class Fails(caffe.Layer):
    def setup(self, bottom, top):
        import caffe
        raise {"key": KeyError("k"), "odd": Odd(1, 2), "os": OSError(2, "gone")}[self.param_str]

class Huge(caffe.Layer):
    def reshape(self, bottom, top):
        top[0].reshape(2**20, 2**20)
"""


@pytest.fixture(autouse=True)
def module(tmp_path, monkeypatch):
    (tmp_path / "my_layers_for_test.py").write_text(SOURCE)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "my_layers_for_test", raising=False)
    return "my_layers_for_test"


def _options(name: str, text: str = "", module: str = "my_layers_for_test") -> str:
    return f"python_param {{ module: '{module}' layer: '{name}' param_str: '{text}' }}"


def test_setup_once_reshape_each_time():
    made = layer("Python", _options("Double", "hello"))
    found = made.plan([(2, 3, 4)])
    assert found.tops == ((4, 3, 4, 24),)
    assert shapes_of_params(found) == [(2, 3)]
    assert (found.values["blobs"][0] == np.full((2, 3), 7)).all()
    assert made.plan([(1,)]).tops == ((2, 1, 1, 1),)
    assert made.instance.seen == ("hello", made.phase, 1, 1)
    assert made.instance.setups == 1
    assert "caffe" not in sys.modules


def test_class_without_the_base():
    assert plan("Python", _options("Plain"), (2, 3)).tops == ((2, 3),)


@pytest.mark.parametrize(
    ("options", "kind", "says"),
    [
        (_options("X", module="no_such_module"), ModuleNotFoundError, "no_such_module"),
        (_options("X"), AttributeError, "has no attribute 'X'"),
        (_options("Fails", "key"), KeyError, "KeyError: 'k'"),
        (_options("Fails", "os"), OSError, "gone"),
        (_options("Fails", "odd"), Exception, "Odd"),
        (_options("Huge"), ValueError, "no blob can have the shape"),
        ("", LayerError, "needs python_param.module"),
    ],
)
def test_errors_keep_their_type_and_name_the_layer(options, kind, says):
    with pytest.raises(kind, match=says) as caught:
        plan("Python", options, (2, 3))
    assert isinstance(caught.value, LayerError)
    assert caught.value.layer == "l"
    assert str(caught.value).startswith("layer 'l': Python: ")
    assert "caffe" not in sys.modules


def test_import_caffe_has_the_phases_too():
    with caffe_importable():
        import caffe

        assert (caffe.TRAIN, caffe.TEST, caffe.Layer) == (0, 1, UserLayer)
    assert "caffe" not in sys.modules


def test_import_caffe_can_mean_another_module():
    class Other(UserLayer):
        pass

    caffe = ModuleType("caffe")
    caffe.Layer = Other
    use_caffe(caffe)
    try:
        made = layer("Python", _options("Double"))
        made.plan([(1,)])
        assert isinstance(made.instance, Other)
    finally:
        use_caffe(None)


def test_blob_takes_no_memory_before_it_is_looked_at():
    blob = ShapeBlob((2**30,))
    assert blob.count == 2**30
    blob.reshape(2, 3)
    blob.data[...] = 5
    blob.diff[...] = 6
    blob.reshape(2, 3)
    assert blob.data.sum() == 30
    assert blob.diff.sum() == 36
    assert (blob.num, blob.channels, blob.height, blob.width) == (2, 3, 1, 1)
    with pytest.raises(ValueError, match="num, channels, height and width are for at most 4 axes"):
        _ = ShapeBlob((1,) * 5).num
    with pytest.raises(ValueError, match="no blob can have"):
        blob.reshape(-1)
