"""The vocabulary: importing this package loads every family and so fills DEFINITIONS and SPELLINGS."""
from . import (attention, conv, create, elementwise, layers, linear, movement, nn, normalization, pooling, recurrent, reductions, refused, resample,
               scan, shape, special)
from .builder import Builder
from .definition import DEFINITIONS, SPELLINGS, TypeRuleError

__all__ = ["Builder", "DEFINITIONS", "SPELLINGS", "TypeRuleError"]
