"""Source to the syntax facts of one file. Broken code is normal input."""
from .module import Definition, Module, Symbol, SyntaxProblem, Tree, parse

__all__ = ["Definition", "Module", "Symbol", "SyntaxProblem", "Tree", "parse"]
