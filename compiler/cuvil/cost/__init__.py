"""What code costs before it runs: FLOPs, bytes and intensity of ops, kernels, source lines and functions, and what a machine makes of them.

    counts.py    symbolic counts of ops, kernels and whole kernel graphs
    lines.py     the same numbers attributed to source lines
    sizes.py     example sizes for symbols, so that symbolic counts become numbers
    machine.py   the machine: peak FLOP/s, bandwidth, ridge point

Everything here is static: nothing is run or measured. Counts are exact for the ops of a kernel graph; seconds are a lower bound.
"""
from .counts import Cost, cost_of_graph, cost_of_kernel, cost_of_op
from .lines import cost_by_line
from .machine import Machine, detect
from .sizes import example_sizes, free_symbols, number

__all__ = ["Cost", "Machine", "cost_by_line", "cost_of_graph", "cost_of_kernel", "cost_of_op", "detect", "example_sizes",
           "free_symbols", "number"]
