"""LLVM itself: which machine we run on, target machines, parsing, optimising. The only file besides gpu.py that calls llvmlite.binding."""
from __future__ import annotations

from functools import lru_cache

import llvmlite.binding as llvm

from ..targets import Target, choose, named


@lru_cache
def _ready() -> None:
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()


@lru_cache
def host_features() -> frozenset[str]:
    """LLVM's names of what this processor can do; empty where LLVM cannot tell."""
    try:
        return frozenset(name for name, there in llvm.get_host_cpu_features().items() if there)
    except RuntimeError:
        return frozenset()


def target(name: str = "cpu") -> Target:
    """A target by name; "cpu" is the best this machine runs."""
    return choose(host_features()) if name == "cpu" else named(name)


@lru_cache
def machine(target: Target) -> llvm.TargetMachine:
    _ready()
    triple = target.triple or llvm.get_process_triple()
    return llvm.Target.from_triple(triple).create_target_machine(
        cpu=target.cpu, features=target.features, opt=2, reloc="pic", codemodel="default")


def parse(text: str, target: Target) -> llvm.ModuleRef:
    """The module, parsed and verified; RuntimeError with LLVM's words if it is wrong, which is a fault of this compiler."""
    _ready()
    module = llvm.parse_assembly(text)
    made = machine(target)
    module.triple, module.data_layout = made.triple, str(made.target_data)
    module.verify()
    return module


def optimise(module: llvm.ModuleRef, target: Target) -> None:
    """LLVM's short pipeline. Loops are vectors and tiles already: its vectorisers and unroller would only make code longer."""
    options = llvm.create_pipeline_tuning_options(speed_level=1)
    options.loop_vectorization = options.slp_vectorization = options.loop_interleaving = options.loop_unrolling = False
    builder = llvm.create_pass_builder(machine(target), options)
    builder.getModulePassManager().run(module, builder)


def version() -> str:
    return ".".join(map(str, llvm.llvm_version_info))
