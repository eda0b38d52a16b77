"""Hides newer CPU instructions from the engines that are compared."""

import ctypes
import os
import platform
import sys

# arch_prctl(2) of x86-64.
SYS_ARCH_PRCTL, ARCH_GET_CPUID = 158, 0x1011


def cpuid_faults():
    """Whether this thread's CPUID traps: libhide_isa answers."""
    return (platform.machine() == "x86_64" and
            ctypes.CDLL(None).syscall(SYS_ARCH_PRCTL, ARCH_GET_CPUID, 0) == 0)


def hide_newer_than_avx2(bench):
    """Starts this program again where CPUID reports nothing newer than AVX2,
    unless it does so already. The libraries' settings are not enough: OpenVINO
    and ONNX Runtime compute most products in one that queries CPUID itself."""
    if cpuid_faults():
        return
    hider = os.path.join(os.path.dirname(os.path.abspath(bench)),
                         "libhide_isa.so")
    others = os.environ.get("LD_PRELOAD", "")
    if hider in others.split(":"):
        sys.exit(f"--isa=avx2: LD_PRELOAD={others} has no effect")
    if not os.path.exists(hider):
        sys.exit(f"--isa=avx2 needs {hider}: build hide_isa (x86-64 only)")
    os.environ["LD_PRELOAD"] = f"{hider}:{others}" if others else hider
    os.execv(sys.executable, sys.orig_argv)
