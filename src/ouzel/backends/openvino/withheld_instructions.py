"""Reads the instruction sets that the environment withholds from oneDNN, OpenVINO's kernels.

OpenVINO asks the processor for its instructions. It chooses bf16 and int8 activations even if
oneDNN may not use their instructions. A graph in bf16 then ends the process while it is compiled
(SIGSEGV), and no product of int8 activations can be computed. So Ouzel treats withheld instructions
as missing.
"""

import os

_VARIABLES = ("ONEDNN_MAX_CPU_ISA", "DNNL_MAX_CPU_ISA")
_WITHOUT_INT8 = {"sse41", "avx", "avx2"}
_WITHOUT_BF16 = _WITHOUT_INT8 | {"avx2_vnni", "avx2_vnni_2", "avx512_core", "avx512_core_vnni"}
_WITHOUT_AMX = _WITHOUT_BF16 | {"avx512_core_bf16", "avx512_core_fp16", "avx10_1_512"}


def withholds_bf16() -> bool:
    return not _WITHOUT_BF16.isdisjoint(_largest_sets())


def withholds_int8() -> bool:
    """Tells whether oneDNN may not use the instructions for int8 products."""
    return not _WITHOUT_INT8.isdisjoint(_largest_sets())


def withholds_amx() -> bool:
    return not _WITHOUT_AMX.isdisjoint(_largest_sets())


def _largest_sets() -> set[str]:
    return {os.environ.get(name, "").lower() for name in _VARIABLES}
