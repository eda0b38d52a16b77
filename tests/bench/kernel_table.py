#!/usr/bin/env python3
"""Prints what the compiler made of the CUDA kernels, as a Markdown table.

    tests/bench/kernel_table.py build/dev/engine/device/cuda/*.a

For each kernel: registers of a thread, shared memory of a block, local memory
and the instructions that touch it (spills), machine instructions, and how
many warps and blocks an SM holds at once. No card is needed.

It reads cuobjdump's output, which needs nvdisasm next to it. CUDA's toolkit
has both; without it: pip install nvidia-cuda-cuobjdump nvidia-cuda-nvdisasm.

A block's threads are the kernel's launch bound. Dynamic shared memory is not
in the object: it is listed below by kernel, or given by --shared.
"""

import argparse
import dataclasses
import os
import pathlib
import re
import shutil
import subprocess
import sys


@dataclasses.dataclass(frozen=True)
class Limits:
    """What one SM holds."""

    warps: int
    blocks: int
    shared: int  # bytes
    # Whether cuobjdump counts SHARED_RESERVED where a kernel shares memory.
    counts_reserved: bool = True


LIMITS = {
    80: Limits(64, 32, 164 << 10, counts_reserved=False),
    86: Limits(48, 16, 100 << 10, counts_reserved=False),
    89: Limits(48, 24, 100 << 10, counts_reserved=False),
    90: Limits(64, 32, 228 << 10),
    100: Limits(64, 32, 228 << 10),
    120: Limits(48, 24, 100 << 10),
}
PARTITIONS = 4  # of an SM, each with its own registers
REGISTERS = 65536 // PARTITIONS
REGISTER_UNIT = 256  # a warp gets a multiple of it
SHARED_UNIT = 128
SHARED_RESERVED = 1024  # of every block, by the system

# Dynamic shared memory in bytes, by the kernel's arguments. Float attention
# is shown at head size 64.
SHARED = {
    # 64 queries; two tiles of 64 or 32 keys with their values.
    "AttentionKernel": lambda arguments: (
        2 * int(arguments[1])
        * (64 + 4 * (64 if int(arguments[1]) <= 64 else 32))),
    # Paths 1, 2 and 3: 128 keys, 64 keys, four heads of 16.
    "AttentionWholeKernel": lambda arguments: (
        3 * (128 if arguments[0].endswith("1") else 64)
        * int(arguments[2]) * 2),
    "AttentionFloatKernel": lambda arguments: 4 * (80 * 64 + 32),
    "PoolKernel": lambda arguments: 128,
}


@dataclasses.dataclass
class Kernel:
    registers: int = 0
    static_shared: int = 0
    local: int = 0  # bytes of a thread
    spills: int = 0  # instructions that load or store local memory
    instructions: int = 0
    threads: int = 0  # launch bound; 0: unknown


def read_usage(text, kernels):
    """cuobjdump -res-usage."""
    pattern = (r"Function (\S+):\s+REG:(\d+) STACK:(\d+) SHARED:(\d+) "
               r"LOCAL:(\d+)")
    for name, registers, stack, shared, local in re.findall(pattern, text):
        kernel = kernels.setdefault(name, Kernel())
        kernel.registers = int(registers)
        kernel.static_shared = int(shared)
        kernel.local = max(int(stack), int(local))


def read_code(text, kernels):
    """cuobjdump -sass. Instructions but the padding behind the last."""
    kernel = Kernel()
    for line in text.splitlines():
        function = re.match(r"\s*Function : (\S+)", line)
        if function:
            kernel = kernels.setdefault(function[1], Kernel())
            continue
        code = re.match(r"\s*/\*[0-9a-f]{4,}\*/\s+(?:@!?\w+\s+)?([\w.]+)",
                        line)
        if not code or code[1] == "NOP":
            continue
        kernel.instructions += 1
        if code[1].split(".")[0] in ("LDL", "STL"):
            kernel.spills += 1


def read_bounds(text, kernels):
    """cuobjdump -elf: launch bounds."""
    kernel = Kernel()
    lines = iter(text.splitlines())
    for line in lines:
        section = re.match(r"\.nv\.info\.(\S+)", line)
        if section:
            kernel = kernels.get(section[1], Kernel())
        if "EIATTR_MAX_THREADS" in line:
            next(lines)
            sizes = re.findall(r"0x[0-9a-f]+", next(lines))
            kernel.threads = 1
            for size in sizes:
                kernel.threads *= int(size, 16)


def occupancy(registers, shared, threads, limits):
    """Warps and blocks that an SM holds at once."""
    of_block = -(-threads // 32)
    of_warp = -(-registers * 32 // REGISTER_UNIT) * REGISTER_UNIT
    warps = min(limits.warps, PARTITIONS * (REGISTERS // of_warp))
    bytes_of_block = (-(-shared // SHARED_UNIT) * SHARED_UNIT +
                      SHARED_RESERVED)
    blocks = min(limits.blocks, warps // of_block,
                 limits.shared // bytes_of_block)
    return blocks * of_block, blocks


def short_name(name):
    """Without result, namespaces and parameters: Kernel<Bf16, 3>."""
    name = name.replace("(anonymous namespace)::", "")
    name = re.sub(r"\b\w+::", "", name.removeprefix("void "))
    depth = 0
    for i, character in enumerate(name):
        if character == "(" and depth == 0:
            return name[:i]
        depth += (character == "<") - (character == ">")
    return name


def dynamic_shared(short, given):
    base, _, arguments = short.partition("<")
    if base in given:
        return given[base]
    if base not in SHARED:
        return 0
    return SHARED[base](arguments.rstrip(">").split(", "))


def demangled(names):
    tool = shutil.which("c++filt") or shutil.which("cu++filt")
    if not tool:
        return dict(zip(names, names))
    done = subprocess.run([tool], input="\n".join(names), text=True,
                          capture_output=True, check=True)
    return dict(zip(names, done.stdout.splitlines()))


def find_tool(given):
    folder = os.environ.get("CUDA_PATH", "/usr/local/cuda")
    for tool in (given, "cuobjdump", f"{folder}/bin/cuobjdump"):
        found = shutil.which(tool) if tool else None
        if found:
            return found
    sys.exit("kernel_table.py: no cuobjdump on PATH or in CUDA_PATH; give "
             "--cuobjdump=FILE, or pip install nvidia-cuda-cuobjdump "
             "nvidia-cuda-nvdisasm")


def read_files(tool, arch, files):
    # cuobjdump looks for nvdisasm on PATH.
    folder = str(pathlib.Path(tool).resolve().parent)
    environment = dict(os.environ,
                       PATH=folder + os.pathsep + os.environ["PATH"])
    kernels = {}
    for file in files:
        for flag, read in (("-res-usage", read_usage), ("-sass", read_code),
                           ("-elf", read_bounds)):
            done = subprocess.run([tool, "-arch", arch, flag, file], text=True,
                                  capture_output=True, env=environment)
            if done.returncode != 0:
                sys.exit(f"kernel_table.py: {tool} {flag} {file}: "
                         f"{done.stderr.strip()}")
            read(done.stdout, kernels)
    return kernels


def table(kernels, limits, threads=0, shared=None):
    rows = ["| kernel | registers | shared | local | spills | instructions "
            "| warps | blocks |", "|---|---|---|---|---|---|---|---|"]
    names = {name: short_name(long)
             for name, long in demangled(list(kernels)).items()}

    def order(name):  # numbers by size
        return [part.zfill(6) if part.isdigit() else part
                for part in re.split(r"(\d+)", names[name])]

    for name in sorted(kernels, key=order):
        kernel, short = kernels[name], names[name]
        block = kernel.threads or threads
        memory = kernel.static_shared + dynamic_shared(short, shared or {})
        if kernel.static_shared and limits.counts_reserved:
            memory -= SHARED_RESERVED
        warps, blocks = (occupancy(kernel.registers, memory, block, limits)
                         if block else ("?", "?"))
        rows.append(f"| {short} | {kernel.registers} | {memory} "
                    f"| {kernel.local} | {kernel.spills} "
                    f"| {kernel.instructions} | {warps} | {blocks} |")
    return "\n".join(rows)


def shared_of(text):
    name, _, size = text.partition("=")
    return name, int(size)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="+", metavar="FILE",
                        help="object, library or program with CUDA code")
    parser.add_argument("--arch", default="sm_90a")
    parser.add_argument("--cuobjdump", default="", help="the program")
    parser.add_argument("--threads", type=int, default=0,
                        help="of a block, for kernels without launch bound")
    parser.add_argument("--shared", type=shared_of, action="append",
                        default=[], metavar="KERNEL=BYTES",
                        help="dynamic shared memory of a block")
    options = parser.parse_args()
    number = re.fullmatch(r"sm_(\d+)[af]?", options.arch)
    if not number or int(number[1]) not in LIMITS:
        parser.error(f"--arch={options.arch}; known: "
                     f"{', '.join(f'sm_{n}' for n in LIMITS)}")
    kernels = read_files(find_tool(options.cuobjdump), options.arch,
                         options.files)
    if not kernels:
        sys.exit(f"kernel_table.py: no kernel for {options.arch} in "
                 f"{', '.join(options.files)}")
    print(table(kernels, LIMITS[int(number[1])], options.threads,
                dict(options.shared)))


if __name__ == "__main__":
    main()
