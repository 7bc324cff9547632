"""Source to the syntax facts of one file. Broken code is normal input."""
from .module import Definition, Module, Place, Symbol, SyntaxProblem, Tree, parse

__all__ = ["Definition", "Place", "Module", "Symbol", "SyntaxProblem", "Tree", "parse"]
