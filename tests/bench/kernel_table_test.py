#!/usr/bin/env python3
"""kernel_table.py reads what cuobjdump prints, and counts occupancy right."""

import unittest

import kernel_table

NAME = "_ZN8encoderd4cuda10PoolKernelINS0_4Bf16EEEvPKT_PKNS0_8PoolWorkEiPf"
USAGE = f""" Function {NAME}:
  REG:40 STACK:8 SHARED:1024 LOCAL:0 CONSTANT[0]:552 TEXTURE:0 SURFACE:0
"""
CODE = f"""\t\tFunction : {NAME}
\t.headerflags\t@"EF_CUDA_SM90"
        /*0000*/                   LDC R1, c[0x0][0x28] ;     /* 0x00000a00ff */
                                                              /* 0x000fe20000 */
        /*00a0*/              @!P0 EXIT ;                     /* 0x0000000000 */
        /*00b0*/                   STL.64 [R1], R2 ;          /* 0x0000000000 */
        /*00c0*/                   NOP;                       /* 0x0000000000 */
"""
BOUNDS = f""".nv.info.{NAME}
\t<0x14>
\tAttribute:\tEIATTR_MAX_THREADS
\tFormat:\tEIFMT_SVAL
\tValue:\t0x100 0x1 0x1
"""


class KernelTableTest(unittest.TestCase):
    def test_reads_registers_memory_instructions_and_launch_bound(self):
        kernels = {}
        kernel_table.read_usage(USAGE, kernels)
        kernel_table.read_code(CODE, kernels)
        kernel_table.read_bounds(BOUNDS, kernels)
        self.assertEqual(kernels, {NAME: kernel_table.Kernel(
            registers=40, static_shared=1024, local=8, spills=1,
            instructions=3, threads=256)})
        self.assertEqual(
            kernel_table.table(kernels, kernel_table.LIMITS[90])
            .splitlines()[-1],
            "| PoolKernel<Bf16> | 40 | 128 | 8 | 1 | 3 | 48 | 6 |")

    def test_counts_what_registers_shared_memory_and_blocks_allow(self):
        limits = kernel_table.LIMITS[90]
        for registers, shared, threads, want in (
                (32, 0, 256, (64, 8)), (33, 0, 256, (48, 6)),
                (56, 0, 128, (36, 9)), (254, 49152, 128, (8, 2)),
                (32, 48 << 10, 128, (16, 4)), (16, 0, 32, (32, 32))):
            self.assertEqual(kernel_table.occupancy(
                registers, shared, threads, limits), want)

    def test_names_a_kernel_without_its_namespaces_and_parameters(self):
        self.assertEqual(kernel_table.short_name(
            "void encoderd::cuda::(anonymous namespace)::BiasKernel<"
            "encoderd::cuda::Half, (encoderd::Activation)1>(float "
            "const*, encoderd::cuda::Half*)"),
            "BiasKernel<Half, (Activation)1>")


if __name__ == "__main__":
    unittest.main()
