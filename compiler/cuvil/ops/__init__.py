"""The vocabulary: importing this package loads every family and so fills DEFINITIONS and SPELLINGS."""
from . import (
               activations,
               arithmetic,
               attention,
               casts,
               comparison,
               conv,
               create,
               einops,
               elementwise,
               gather,
               indexing,
               joining,
               layers,
               linear,
               losses,
               models,
               movement,
               nn,
               normalization,
               pooling,
               recurrent,
               reductions,
               resample,
               scan,
               selection,
               shape,
               softmax,
               special,
               statistics,
)
from .builder import Builder
from .definition import DEFINITIONS, SPELLINGS, TypeRuleError

__all__ = ["Builder", "DEFINITIONS", "SPELLINGS", "TypeRuleError"]
