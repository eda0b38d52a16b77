// The products of tile_kernel.h by an emulation of AMX's tiles, on any CPU.
//
// Written after the operation of TDPBF16PS in Intel's instruction reference
// (Software Developer's Manual, volume 2). A shape that the instructions
// refuse, or a tile that is read before it is written, ends the program.
#ifndef ENCODERD_TESTS_UNIT_ENGINE_DEVICE_EMULATED_TILES_H_
#define ENCODERD_TESTS_UNIT_ENGINE_DEVICE_EMULATED_TILES_H_

#include "engine/device/cpu/kernels.h"

namespace encoderd {
namespace cpu {

const ProductKernels& EmulatedAmxProducts();

}  // namespace cpu
}  // namespace encoderd

#endif  // ENCODERD_TESTS_UNIT_ENGINE_DEVICE_EMULATED_TILES_H_
