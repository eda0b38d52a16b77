// The words of --device, said once: for the settings, which refuse others
// before anything is read, and for the engine, which opens what they name.
// Pure.
#ifndef ENCODERD_ENGINE_DEVICE_DEVICE_WORDS_H_
#define ENCODERD_ENGINE_DEVICE_DEVICE_WORDS_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/strings/string_view.h"
#include "engine/device/isa.h"

namespace encoderd {

inline constexpr char kDeviceWords[] =
    "auto, cpu, cpu:portable, cpu:avx2, cpu:avx512, cpu:avx512_bf16, "
    "cpu:avx512_amx, cuda, cuda:N, cuda:N,cuda:M,..., cuda:all";

struct DeviceChoice {
  enum class Kind { kAuto, kCpu, kCards };
  Kind kind = Kind::kAuto;
  std::vector<int32_t> cards;  // of kCards; none: all there are
  // Of kCpu: the instructions to compute with; none: the best it has.
  std::optional<cpu::Isa> isa;
};

// nullopt: none of kDeviceWords. Whether a card is there, or named twice, or
// the CPU has the instructions, is not asked here.
std::optional<DeviceChoice> ParseDevice(absl::string_view words);

}  // namespace encoderd

#endif  // ENCODERD_ENGINE_DEVICE_DEVICE_WORDS_H_
