"""What every Python process of a mutated tree has: which mutant is awake, and which were reached.

It lies at the top of that tree, where PYTHONPATH names it, and takes away the finder
of the tree that the environment was built for.
"""

import builtins
import os
import sys

sys.meta_path[:] = [one for one in sys.meta_path if "_editable" not in type(one).__module__]


class Mutants:
    awake = int(os.environ.get("SPARKNET_MUTANT", "0"))
    notes = os.environ.get("SPARKNET_REACHED")

    def __init__(self):
        self.reached: set[int] = set()

    def __call__(self, number: int) -> bool:
        if number not in self.reached:
            self.reached.add(number)
            if self.notes:
                file = os.open(self.notes, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
                os.write(file, b"%d\n" % number)
                os.close(file)
        return number == self.awake


builtins.__mutant__ = Mutants()  # type: ignore[attr-defined]
