"""Code as people write it, under the imports they write."""
import textwrap

from cuvil.source import Source

HEAD = """import math
import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor
import cuvil as cu
"""


def source(code: str) -> Source:
    return Source("file.py", HEAD + textwrap.dedent(code))
