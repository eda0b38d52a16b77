// oneDNN's matmul behind Product: the only file that knows oneDNN, and the
// difference between its versions 2 and 3.
//
// A primitive is made for a fixed number of rows (a run-time number falls to a
// slow kernel), so a product runs as blocks of 128 rows, one block of a
// multiple of 8, and one of 1 to 7: 23 primitives for each shape, made once at
// load and shared by all layers. They are made for one thread and run in the
// calling thread; none depends on how many rows its neighbors have (a test
// checks the bits). For up to 32 rows there are 11 more, for a part of the
// columns: packed weights are blocks of columns, so some of the blocks are the
// weights of a narrower product.
#include <algorithm>
#include <cstring>
#include <map>
#include <memory>
#include <oneapi/dnnl/dnnl.hpp>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "engine/device/cpu/aligned_buffer.h"
#include "engine/device/cpu/cpu_info.h"
#include "engine/device/cpu/product.h"

// oneDNN runs on OpenMP and asks it how many threads to use. Declared here, as
// clang may come without omp.h; the library is the one that oneDNN links.
extern "C" {
void omp_set_num_threads(int threads);
int omp_get_max_threads(void);
}

namespace encoderd {
namespace cpu {
namespace {

using dnnl::memory;

// This thread's products use this thread only while one of these lives.
class OneThread {
 public:
  OneThread() : before_(omp_get_max_threads()) { omp_set_num_threads(1); }
  ~OneThread() { omp_set_num_threads(before_); }
  OneThread(const OneThread&) = delete;
  OneThread& operator=(const OneThread&) = delete;

 private:
  const int before_;
};

absl::Status FromException(const dnnl::error& error) {
  if (error.status == dnnl_out_of_memory) {
    return absl::ResourceExhaustedError(
        absl::StrCat("oneDNN is out of memory: ", error.what()));
  }
  return absl::InternalError(absl::StrCat("oneDNN: ", error.what()));
}

memory::data_type ToDnnl(DType dtype) {
  return dtype == DType::kBF16 ? memory::data_type::bf16
                               : memory::data_type::f32;
}

// Of a row-major matrix.
memory::desc RowMajor(int64_t rows, int64_t cols, memory::data_type type) {
  return memory::desc({rows, cols}, type, memory::format_tag::ab);
}

dnnl::matmul::primitive_desc MakePrimitiveDesc(const dnnl::engine& engine,
                                               const memory::desc& x,
                                               const memory::desc& weights,
                                               const memory::desc& bias,
                                               const memory::desc& y) {
  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
#if DNNL_VERSION_MAJOR >= 3
  return dnnl::matmul::primitive_desc(engine, x, weights, bias, y, attributes);
#else
  return dnnl::matmul::primitive_desc(dnnl::matmul::desc(x, weights, bias, y),
                                      attributes, engine);
#endif
}

// In elements, of a part of a larger memory.
int64_t OffsetOf(const memory::desc& part) {
#if DNNL_VERSION_MAJOR >= 3
  return part.get_submemory_offset();
#else
  return part.data.offset0;
#endif
}

// Columns of one block of packed weights [in,out]; 0: they are not in blocks of
// columns.
int64_t BlockColumns(const memory::desc& weights) {
  constexpr int kColumns = 1;  // of the two dimensions
#if DNNL_VERSION_MAJOR >= 3
  const auto sizes = weights.get_inner_blks();
  const auto which = weights.get_inner_idxs();
  const int count = weights.get_inner_nblks();
#else
  const auto& blocks = weights.data.format_desc.blocking;
  const auto& sizes = blocks.inner_blks;
  const auto& which = blocks.inner_idxs;
  const int count = blocks.inner_nblks;
#endif
  int64_t columns = 1;
  for (int i = 0; i < count; ++i) {
    if (which[i] == kColumns) columns *= sizes[i];
  }
  return columns > 1 ? columns : 0;
}

memory::desc BiasOf(int64_t out) {
  return memory::desc({1, out}, memory::data_type::f32, memory::format_tag::ab);
}

// Primitives of one shape: for `most` rows, for fewer multiples of 8, and for 1
// to 7.
class Steps {
 public:
  struct Step {
    int64_t rows;
    memory::desc x, y;
    dnnl::matmul primitive;
    memory::desc scratch;
    std::string kernel;  // oneDNN's name
  };

  // [rows,in] [in,out]. *weights: with any layout, the first step fixes it.
  // most: a multiple of 8.
  Steps(const dnnl::engine& engine, int64_t most, int64_t in, int64_t out,
        DType dtype, memory::desc* weights)
      : bias_(BiasOf(out)), most_(most) {
    const auto add = [&](int64_t rows) {
      Add(engine, RowMajor(rows, in, ToDnnl(dtype)),
          RowMajor(rows, out, ToDnnl(dtype)), rows, weights);
    };
    for (int64_t rows = most; rows >= 8; rows -= 8) add(rows);
    for (int64_t rows = 7; rows >= 1; --rows) add(rows);
  }

  // The step that takes the most of `rows` rows.
  const Step& For(int64_t rows) const {
    if (rows >= most_) return steps_[0];
    const int64_t eights = most_ / 8;
    return rows >= 8 ? steps_[eights - rows / 8] : steps_[eights + 7 - rows];
  }
  // Whether `all`, of more rows, takes as many by the same kernels.
  bool SameKernels(const Steps& all) const {
    return std::all_of(steps_.begin(), steps_.end(), [&](const Step& step) {
      return all.For(step.rows).kernel == step.kernel;
    });
  }
  const memory::desc& bias() const { return bias_; }
  int64_t scratch_bytes() const { return scratch_bytes_; }

 private:
  void Add(const dnnl::engine& engine, const memory::desc& x,
           const memory::desc& y, int64_t rows, memory::desc* weights) {
    const auto desc = MakePrimitiveDesc(engine, x, *weights, bias_, y);
    *weights = desc.weights_desc();
    steps_.push_back({rows, x, y, dnnl::matmul(desc), desc.scratchpad_desc(),
                      desc.impl_info_str()});
    scratch_bytes_ =
        std::max<int64_t>(scratch_bytes_, desc.scratchpad_desc().get_size());
  }

  const memory::desc bias_;
  const int64_t most_;
  std::vector<Step> steps_;
  int64_t scratch_bytes_ = 0;
};

// What products of one shape share.
class Plan {
 public:
  // A part of the columns.
  struct Part {
    memory::desc weights;
    std::vector<int64_t> offsets;  // where each is in the weights, in elements
    std::unique_ptr<const Steps> steps;  // of few rows
  };

  Plan(const dnnl::engine& engine, int64_t in, int64_t out, DType dtype)
      : in(in),
        out(out),
        dtype(dtype),
        weights({in, out}, ToDnnl(dtype), memory::format_tag::any),
        steps(engine, kProductRows, in, out, dtype, &weights) {
    AddParts(engine);
    scratch_bytes =
        std::max(steps.scratch_bytes(),
                 part.steps == nullptr ? 0 : part.steps->scratch_bytes());
  }

  int32_t parts() const {
    return part.steps == nullptr ? 1
                                 : static_cast<int32_t>(part.offsets.size());
  }

  const int64_t in, out;
  const DType dtype;
  memory::desc weights;
  const Steps steps;
  Part part;  // without steps: the columns are in no parts
  int64_t scratch_bytes = 0;

 private:
  // Where oneDNN has the same kernels for them.
  void AddParts(const dnnl::engine& engine) {
    const int64_t block = BlockColumns(weights);
    if (block == 0 || out % block != 0) return;
    const int32_t count = ColumnParts(out / block);
    if (count == 1) return;
    const int64_t columns = out / count;
    try {
      for (int64_t first = 0; first < out; first += columns) {
        const auto some = weights.submemory_desc({in, columns}, {0, first});
        if (first == 0) part.weights = some;
        part.offsets.push_back(OffsetOf(some));
      }
      auto few = std::make_unique<Steps>(engine, kFewRows, in, columns, dtype,
                                         &part.weights);
      if (few->SameKernels(steps)) part.steps = std::move(few);
    } catch (const dnnl::error& error) {
      // Otherwise oneDNN takes no part of these weights.
      if (error.status == dnnl_out_of_memory) throw;
    }
  }
};

class OneDnnProduct : public Product {
 public:
  OneDnnProduct(const dnnl::engine& engine, std::shared_ptr<const Plan> plan,
                const LinearWeights& source, AlignedBuffer packed)
      : engine_(engine),
        plan_(std::move(plan)),
        packed_(std::move(packed)),
        bias_(source.bias) {
    // [out,in] of the checkpoint is [in,out] with the first index fastest.
    memory from(memory::desc({plan_->in, plan_->out}, memory::data_type::f32,
                             memory::format_tag::ba),
                engine_, const_cast<float*>(source.weight.data.data()));
    memory to(plan_->weights, engine_, packed_.data());
    dnnl::stream stream(engine_);
    dnnl::reorder(from, to).execute(stream, from, to);
    stream.wait();
  }

  int64_t scratch_bytes() const override { return plan_->scratch_bytes; }
  int32_t column_parts() const override { return plan_->parts(); }

  absl::Status Run(const void* x, int64_t rows, void* y,
                   void* scratch) const override {
    return Multiply(plan_->steps, plan_->weights, 0, 0, plan_->out, x, rows, y,
                    scratch);
  }

  absl::Status RunColumns(const void* x, int64_t rows, int32_t part, void* y,
                          void* scratch) const override {
    const Plan::Part& some = plan_->part;
    const int64_t columns = plan_->out / column_parts();
    return Multiply(*some.steps, some.weights, some.offsets[part],
                    part * columns, columns, x, rows, y, scratch);
  }

 private:
  // first_column .. + columns - 1; their weights begin at `offset` elements.
  absl::Status Multiply(const Steps& steps, const memory::desc& weights,
                        int64_t offset, int64_t first_column, int64_t columns,
                        const void* x, int64_t rows, void* y,
                        void* scratch) const {
    const int64_t size = DTypeBytes(plan_->dtype);
    auto* from = static_cast<char*>(const_cast<void*>(x));
    auto* to = static_cast<char*>(y);
    char* const packed = static_cast<char*>(packed_.data()) + offset * size;
    float* const bias = const_cast<float*>(bias_.data()) + first_column;
    const OneThread one_thread;
    try {
      dnnl::stream stream(engine_);
      const memory weights_memory(weights, engine_, packed);
      const memory bias_memory(steps.bias(), engine_, bias);
      while (rows > 0) {
        const Steps::Step& step = steps.For(rows);
        step.primitive.execute(
            stream,
            {{DNNL_ARG_SRC, memory(step.x, engine_, from)},
             {DNNL_ARG_WEIGHTS, weights_memory},
             {DNNL_ARG_BIAS, bias_memory},
             {DNNL_ARG_DST, memory(step.y, engine_, to)},
             {DNNL_ARG_SCRATCHPAD, memory(step.scratch, engine_, scratch)}});
        from += step.rows * plan_->in * size;
        to += step.rows * columns * size;
        rows -= step.rows;
      }
      stream.wait();
    } catch (const dnnl::error& error) {
      return FromException(error);
    }
    return absl::OkStatus();
  }

  const dnnl::engine engine_;
  const std::shared_ptr<const Plan> plan_;
  const AlignedBuffer packed_;
  const std::vector<float> bias_;
};

// Keeps oneDNN from AMX, whose bf16 kernels sum a row in another order in a
// large block than in a small one: the same text would have other bits in other
// company. The first call into oneDNN must be this; later ones change nothing.
void KeepFromAmx() {
  static const auto done =
      HasAmx() ? dnnl::set_max_cpu_isa(dnnl::cpu_isa::avx512_core_bf16)
               : dnnl::status::success;
  static_cast<void>(done);
}

class OneDnnProductFactory : public ProductFactory {
 public:
  explicit OneDnnProductFactory(DType dtype) : dtype_(dtype) { KeepFromAmx(); }

  absl::StatusOr<std::unique_ptr<Product>> Create(
      const LinearWeights& weights) override {
    const int64_t in = weights.weight.cols, out = weights.weight.rows;
    const OneThread one_thread;
    try {
      if (!engine_) engine_ = dnnl::engine(dnnl::engine::kind::cpu, 0);
      std::shared_ptr<const Plan>& plan = plans_[{in, out}];
      if (plan == nullptr)
        plan = std::make_shared<Plan>(engine_, in, out, dtype_);
      AlignedBuffer packed(plan->weights.get_size());
      if (packed.data() == nullptr) {
        return absl::ResourceExhaustedError(
            "no memory for the packed weights of a layer");
      }
      return std::unique_ptr<Product>(absl::make_unique<OneDnnProduct>(
          engine_, plan, weights, std::move(packed)));
    } catch (const dnnl::error& error) {
      return FromException(error);
    }
  }

 private:
  const DType dtype_;
  dnnl::engine engine_;
  std::map<std::pair<int64_t, int64_t>, std::shared_ptr<const Plan>> plans_;
};

}  // namespace

std::unique_ptr<ProductFactory> OneDnnProducts(DType dtype) {
  return absl::make_unique<OneDnnProductFactory>(dtype);
}

}  // namespace cpu
}  // namespace encoderd
