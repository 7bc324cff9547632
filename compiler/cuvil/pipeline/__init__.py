"""The stages from source to native library, in order, each made on first use and kept.

    stages = Stages.of(function)            # a CIR function from any front end
    stages.optimized.history                # [(pass name, function after it)]
    stages.kernels                          # ir.kernel.KernelGraph
    stages.nests                            # loops.nest.Nest, one for each kernel
    stages.llvm, stages.assembly, stages.object
    stages.lineage                          # lineage.Lineage over all layers
    compile_file("model.py")                # the whole way, for a file on disk

This is the API for tools: panels, explain, compile and tests all read the same object. Import it, not the stages.
"""
from .files import CompiledArtifact, compile_file, compile_function
from .layers import cst_id, line_id, origin_chain
from .stages import Stages

__all__ = ["CompiledArtifact", "Stages", "compile_file", "compile_function", "cst_id", "line_id", "origin_chain"]
