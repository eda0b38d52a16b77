#include "engine/device/cuda/host/cuda_device.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "engine/device/check_rotation.h"
#include "engine/device/cuda/host/cuda_executor.h"
#include "engine/device/cuda/host/memory.h"
#include "engine/device/cuda/host/memory_plan.h"
#include "engine/device/cuda/host/narrow.h"
#include "engine/device/cuda/host/prove_paths.h"
#include "engine/device/cuda/host/weights.h"
#include "engine/device/cuda/products/bucketed_product.h"

namespace encoderd {
namespace cuda {
namespace {

constexpr int64_t kColumnMultiple = 8;
constexpr int64_t kE4m3ColumnMultiple = 16;
// Two Sessions: while one computes, the other's batch is packed, copied and its
// results taken.
constexpr int32_t kSessions = 2;

class CudaDevice : public Device {
 public:
  CudaDevice(std::shared_ptr<Context> context,
             std::unique_ptr<ProductFactory> products, const Card& card,
             std::shared_ptr<Agreement> agreement)
      : context_(std::move(context)),
        runtime_(context_->runtime.get()),
        products_(std::move(products)),
        card_(card),
        agreement_(std::move(agreement)) {}

  bool on_gpu() const override { return true; }
  std::string name() const override {
    return absl::StrCat("cuda:", context_->ordinal, " (", card_.name,
                        ", compute capability ", card_.compute_major, ".",
                        card_.compute_minor, ", ", BytesText(card_.total_bytes),
                        ", ", products_->name(), e4m3() ? ", fp8 products" : "",
                        ")");
  }
  DType dtype() const override { return context_->dtype; }
  std::string products() const override {
    return e4m3() ? "fp8" : DTypeName(dtype());
  }
  int32_t preferred_sessions() const override { return kSessions; }
  int64_t default_batch_tokens() const override {
    return FullBatchRows(card_.multiprocessors);
  }

  void AllowGraphs(bool allowed) override {
    context_->graphs = allowed;
    products_->AllowGraphs(allowed);
  }
  bool ObserveOps(OpObserver observe) override {
    context_->observe_ops = std::move(observe);
    return true;
  }
  absl::Status ExpectModel(const ModelSizes& sizes,
                           const std::vector<WeightSize>& weights) override {
    absl::Status status = CheckSizes(sizes);
    if (!status.ok()) return status;
    sizes_ = sizes;
    status = UseDevice();
    if (!status.ok()) return status;
    int64_t free_bytes = 0;
    const int code = runtime_->FreeBytes(&free_bytes);
    if (code != 0) return RuntimeError(runtime_, code, "querying free memory");
    const auto plan_for = [&](int64_t tokens) {
      return PlanSession({tokens, tokens, sizes}, dtype(),
                         context_->workspace_bytes, context_->operands);
    };
    const int64_t model_bytes =
        ModelBytes(weights, dtype(), context_->operands);
    const int64_t tokens =
        std::max<int64_t>(default_batch_tokens(), sizes.max_len);
    const SessionPlan plan = plan_for(tokens);
    AddNote(absl::StrCat(
        "the model takes ", BytesText(model_bytes), " of the card, a session ",
        BytesText(plan.device_bytes()), " and ", BytesText(plan.pinned_bytes()),
        " of pinned host memory (", tokens, " tokens); ", BytesText(free_bytes),
        " are free"));
    // The smallest that takes every text of the model.
    status = CheckMemory(model_bytes, plan_for(sizes.max_len).device_bytes(), 1,
                         free_bytes, "a 16-bit dtype or another card");
    return status.ok() && agreement_ != nullptr ? Prove(sizes) : status;
  }

  absl::StatusOr<std::unique_ptr<DeviceLinear>> PrepareLinear(
      const LinearWeights& weights, Activation activation) override;
  absl::StatusOr<std::unique_ptr<DeviceNorm>> PrepareNorm(NormWeights weights,
                                                          float eps) override {
    auto norm = std::make_unique<CudaNorm>();
    absl::Status status =
        Put(weights, eps, &norm->gain, &norm->bias, &norm->norm);
    if (!status.ok()) return status;
    return std::unique_ptr<DeviceNorm>(std::move(norm));
  }
  absl::StatusOr<std::unique_ptr<DeviceEmbeddings>> PrepareEmbeddings(
      EmbeddingWeights weights, float eps) override;
  absl::StatusOr<std::unique_ptr<DeviceAttentionBias>> PrepareAttentionBias(
      HostMatrix biases) override {
    auto bias = std::make_unique<CudaAttentionBias>();
    absl::Status status =
        Put(biases.data, DType::kF32, "attention's biases", &bias->values);
    if (!status.ok()) return status;
    bias->bias = bias->values.as<float>() + biases.cols / 2;
    bias->bias_stride = static_cast<int32_t>(biases.cols);
    return std::unique_ptr<DeviceAttentionBias>(std::move(bias));
  }

  absl::StatusOr<std::unique_ptr<DeviceRotation>> PrepareRotation(
      HostMatrix cos, HostMatrix sin) override {
    absl::Status status = CheckRotation(cos, sin, sizes_);
    if (!status.ok()) return status;
    auto rotation = std::make_unique<CudaRotation>();
    status =
        Put(cos.data, DType::kF32, "a rotation's cosines", &rotation->cosines);
    status.Update(
        Put(sin.data, DType::kF32, "a rotation's sines", &rotation->sines));
    if (!status.ok()) return status;
    rotation->cos = rotation->cosines.as<float>();
    rotation->sin = rotation->sines.as<float>();
    rotation->pairs = static_cast<int32_t>(cos.cols);
    return std::unique_ptr<DeviceRotation>(std::move(rotation));
  }

  absl::StatusOr<std::unique_ptr<Executor>> NewExecutor(
      const ExecutorLimits& limits) const override {
    return CudaExecutor::Create(context_, limits);
  }

 private:
  absl::Status UseDevice() const {
    const int code = runtime_->UseDevice(context_->ordinal);
    return code == 0 ? absl::OkStatus()
                     : RuntimeError(runtime_, code, "choosing the device");
  }

  bool e4m3() const { return context_->operands == Operands::kE4m3; }

  // Lets the fast paths serve that prove themselves.
  absl::Status Prove(const ModelSizes& sizes) {
    FastPaths paths;
    std::vector<std::string> notes;
    absl::Status status = ProvePaths(runtime_, sizes, dtype(),
                                     context_->operands, &paths, &notes);
    for (std::string& note : notes) AddNote(std::move(note));
    context_->attention_paths = paths.attention_paths;
    context_->proved_reaches = std::move(paths.reaches);
    context_->fused_e4m3 = paths.fused_e4m3;  // the same bits either way
    for (int32_t p = 0; p < kAttentionPaths && status.ok(); ++p) {
      const auto path = static_cast<AttentionPath>(p);
      status = agreement_->Add(absl::StrCat("attention ", PathName(path)),
                               (paths.attention_paths & PathBit(path)) != 0,
                               context_->ordinal);
    }
    return status;
  }

  // UNIMPLEMENTED for shapes that the kernels do not take.
  absl::Status CheckSizes(const ModelSizes& sizes) const;

  // values as `dtype` on the card.
  absl::Status Put(absl::Span<const float> values, DType dtype,
                   absl::string_view what, DeviceBuffer* buffer) const {
    return PutBytes(Narrow(values, dtype), what, buffer);
  }
  // In the device's dtype; nothing of no rows.
  absl::Status Put(const HostTable& table, absl::string_view what,
                   DeviceBuffer* buffer) const {
    if (table.rows == 0) return absl::OkStatus();
    if (table.dtype != dtype())
      return Put(table.Widened().data, dtype(), what, buffer);
    return PutBytes(table.data(), table.rows * table.cols * DTypeBytes(dtype()),
                    what, buffer);
  }
  absl::Status PutBytes(const std::vector<char>& bytes, absl::string_view what,
                        DeviceBuffer* buffer) const {
    return PutBytes(bytes.data(), static_cast<int64_t>(bytes.size()), what,
                    buffer);
  }
  absl::Status PutBytes(const void* bytes, int64_t count,
                        absl::string_view what, DeviceBuffer* buffer) const {
    const absl::Status status = UseDevice();
    if (!status.ok()) return status;
    return TakeCopy(runtime_, bytes, count, what, buffer);
  }
  absl::Status Put(const NormWeights& weights, float eps, DeviceBuffer* gain,
                   DeviceBuffer* bias, NormRef* norm) const {
    absl::Status status = Put(weights.gain, DType::kF32, "a norm's gain", gain);
    status.Update(Put(weights.bias, DType::kF32, "a norm's bias", bias));
    *norm = {gain->as<float>(), bias->as<float>(), eps};
    return status;
  }

  const std::shared_ptr<Context> context_;
  Runtime* const runtime_;
  const std::unique_ptr<ProductFactory> products_;
  const Card card_;
  const std::shared_ptr<Agreement> agreement_;  // null: nothing is proved
  ModelSizes sizes_;                            // of the expected model
};

absl::Status CudaDevice::CheckSizes(const ModelSizes& sizes) const {
  const int64_t hidden = sizes.hidden_size, inner = sizes.intermediate_size;
  const int64_t head_size = sizes.head_size();
  if (hidden % kColumnMultiple != 0 || hidden > kMaxHidden ||
      inner % kColumnMultiple != 0) {
    return absl::UnimplementedError(
        absl::StrCat("hidden_size ", hidden, " and intermediate_size ", inner,
                     " are not supported on a GPU: both must be multiples of ",
                     kColumnMultiple, " and the first at most ", kMaxHidden,
                     "; choose device cpu"));
  }
  const int64_t embedding = sizes.embedding_size;
  if (embedding % kColumnMultiple != 0 || embedding > kMaxHidden) {
    return absl::UnimplementedError(absl::StrCat(
        "embedding_size ", embedding,
        " is not supported on a GPU: it must be a multiple of ",
        kColumnMultiple, ", at most ", kMaxHidden, "; choose device cpu"));
  }
  if (head_size > kMaxHeadSize ||
      (dtype() != DType::kF32 && head_size % kColumnMultiple != 0)) {
    return absl::UnimplementedError(
        absl::StrCat("head size ", head_size, " is not supported on a GPU in ",
                     DTypeName(dtype()), ": at most ", kMaxHeadSize,
                     ", and in a 16-bit dtype a multiple of ", kColumnMultiple,
                     "; choose device cpu"));
  }
  for (const int64_t columns : {hidden, inner}) {
    if (!e4m3() || columns % kE4m3ColumnMultiple == 0) continue;
    return absl::UnimplementedError(
        absl::StrCat("rows of ", columns,
                     " cannot be multiplied in fp8: hidden_size and "
                     "intermediate_size must be multiples of ",
                     kE4m3ColumnMultiple, "; choose products dtype"));
  }
  return absl::OkStatus();
}

Epilogue EpilogueOf(Activation activation) {
  switch (activation) {
    case Activation::kRelu:
      return Epilogue::kBiasRelu;
    case Activation::kGeluTanh:
      return Epilogue::kBiasGeluTanh;
    case Activation::kGeluErf:
      return Epilogue::kBiasGeluErf;
    case Activation::kNone:
      break;
  }
  return Epilogue::kBias;
}

// The product gives plain sums; bias and activation are a separate pass.
void ActivateApart(Activation activation, CudaLinear* linear,
                   ProductArgs* args) {
  linear->activation = activation;
  args->epilogue = Epilogue::kNone;
  args->bias = nullptr;
}

absl::StatusOr<std::unique_ptr<DeviceLinear>> CudaDevice::PrepareLinear(
    const LinearWeights& weights, Activation activation) {
  auto linear = std::make_unique<CudaLinear>();
  ProductArgs args;
  args.element = dtype();
  args.in = weights.weight.cols;
  args.out = weights.weight.rows;
  args.residual = weights.residual_follows;
  args.epilogue = EpilogueOf(activation);
  linear->in_fp8 = e4m3() && weights.allow_fp8;
  if (linear->in_fp8) args.operands = Operands::kE4m3;
  // In e4m3 the epilogue is a bias at most, in float the exact GELU is ours.
  if ((linear->in_fp8 && activation != Activation::kNone) ||
      (dtype() == DType::kF32 && activation == Activation::kGeluErf))
    ActivateApart(activation, linear.get(), &args);
  absl::Status status =
      PutBytes(linear->in_fp8 ? NarrowRowsToE4m3(weights.weight.data, args.in)
                              : Narrow(weights.weight.data, dtype()),
               "weights", &linear->weight);
  const bool activates_apart = linear->activation != Activation::kNone;
  const bool float_bias =
      activates_apart || args.epilogue == Epilogue::kBiasGeluErf;
  status.Update(Put(weights.bias, float_bias ? DType::kF32 : dtype(), "a bias",
                    &linear->bias));
  if (!status.ok()) return status;
  args.weight = linear->weight.data();
  if (!activates_apart) args.bias = linear->bias.data();
  absl::StatusOr<std::unique_ptr<Product>> product = products_->Create(args);
  if (args.epilogue == Epilogue::kBiasGeluErf &&
      absl::IsUnimplemented(product.status())) {
    ActivateApart(activation, linear.get(), &args);
    product = products_->Create(args);
  }
  for (std::string& note : products_->TakeNotes()) AddNote(std::move(note));
  if (!product.ok()) return product.status();
  linear->product = *std::move(product);
  return std::unique_ptr<DeviceLinear>(std::move(linear));
}

absl::StatusOr<std::unique_ptr<DeviceEmbeddings>> CudaDevice::PrepareEmbeddings(
    EmbeddingWeights weights, float eps) {
  auto tables = std::make_unique<CudaEmbeddings>();
  absl::Status status = Put(weights.token, "the token table", &tables->token);
  status.Update(Put(weights.position, "the position table", &tables->position));
  status.Update(Put(weights.segment, "the segment table", &tables->segment));
  if (!weights.norm.gain.empty()) {
    status.Update(
        Put(weights.norm, eps, &tables->gain, &tables->bias, &tables->norm));
  }
  if (!status.ok()) return status;
  tables->tables = {tables->token.data(), tables->position.data(),
                    tables->segment.data(), dtype()};
  return std::unique_ptr<DeviceEmbeddings>(std::move(tables));
}

}  // namespace

absl::Status NoSuchCard(int32_t ordinal, int32_t count) {
  return absl::NotFoundError(absl::StrCat("cuda:", ordinal, " does not exist; ",
                                          count, " devices are visible"));
}

absl::StatusOr<std::unique_ptr<Device>> NewCudaDevice(
    std::shared_ptr<Runtime> runtime, std::unique_ptr<ProductFactory> products,
    int32_t ordinal, const std::string& dtype, const std::string& operands,
    bool graphs, std::shared_ptr<Agreement> agreement) {
  auto context = std::make_shared<Context>();
  context->ordinal = ordinal;
  context->graphs = graphs;
  context->workspace_bytes = products->workspace_bytes();
  if (dtype == "auto" || dtype == "bf16") {
    context->dtype = DType::kBF16;
  } else if (dtype == "fp16") {
    context->dtype = DType::kF16;
  } else if (dtype != "fp32") {
    return absl::UnimplementedError(
        absl::StrCat("dtype \"", dtype,
                     "\" is not supported on a GPU; choose auto, bf16, fp16 or "
                     "fp32"));
  }
  if (operands == "fp8") {
    context->operands = Operands::kE4m3;
  } else if (operands != "dtype") {
    return absl::UnimplementedError(absl::StrCat(
        "products \"", operands, "\" are not supported; choose dtype or fp8"));
  }
  if (operands == "fp8" && context->dtype == DType::kF32) {
    return absl::UnimplementedError(
        "fp8 products give results of 16 bits; choose dtype auto, bf16 or "
        "fp16");
  }
  int32_t count = 0;
  int code = runtime->CountDevices(&count);
  if (code != 0) return RuntimeError(runtime.get(), code, "counting devices");
  if (ordinal < 0 || ordinal >= count) {
    return NoSuchCard(ordinal, count);
  }
  Card card;
  code = runtime->Describe(ordinal, &card);
  if (code != 0)
    return RuntimeError(runtime.get(), code, "querying its properties");
  if (card.compute_major < kLeastComputeMajor) {
    return absl::UnimplementedError(absl::StrCat(
        "cuda:", ordinal, " (", card.name, ") has compute capability ",
        card.compute_major, ".", card.compute_minor, "; at least ",
        kLeastComputeMajor, ".0 is needed"));
  }
  if (operands == "fp8" && (card.compute_major != kE4m3ComputeMajor ||
                            card.compute_minor != kE4m3ComputeMinor)) {
    return absl::UnimplementedError(absl::StrCat(
        "cuda:", ordinal, " (", card.name, ") has compute capability ",
        card.compute_major, ".", card.compute_minor, "; fp8 products need ",
        kE4m3ComputeMajor, ".", kE4m3ComputeMinor,
        ", because only there cuBLASLt scales rows of e4m3; choose products "
        "dtype"));
  }
  context->runtime = std::move(runtime);
  if (card.compute_major >= kLeastOverlapMajor) {
    int32_t version = 0;
    code = context->runtime->UseDevice(ordinal);
    if (code == 0) code = KernelsPtxVersion(&version);
    context->overlaps = code == 0 && version >= 10 * kLeastOverlapMajor;
  }
  return std::unique_ptr<Device>(std::make_unique<CudaDevice>(
      std::move(context), std::move(products), card, std::move(agreement)));
}

}  // namespace cuda
}  // namespace encoderd
