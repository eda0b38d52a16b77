// Words of --device and --dtype -> a Device.
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "engine/device/cpu/cpu_device.h"
#include "engine/device/cuda/cuda_device.h"
#include "engine/device/device.h"

namespace encoderd {
namespace {

absl::StatusOr<std::unique_ptr<Device>> OpenCpuBy(const std::string& dtype) {
  if (dtype == "auto" || dtype == "fp32")
    return cpu::OpenCpu(DType::kF32, cpu::DetectIsa());
  if (dtype == "bf16") return cpu::OpenCpu(DType::kBF16, cpu::DetectIsa());
  return absl::UnimplementedError(
      absl::StrCat("dtype \"", dtype,
                   "\" is not supported on a CPU; choose auto, fp32 or bf16"));
}

// The first card, or the CPU where there is none that serves.
absl::StatusOr<std::unique_ptr<Device>> OpenAny(
    const std::string& dtype, const std::string& tuning_folder) {
  absl::StatusOr<std::unique_ptr<Device>> card =
      cuda::OpenCuda({0}, dtype, tuning_folder);
  if (card.ok()) {
    (*card)->AddNote("device auto: the first card");
    return card;
  }
  absl::StatusOr<std::unique_ptr<Device>> cpu = OpenCpuBy(dtype);
  if (!cpu.ok()) return cpu.status();
  (*cpu)->AddNote(
      absl::StrCat("device auto: the CPU, since ", card.status().message()));
  return cpu;
}

// "cuda", "cuda:all" (no ordinals), "cuda:0,cuda:2".
bool ParseCards(absl::string_view words, std::vector<int32_t>* ordinals) {
  if (words == "cuda:all") return true;
  for (absl::string_view word : absl::StrSplit(words, ',')) {
    int32_t n = 0;
    if (words != "cuda" && (!absl::ConsumePrefix(&word, "cuda:") ||
                            !absl::SimpleAtoi(word, &n) || n < 0))
      return false;
    ordinals->push_back(n);
  }
  return true;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Device>> OpenDevice(
    const std::string& device, const std::string& dtype,
    const std::string& tuning_folder) {
  if (device == "auto") return OpenAny(dtype, tuning_folder);
  if (device == "cpu") return OpenCpuBy(dtype);
  std::vector<int32_t> cards;
  if (ParseCards(device, &cards))
    return cuda::OpenCuda(cards, dtype, tuning_folder);
  return absl::UnimplementedError(
      absl::StrCat("device \"", device,
                   "\" is not supported; choose auto, cpu, cuda, cuda:N, "
                   "cuda:N,cuda:M,... or cuda:all"));
}

}  // namespace encoderd
