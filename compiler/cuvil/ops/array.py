"""NumPy, imported when a meaning is first computed: to read and type programs no arrays are needed."""
from __future__ import annotations

from typing import Any


class _NumPy:
    def __getattr__(self, name: str) -> Any:
        import numpy
        value = getattr(numpy, name)
        setattr(self, name, value)
        return value


np: Any = _NumPy()
