// The CPU behind the device seam (engine/device/device.h).
#ifndef ENCODERD_ENGINE_DEVICE_CPU_CPU_DEVICE_H_
#define ENCODERD_ENGINE_DEVICE_CPU_CPU_DEVICE_H_

#include <memory>

#include "absl/status/statusor.h"
#include "engine/device/cpu/cpu_info.h"
#include "engine/device/cpu/team.h"
#include "engine/device/device.h"

namespace encoderd {
namespace cpu {

// dtype: kF32 or kBF16; UNIMPLEMENTED: another. isa: one that HasIsa.
// team: who helps a pass that is alone; null: the process's own.
absl::StatusOr<std::unique_ptr<Device>> OpenCpu(
    DType dtype, Isa isa, std::shared_ptr<Team> team = nullptr);

// In bf16, whose products multiply int8 where weights allow it
// (int8_kernel.h). UNIMPLEMENTED: this CPU has no avx512_vnni, or `isa` is
// older than avx512.
absl::StatusOr<std::unique_ptr<Device>> OpenInt8Cpu(
    Isa isa, std::shared_ptr<Team> team = nullptr);

}  // namespace cpu
}  // namespace encoderd

#endif  // ENCODERD_ENGINE_DEVICE_CPU_CPU_DEVICE_H_
