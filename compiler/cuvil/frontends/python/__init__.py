"""Python source to facts and CIR, by an abstract interpreter over its syntax trees. The user's code is never imported or run."""
from .analysis import Analyzer, Glance, analyze, brought, glance, understood
from .capture import capture
from .workspace import Workspace

__all__ = ["Analyzer", "Glance", "Workspace", "analyze", "brought", "capture", "glance", "understood"]
