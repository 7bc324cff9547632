"""Calls that Cuvil understands and does not compile: of each the shapes and element types of its results, so that facts go on behind it.

A family is a file; a model is a rule from arguments to types, registered with `typed`. Sizes that the data decide are new symbols.
"""
from . import arrays, drawing, filling, fourier, functions, images, layers, linalg, losses, ordering, recurrent, reducing, scattering, selecting

__all__ = ["arrays", "drawing", "filling", "fourier", "functions", "images", "layers", "linalg", "losses", "ordering", "recurrent", "reducing", "scattering", "selecting"]
