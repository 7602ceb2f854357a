"""docs/net.md: every name on it exists."""

import re

from sparknet import Net, WeightCollection
from tests.guides import guide
from tests.net.nets import NET


def test_every_name_exists():
    net = Net(NET)
    for name in re.findall(r"`net\.(\w+)", guide("net.md")):
        assert hasattr(net, name), name
    for name in re.findall(r"`WeightCollection\.(\w+)", guide("net.md")):
        assert hasattr(WeightCollection, name), name
