"""The vocabulary: importing this package loads every family and so fills DEFINITIONS and SPELLINGS."""
from . import create, elementwise, linear, movement, nn, reductions, shape
from .builder import Builder
from .definition import DEFINITIONS, SPELLINGS, TypeRuleError

__all__ = ["Builder", "DEFINITIONS", "SPELLINGS", "TypeRuleError"]
