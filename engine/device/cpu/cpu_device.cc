#include "engine/device/cpu/cpu_device.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "engine/device/check_rotation.h"
#include "engine/device/cpu/cpu_executor.h"
#include "engine/device/cpu/kernels.h"
#include "engine/device/cpu/product.h"

namespace encoderd {
namespace cpu {
namespace {

const Kernels* FloatKernels(Isa isa) {
  const Kernels* kernels = nullptr;
  if (isa >= Isa::kAvx512) kernels = Avx512Kernels();
  if (kernels == nullptr && isa >= Isa::kAvx2) kernels = Avx2Kernels();
  return kernels == nullptr ? PortableKernels() : kernels;
}

class CpuDevice : public Device {
 public:
  // operands: of the products; empty: the dtype.
  CpuDevice(const Kernels& kernels, std::unique_ptr<ProductFactory> products,
            Isa isa, std::shared_ptr<Team> team, std::string operands = "")
      : kernels_(kernels),
        products_(std::move(products)),
        operands_(std::move(operands)),
        isa_(isa),
        team_(team == nullptr ? SharedTeam() : std::move(team)) {}

  std::string name() const override {
    return absl::StrCat("cpu (", CpuModelName(), ", ", IsaName(isa_), ")");
  }
  DType dtype() const override {
    return kernels_.bf16 ? DType::kBF16 : DType::kF32;
  }
  std::string products() const override {
    return operands_.empty() ? Device::products() : operands_;
  }
  int32_t preferred_sessions() const override { return AvailableCores(); }
  bool pauses() const override { return true; }
  int64_t default_batch_tokens() const override { return 1024; }

  absl::Status ExpectModel(const ModelSizes& sizes,
                           const std::vector<WeightSize>& weights) override {
    sizes_ = sizes;
    return absl::OkStatus();
  }

  absl::StatusOr<std::unique_ptr<DeviceLinear>> PrepareLinear(
      LinearWeights weights, Activation activation) override {
    const int64_t columns = weights.weight.rows;
    auto linear = absl::make_unique<CpuLinear>();
    linear->activation = activation;
    absl::StatusOr<std::unique_ptr<Product>> product =
        products_->Create(weights);
    if (!product.ok()) return product.status();
    linear->product = *std::move(product);
    const Product& made = *linear->product;
    products_scratch_.product =
        std::max(products_scratch_.product, made.scratch_bytes());
    if (made.column_parts() > 1) {
      products_scratch_.columns = std::max(
          products_scratch_.columns,
          kFewRows * columns / made.column_parts() * DTypeBytes(dtype()));
    }
    return std::unique_ptr<DeviceLinear>(std::move(linear));
  }

  absl::StatusOr<std::unique_ptr<DeviceNorm>> PrepareNorm(NormWeights weights,
                                                          float eps) override {
    auto norm = absl::make_unique<CpuNorm>(std::move(weights));
    norm->norm = RefTo(norm->memory, eps);
    return std::unique_ptr<DeviceNorm>(std::move(norm));
  }

  absl::StatusOr<std::unique_ptr<DeviceEmbeddings>> PrepareEmbeddings(
      EmbeddingWeights weights, float eps) override {
    auto embeddings = absl::make_unique<CpuEmbeddings>(std::move(weights));
    const EmbeddingWeights& held = embeddings->memory;
    const auto table = [](const HostMatrix& rows) {
      return rows.rows == 0 ? nullptr : rows.data.data();
    };
    embeddings->tables = {table(held.token), table(held.position),
                          table(held.segment)};
    embeddings->norm = RefTo(held.norm, eps);
    return std::unique_ptr<DeviceEmbeddings>(std::move(embeddings));
  }

  absl::StatusOr<std::unique_ptr<DeviceAttentionBias>> PrepareAttentionBias(
      HostMatrix biases) override {
    HostMatrix rows = {biases.rows, biases.cols + kBiasPadding, {}};
    rows.data.resize(rows.rows * rows.cols);
    for (int64_t head = 0; head < biases.rows; ++head) {
      std::copy_n(biases.Row(head), biases.cols,
                  rows.data.begin() + head * rows.cols);
    }
    auto prepared = absl::make_unique<CpuAttentionBias>(std::move(rows));
    prepared->bias = prepared->memory.data.data() + biases.cols / 2;
    prepared->bias_stride = static_cast<int32_t>(prepared->memory.cols);
    return std::unique_ptr<DeviceAttentionBias>(std::move(prepared));
  }

  absl::StatusOr<std::unique_ptr<DeviceRotation>> PrepareRotation(
      HostMatrix cos, HostMatrix sin) override {
    const absl::Status status = CheckRotation(cos, sin, sizes_);
    if (!status.ok()) return status;
    auto rotation = absl::make_unique<CpuRotation>(
        std::make_pair(std::move(cos), std::move(sin)));
    rotation->cos = rotation->memory.first.data.data();
    rotation->sin = rotation->memory.second.data.data();
    rotation->pairs = static_cast<int32_t>(rotation->memory.first.cols);
    return std::unique_ptr<DeviceRotation>(std::move(rotation));
  }

  absl::StatusOr<std::unique_ptr<Executor>> NewExecutor(
      const ExecutorLimits& limits) const override {
    return NewCpuExecutor(kernels_, limits, products_scratch_, team_.get());
  }

 private:
  static NormRef RefTo(const NormWeights& weights, float eps) {
    if (weights.gain.empty()) return {};
    return {weights.gain.data(), weights.bias.data(), eps};
  }

  const Kernels& kernels_;
  const std::unique_ptr<ProductFactory> products_;
  const std::string operands_;
  const Isa isa_;
  const std::shared_ptr<Team> team_;
  ModelSizes sizes_;               // of the expected model
  ScratchBytes products_scratch_;  // the most that a product asks for
};

}  // namespace

absl::StatusOr<std::unique_ptr<Device>> OpenCpu(DType dtype, Isa isa,
                                                std::shared_ptr<Team> team) {
  if (dtype == DType::kF32) {
    const Kernels* kernels = FloatKernels(isa);
    auto products = kernels == Avx512Kernels() ? OneDnnProducts(DType::kF32)
                                               : OwnProducts(*kernels);
    return std::unique_ptr<Device>(absl::make_unique<CpuDevice>(
        *kernels, std::move(products), isa, std::move(team)));
  }
  if (dtype != DType::kBF16) {
    return absl::UnimplementedError(
        absl::StrCat("dtype ", DTypeName(dtype),
                     " is not supported on a CPU; choose fp32 or bf16"));
  }
  const Kernels* kernels =
      isa >= Isa::kAvx512Bf16 ? Avx512Bf16Kernels() : nullptr;
  if (kernels == nullptr) {
    return absl::UnimplementedError(
        absl::StrCat("dtype bf16 needs a CPU with avx512_bf16; this one (",
                     CpuModelName(), ") has ", IsaName(isa), "; choose fp32"));
  }
  return std::unique_ptr<Device>(absl::make_unique<CpuDevice>(
      *kernels, OneDnnProducts(DType::kBF16), isa, std::move(team)));
}

absl::StatusOr<std::unique_ptr<Device>> OpenInt8Cpu(
    Isa isa, std::shared_ptr<Team> team) {
  const Int8Kernels* const int8 = HasVnni() ? Avx512VnniKernels() : nullptr;
  const Kernels* const kernels =
      isa >= Isa::kAvx512Bf16 ? Avx512Bf16Kernels() : nullptr;
  if (int8 == nullptr || kernels == nullptr) {
    return absl::UnimplementedError(absl::StrCat(
        "int8 products need a CPU with avx512_vnni and avx512_bf16; this one (",
        CpuModelName(), ") lacks ",
        kernels == nullptr ? "avx512_bf16" : "avx512_vnni",
        "; choose products dtype"));
  }
  return std::unique_ptr<Device>(absl::make_unique<CpuDevice>(
      *kernels, Int8Products(*int8, OneDnnProducts(DType::kBF16)), isa,
      std::move(team), "int8"));
}

}  // namespace cpu
}  // namespace encoderd
