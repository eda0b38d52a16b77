// A layer whose norms come first, with rotary positions and a window, op by op
// through an Executor: against its formulas in double, and the same bits by
// graphs, padded and in a batch.
#include <gmock/gmock.h>

#include <cmath>

#include "tests/unit/engine/device/cuda/test_card.h"

namespace encoderd {
namespace cuda {
namespace {

using ::testing::Contains;

constexpr int32_t kVocabulary = 9, kHeads = 2, kHeadSize = 16, kPairs = 8;
constexpr int32_t kHidden = kHeads * kHeadSize, kInner = 48;
constexpr int32_t kMaxTokens = 256, kMaxLength = 100;
constexpr Reach kReach = {6, 3};
constexpr float kEps = 1e-5f;

using Rows = std::vector<std::vector<double>>;

struct Weights {
  Weights() {
    std::mt19937 random(1);
    const auto linear = [&](int64_t in, int64_t out) {
      const float scale = 1.0f / std::sqrt(static_cast<float>(in));
      LinearWeights made;
      made.weight = {out, in,
                     RandomValues(out * in, DType::kF32, &random, scale)};
      made.bias = RandomValues(out, DType::kF32, &random, 0.1f);
      return made;
    };
    const auto norm = [&] {
      return NormWeights{RandomValues(kHidden, DType::kF32, &random),
                         RandomValues(kHidden, DType::kF32, &random)};
    };
    tables.token =
        HostMatrix{kVocabulary, kHidden,
                   RandomValues(kVocabulary * kHidden, DType::kF32, &random)};
    tables.norm = norm();  // of no use
    first = norm();
    second = norm();
    last = norm();
    qkv = linear(kHidden, 3 * kHidden);
    output = linear(kHidden, kHidden);
    in = linear(kHidden, kInner);
    out = linear(kInner, kHidden);
    cos = sin = {kMaxLength, kPairs, {}};
    for (int32_t p = 0; p < kMaxLength; ++p) {
      for (int32_t i = 0; i < kPairs; ++i) {
        const double angle = p * std::pow(100.0, -i / double{kPairs});
        cos.data.push_back(static_cast<float>(std::cos(angle)));
        sin.data.push_back(static_cast<float>(std::sin(angle)));
      }
    }
  }
  EmbeddingWeights tables;
  NormWeights first, second, last;
  LinearWeights qkv, output, in, out;
  HostMatrix cos, sin;
};

// The same in double; ids of one sequence.
class Formula {
 public:
  explicit Formula(const Weights& weights) : w_(weights) {}

  std::vector<double> States(const std::vector<int32_t>& ids) const {
    Rows x;
    for (const int32_t id : ids) {
      const float* row = w_.tables.token.floats.data() + id * kHidden;
      x.emplace_back(row, row + kHidden);
    }
    Add(Times(Attend(Times(Norm(x, w_.first), w_.qkv)), w_.output), &x);
    Rows inner = Times(Norm(x, w_.second), w_.in);
    for (auto& row : inner) {
      for (double& value : row)
        value = 0.5 * value * std::erfc(-value / std::sqrt(2.0));
    }
    Add(Times(inner, w_.out), &x);
    std::vector<double> states;
    for (const auto& row : Norm(x, w_.last))
      states.insert(states.end(), row.begin(), row.end());
    return states;
  }

 private:
  static void Add(const Rows& y, Rows* x) {
    for (size_t r = 0; r < y.size(); ++r) {
      for (size_t c = 0; c < y[r].size(); ++c) (*x)[r][c] += y[r][c];
    }
  }
  static Rows Norm(Rows x, const NormWeights& norm) {
    for (auto& row : x) {
      double mean = 0, variance = 0;
      for (const double value : row) mean += value / kHidden;
      for (const double value : row)
        variance += (value - mean) * (value - mean) / kHidden;
      for (int32_t c = 0; c < kHidden; ++c) {
        row[c] = (row[c] - mean) / std::sqrt(variance + kEps) * norm.gain[c] +
                 norm.bias[c];
      }
    }
    return x;
  }
  static Rows Times(const Rows& x, const LinearWeights& linear) {
    Rows y;
    for (const auto& row : x) {
      std::vector<double> products(linear.bias.begin(), linear.bias.end());
      for (size_t o = 0; o < products.size(); ++o) {
        for (size_t i = 0; i < row.size(); ++i)
          products[o] += row[i] * linear.weight.data[o * row.size() + i];
      }
      y.push_back(products);
    }
    return y;
  }
  Rows Attend(Rows qkv) const {
    const auto length = static_cast<int32_t>(qkv.size());
    Rows context(length, std::vector<double>(kHidden, 0.0));
    for (int32_t r = 0; r < length; ++r) {
      for (int32_t at = 0; at < 2 * kHidden; at += kHeadSize) {
        for (int32_t i = 0; i < kPairs; ++i) {
          const double c = w_.cos.data[r * kPairs + i];
          const double s = w_.sin.data[r * kPairs + i];
          double& low = qkv[r][at + i];
          double& high = qkv[r][at + i + kPairs];
          const double turned = low * c - high * s;
          high = high * c + low * s;
          low = turned;
        }
      }
    }
    for (int32_t head = 0; head < kHidden; head += kHeadSize) {
      for (int32_t i = 0; i < length; ++i) {
        double sum = 0;
        std::vector<double> weights(length, 0.0);
        for (int32_t j = 0; j < length; ++j) {
          if (i - j > kReach.left || j - i > kReach.right) continue;
          double score = 0;
          for (int32_t d = head; d < head + kHeadSize; ++d)
            score += qkv[i][d] * qkv[j][kHidden + d];
          sum += weights[j] = std::exp(score / std::sqrt(double{kHeadSize}));
        }
        for (int32_t j = 0; j < length; ++j) {
          for (int32_t d = head; d < head + kHeadSize; ++d)
            context[i][d] += weights[j] / sum * qkv[j][2 * kHidden + d];
        }
      }
    }
    return context;
  }

  const Weights& w_;
};

// Where the residual stream lies after a norm: where it was, or in the
// product's rows.
enum class Stream { kStays, kMoves };

class Layer {
 public:
  explicit Layer(std::unique_ptr<Device> device) : device_(std::move(device)) {
    Weights w;
    w.output.residual_follows = w.out.residual_follows = true;
    tables_ = device_->PrepareEmbeddings(w.tables, kEps).value();
    rotation_ = device_->PrepareRotation(w.cos, w.sin).value();
    first_ = device_->PrepareNorm(w.first, kEps).value();
    second_ = device_->PrepareNorm(w.second, kEps).value();
    last_ = device_->PrepareNorm(w.last, kEps).value();
    qkv_ = device_->PrepareLinear(w.qkv, Activation::kNone).value();
    output_ = device_->PrepareLinear(w.output, Activation::kNone).value();
    in_ = device_->PrepareLinear(w.in, Activation::kGeluErf).value();
    out_ = device_->PrepareLinear(w.out, Activation::kNone).value();
    ExecutorLimits limits;
    limits.max_batch_tokens = limits.max_batch_sequences = kMaxTokens;
    limits.model.max_len = kMaxLength;
    limits.model.hidden_size = kHidden;
    limits.model.num_attention_heads = kHeads;
    limits.model.intermediate_size = kInner;
    limits.model.pre_norm = true;
    limits.model.reaches = {kReach};
    executor_ = device_->NewExecutor(limits).value();
    for (const int64_t cols :
         {kHidden, kHidden, 3 * kHidden, kHidden, kHidden, kInner})
      scratch_.push_back(executor_->Allocate(kMaxTokens, cols).value());
  }

  // The states of all tokens, after the last norm.
  std::vector<float> States(const std::vector<std::vector<int32_t>>& sequences,
                            Stream stream = Stream::kStays) {
    PackedBatch batch;
    batch.cu_seqlens = {0};
    for (const auto& ids : sequences) {
      for (size_t p = 0; p < ids.size(); ++p) {
        batch.token_ids.push_back(ids[p]);
        batch.position_ids.push_back(static_cast<int32_t>(p));
        batch.segment_ids.push_back(0);
      }
      const auto length = static_cast<int32_t>(ids.size());
      batch.cu_seqlens.push_back(batch.cu_seqlens.back() + length);
      batch.max_seqlen = std::max(batch.max_seqlen, length);
    }
    const BatchRef ids = executor_->Upload(batch);
    std::vector<Matrix> m;
    for (const Matrix& matrix : scratch_)
      m.push_back(RowsOf(matrix, 0, ids.rows));
    Matrix x = m[0], y = m[4];
    const Matrix n = m[1], qkv = m[2], context = m[3], inner = m[5];
    const auto keep = [&](const std::unique_ptr<DeviceNorm>& norm) {
      executor_->Run(
          AddNormOp{y, x, norm->norm, stream == Stream::kStays ? x : y, n});
      if (stream == Stream::kMoves) std::swap(x, y);
    };
    executor_->Run(EmbedOp{tables_->tables, ids, NormRef(), x});
    executor_->Run(AddNormOp{x, Matrix(), first_->norm, Matrix(), n});
    executor_->Run(ProductOp{n, qkv_.get(), qkv});
    executor_->Run(RotateOp{qkv, kHeads, kHeadSize, rotation_->cos,
                            rotation_->sin, rotation_->pairs,
                            ids.position_ids});
    AttentionOp attention;
    attention.qkv = qkv;
    attention.heads = kHeads;
    attention.head_size = kHeadSize;
    attention.reach = kReach;
    attention.context = context;
    executor_->Run(attention);
    executor_->Run(ProductOp{context, output_.get(), y});
    keep(second_);
    executor_->Run(ProductOp{n, in_.get(), inner});
    executor_->Run(ProductOp{inner, out_.get(), y});
    keep(last_);
    std::vector<PoolWork> work;
    for (size_t b = 0; b < sequences.size(); ++b) {
      const int32_t first = batch.cu_seqlens[b];
      work.push_back({int64_t{first} * kHidden, first,
                      batch.cu_seqlens[b + 1] - first, Pooling::kCls,
                      /*states=*/true, /*normalize=*/false});
    }
    ForwardResult result;
    result.values.resize(batch.num_tokens() * kHidden);
    executor_->Run(PoolOp{n, work.data(), static_cast<int64_t>(work.size()),
                          result.values.data()});
    const absl::Status status = executor_->Finish(&result);
    EXPECT_TRUE(status.ok()) << status;
    EXPECT_EQ(result.note, "");
    return result.values;
  }

 private:
  const std::unique_ptr<Device> device_;
  std::unique_ptr<DeviceEmbeddings> tables_;
  std::unique_ptr<DeviceRotation> rotation_;
  std::unique_ptr<DeviceNorm> first_, second_, last_;
  std::unique_ptr<DeviceLinear> qkv_, output_, in_, out_;
  std::unique_ptr<Executor> executor_;
  std::vector<Matrix> scratch_;  // x, n, qkv, context, y, inner
};

std::vector<int32_t> RandomIds(int32_t length, std::mt19937* random) {
  std::vector<int32_t> ids(length);
  for (int32_t& id : ids) id = static_cast<int32_t>((*random)() % kVocabulary);
  return ids;
}

// Norms make values of up to some units; a 16-bit element rounds them and all
// that they are computed from, some dozens of times.
TEST(PreNormPassTest, EqualsItsFormulas) {
  const Weights weights;
  for (const DType dtype : kDTypes) {
    Layer layer(OpenTestCard(dtype));
    std::mt19937 random(2);
    for (const int32_t length : {1, 2, 7, 16, 17, 64, 65, 100}) {
      const auto ids = RandomIds(length, &random);
      const std::vector<double> want = Formula(weights).States(ids);
      for (const Stream stream : {Stream::kStays, Stream::kMoves}) {
        const std::vector<float> got = layer.States({ids}, stream);
        for (size_t i = 0; i < want.size(); ++i) {
          const double most = dtype == DType::kF32 ? 1e-5 : 24 * Epsilon(dtype);
          ASSERT_NEAR(got[i], want[i], most * (1 + std::fabs(want[i])))
              << DTypeName(dtype) << ", length " << length << ", value " << i;
        }
      }
    }
  }
}

TEST(PreNormPassTest, GivesTheSameBitsByGraphsAndInAnyBatch) {
  for (const DType dtype : kDTypes) {
    Layer plain(NewCudaDevice(TestRuntime(), TestProducts(), 0,
                              DTypeName(dtype), "dtype", /*graphs=*/false)
                    .value());
    Layer by_graphs(OpenTestCard(dtype));
    std::mt19937 random(3);
    std::vector<std::vector<int32_t>> own;
    std::vector<std::vector<float>> alone;
    for (const int32_t length : {1, 5, 16, 20, 64, 70}) {
      own.push_back(RandomIds(length, &random));
      alone.push_back(plain.States({own.back()}));
    }
    for (int batch = 0; batch < 30; ++batch) {
      std::vector<std::vector<int32_t>> sequences;
      std::vector<float> want;
      for (int i = 1 + static_cast<int>(random() % 3); i > 0; --i) {
        const size_t which = random() % own.size();
        sequences.push_back(own[which]);
        want.insert(want.end(), alone[which].begin(), alone[which].end());
      }
      const std::vector<float> got = by_graphs.States(sequences);
      ASSERT_EQ(std::memcmp(got.data(), want.data(), 4 * want.size()), 0)
          << DTypeName(dtype) << ", batch " << batch;
    }
  }
}

TEST(PreNormPassTest, LetsTheProductAddTheResidualWhereItsRowsBecomeTheSum) {
  for (const Stream stream : {Stream::kStays, Stream::kMoves}) {
    std::vector<std::string> ops;
    auto device = OpenTestCard(DType::kBF16);
    ASSERT_TRUE(device->ObserveOps(
        [&](const OpTime& time) { ops.push_back(time.op); }));
    Layer layer(std::move(device));
    layer.States({{1, 2, 3}}, stream);
    const bool stays = stream == Stream::kStays;
    EXPECT_THAT(ops, Contains("product 48 -> 32").Times(stays ? 1 : 0));
    EXPECT_THAT(ops,
                Contains("product 48 -> 32 + residual").Times(stays ? 0 : 1));
    EXPECT_THAT(ops, Contains("add_layer_norm").Times(stays ? 2 : 0));
    EXPECT_THAT(ops, Contains("rotate").Times(1));
  }
}

}  // namespace
}  // namespace cuda
}  // namespace encoderd
