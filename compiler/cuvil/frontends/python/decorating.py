"""Decorators that leave what a function gives as it is: by name for those of libraries, by their text for those of the workspace.

A decorator of the workspace is seen through when the function it puts in place gives nothing but what the decorated one gives for the same
arguments: `return func(*args, **kwargs)` in every return.
"""
from __future__ import annotations

from functools import lru_cache

import libcst as cst

from .values import UserFunction, Value

# Of transformers, timm and diffusers: they document, rename keywords, cast outputs to a class or choose a kernel.
SEEN_THROUGH = frozenset((
    "auto_docstring", "can_return_tuple", "check_model_inputs", "merge_with_config_defaults", "capture_outputs", "deprecate_kwarg",
    "use_kernel_forward_from_hub", "use_kernelized_func", "use_kernel_func_from_hub", "add_start_docstrings", "add_start_docstrings_to_model_forward",
    "add_end_docstrings", "add_code_sample_docstrings", "replace_return_docstrings", "dynamic_rope_update", "force_fp32", "deprecated",
    "register_notrace_module", "register_notrace_function", "register_model", "register_to_config", "apply_forward_hook", "apply_lora_scale",
    "handle_stale_register", "maybe_allow_in_graph", "replace_example_docstring", "no_grad", "torch_compilable_check", "compile_compatible_method_lru_cache",
    "custom_fwd", "typechecked", "use_experts_implementation", "overload", "copy_func", "validate_hf_hub_args", "fullgraph", "handle_legacy_interface"))


def seen_through(name: str, decorator: Value) -> bool:
    """name: as it is written, without its home."""
    return name in SEEN_THROUGH or isinstance(decorator, UserFunction) and isinstance(decorator.node, cst.FunctionDef) and passes_on(decorator.node)


@lru_cache(256)                            # asked for each function that is decorated, in each walk that meets it
def passes_on(decorator: cst.FunctionDef) -> bool:
    """Every function that is written inside gives what a parameter of the decorator gives, or a function that does."""
    names: set[str] = set()
    todo, passed = [(decorator, 0)], False
    while todo:
        function, depth = todo.pop()
        if depth > 3:
            return False
        names.update(parameter.name.value for parameter in function.params.params)
        inside = [node for node in _nodes(function) if isinstance(node, (cst.FunctionDef, cst.Return))]
        inner = [node for node in inside if isinstance(node, cst.FunctionDef)]
        for node in inside:
            if isinstance(node, cst.Return):
                match node.value:
                    case cst.Name(value=name) if name in names or any(each.name.value == name for each in inner):
                        pass
                    case cst.Call(func=cst.Name(value=name), args=args) if name in names and any(arg.star for arg in args):
                        passed = True
                    case _:
                        return False
        todo += [(each, depth + 1) for each in inner]
    return passed


def _nodes(function: cst.FunctionDef):
    """The nodes of a body, those of functions inside left out."""
    todo: list[cst.CSTNode] = [function.body]
    while todo:
        node = todo.pop()
        yield node
        if not isinstance(node, (cst.FunctionDef, cst.ClassDef, cst.Lambda)) or node is function.body:
            todo += node.children
