// Words of --device and --dtype -> a Device.
#include <optional>

#include "absl/strings/str_cat.h"
#include "engine/device/cpu/cpu_device.h"
#include "engine/device/cuda/host/cuda_device.h"
#include "engine/device/device.h"
#include "engine/device/device_words.h"

namespace encoderd {
namespace {

absl::StatusOr<std::unique_ptr<Device>> OpenCpuBy(std::optional<cpu::Isa> asked,
                                                  const std::string& dtype,
                                                  const std::string& products) {
  const cpu::Isa best = cpu::DetectIsa();
  const cpu::Isa isa = asked.value_or(best);
  if (!cpu::HasIsa(isa)) {
    return absl::UnimplementedError(
        absl::StrCat("device \"cpu:", cpu::IsaName(isa), "\": this CPU (",
                     cpu::CpuModelName(), ") has ", cpu::IsaName(best)));
  }
  if (products != "dtype" && products != "int8") {
    return absl::UnimplementedError(absl::StrCat(
        "products \"", products,
        "\" are not supported on a CPU; choose products dtype or int8"));
  }
  if (products == "int8") {
    if (dtype == "auto" || dtype == "bf16") return cpu::OpenInt8Cpu(isa);
    return absl::UnimplementedError(
        "int8 products give results in bf16; choose dtype auto or bf16");
  }
  if (dtype == "auto" || dtype == "fp32") return cpu::OpenCpu(DType::kF32, isa);
  if (dtype == "bf16") return cpu::OpenCpu(DType::kBF16, isa);
  return absl::UnimplementedError(
      absl::StrCat("dtype \"", dtype,
                   "\" is not supported on a CPU; choose auto, fp32 or bf16"));
}

// The first card, or the CPU where there is none that serves.
absl::StatusOr<std::unique_ptr<Device>> OpenAny(
    const std::string& dtype, const std::string& tuning_folder,
    const std::string& products) {
  absl::StatusOr<std::unique_ptr<Device>> card =
      cuda::OpenCuda({0}, dtype, tuning_folder, products);
  if (card.ok()) {
    (*card)->AddNote("device auto: using the first GPU");
    return card;
  }
  absl::StatusOr<std::unique_ptr<Device>> cpu =
      OpenCpuBy(std::nullopt, dtype, products);
  if (!cpu.ok()) {
    return absl::Status(card.status().code(),
                        absl::StrCat(cpu.status().message(),
                                     ", or a GPU: ", card.status().message()));
  }
  (*cpu)->AddNote(
      absl::StrCat("device auto: using the CPU because no GPU can be used: ",
                   card.status().message()));
  return cpu;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Device>> OpenDevice(
    const std::string& device, const std::string& dtype,
    const std::string& tuning_folder, const std::string& products) {
  const std::optional<DeviceChoice> choice = ParseDevice(device);
  if (!choice.has_value()) {
    return absl::UnimplementedError(
        absl::StrCat("device \"", device, "\" is not supported; choose one of ",
                     kDeviceWords));
  }
  switch (choice->kind) {
    case DeviceChoice::Kind::kAuto:
      return OpenAny(dtype, tuning_folder, products);
    case DeviceChoice::Kind::kCpu:
      return OpenCpuBy(choice->isa, dtype, products);
    case DeviceChoice::Kind::kCards:
      break;
  }
  auto card = cuda::OpenCuda(choice->cards, dtype, tuning_folder, products);
  if (card.ok()) return card;
  return absl::Status(
      card.status().code(),
      absl::StrCat(
          card.status().message(),
          "; device auto falls back to the CPU if no GPU can be used"));
}

}  // namespace encoderd
