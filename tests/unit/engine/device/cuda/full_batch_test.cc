// Promise 1 at full size, on a card opened as the server opens it: products by
// bucket of rows, fast paths that proved themselves, graphs, two Sessions at a
// time. The same ids give the same bits alone and in batches of up to 8192
// tokens.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <ostream>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_join.h"
#include "engine/device/cuda/products/bucketed_product.h"
#include "engine/encoder.h"
#include "tests/support/random_model.h"
#include "tests/unit/engine/device/cuda/test_card.h"

namespace encoderd {
namespace cuda {
namespace {

struct Numbers {
  std::string name;
  std::string dtype;
  std::string operands = "dtype";
  int32_t hidden = 384;
};
void PrintTo(const Numbers& numbers, std::ostream* stream) {
  *stream << numbers.name;
}

// Every dtype at MiniLM's width; the widths of BERT-base and BERT-large, whose
// products have other tiles.
const Numbers kNumbers[] = {{"Bf16", "bf16"},
                            {"Fp16", "fp16"},
                            {"Fp32", "fp32"},
                            {"Fp8", "bf16", "fp8"},
                            {"Bf16Base", "bf16", "dtype", 768},
                            {"Bf16Large", "bf16", "dtype", 1024}};

RandomShape ShapeOf(const Numbers& numbers) {
  RandomShape shape;
  shape.hidden = numbers.hidden;
  shape.heads = shape.hidden == 384 ? 12 : shape.hidden / 64;
  if (IsEmulated()) {
    shape.hidden = shape.hidden == 384 ? 32 : shape.hidden / 16;
    shape.heads = 2;
  }
  shape.inner = 4 * shape.hidden;
  shape.positions = IsEmulated() ? 80 : 512;
  return shape;
}

class FullBatchTest : public ::testing::TestWithParam<Numbers> {
 protected:
  void SetUp() override {
    if (GetParam().operands == "fp8" && !HasE4m3())
      GTEST_SKIP() << "fp8 products need compute capability 9.0";
    const RandomShape shape = ShapeOf(GetParam());
    limits_ = RandomLimits(shape);
    encoder_ =
        Encoder::Build(OpenProvenCard(GetParam().dtype, GetParam().operands),
                       RandomConfig(shape), RandomCheckpoint(shape, 1).get())
            .value();
    std::mt19937 random(17);
    // Alone at each border of attention's paths and blocks, then any length.
    for (const int32_t length : {1, 2, 15, 16, 17, 31, 32, 33, 63, 64, 65, 127,
                                 128, 129, 255, 256, 257, 511, 512})
      AddSequence(length, &random);
    for (int i = 0; i < 24; ++i) {
      AddSequence(1 + static_cast<int32_t>(random() % shape.positions),
                  &random);
    }
    const auto session = encoder_->NewSession({most_tokens()}).value();
    for (size_t i = 0; i < sequences_.size(); ++i) {
      alone_.push_back(Run(session.get(), {i}).values);
      for (const float value : alone_.back()) ASSERT_TRUE(std::isfinite(value));
    }
  }

  static int64_t most_tokens() {
    return IsEmulated() ? 160 : kBucketRows.back();
  }

  void AddSequence(int32_t length, std::mt19937* random) {
    if (length > limits_.max_len) return;
    sequences_.push_back(RandomSequence(length, limits_, random));
  }

  ForwardResult Run(Session* session, const std::vector<size_t>& which) const {
    PackedBatch batch;
    for (const size_t i : which) batch.Append(sequences_[i], limits_);
    SequenceOutput output;
    output.normalize = true;
    ForwardResult result;
    const absl::Status status = session->Run(
        batch, std::vector<SequenceOutput>(which.size(), output), &result);
    EXPECT_TRUE(status.ok()) << status;
    return result;
  }

  // Sequences of `tokens` tokens in all; the first one, of one token, fills
  // what is left.
  std::vector<size_t> Fill(int64_t tokens, std::mt19937* random) const {
    std::vector<size_t> which;
    while (tokens > 0) {
      size_t i = (*random)() % sequences_.size();
      for (int t = 0; t < 8 && sequences_[i].size() > tokens; ++t)
        i = (*random)() % sequences_.size();
      if (sequences_[i].size() > tokens) i = 0;
      which.push_back(i);
      tokens -= sequences_[i].size();
    }
    std::shuffle(which.begin(), which.end(), *random);
    return which;
  }

  // How many sequences have other bits in batches of these counts of tokens.
  int64_t Differences(const std::vector<int64_t>& counts, uint32_t seed) const {
    const auto session = encoder_->NewSession({most_tokens()}).value();
    std::mt19937 random(seed);
    int64_t differences = 0;
    for (const int64_t tokens : counts) {
      const std::vector<size_t> which = Fill(tokens, &random);
      const ForwardResult result = Run(session.get(), which);
      if (result.offsets.size() != which.size() + 1) return -1;
      for (size_t k = 0; k < which.size(); ++k) {
        const absl::Span<const float> got = result.Output(k);
        const std::vector<float>& want = alone_[which[k]];
        if (got.size() != want.size() ||
            std::memcmp(got.data(), want.data(), 4 * want.size()) != 0)
          ++differences;
      }
    }
    return differences;
  }

  // What the card found out at start: for the message of a failure.
  std::string Notes() const {
    return absl::StrJoin(encoder_->device().notes(), "\n");
  }

  IdLimits limits_;
  std::unique_ptr<const Encoder> encoder_;
  std::vector<TokenSequence> sequences_;
  std::vector<std::vector<float>> alone_;
};

// Tokens of batches: both ends of each bucket of products, and random ones.
std::vector<int64_t> Counts(int64_t most, int random_ones, uint32_t seed) {
  std::vector<int64_t> counts;
  for (size_t bucket = 0; bucket < kBucketRows.size(); ++bucket) {
    for (const int64_t rows :
         {FewestRows(bucket), kBucketRows[bucket] - 1, kBucketRows[bucket]}) {
      if (rows <= most) counts.push_back(rows);
    }
  }
  // By their logarithm: ten tokens are as likely as thousands.
  std::mt19937 random(seed);
  std::uniform_real_distribution<double> logarithm(
      0, std::log(static_cast<double>(most)));
  for (int i = 0; i < random_ones; ++i)
    counts.push_back(std::llround(std::exp(logarithm(random))));
  counts.push_back(most);
  return counts;
}

TEST_P(FullBatchTest, GivesTheSameBitsInBatchesOfEverySizeInTwoSessions) {
  int64_t differences[2] = {-1, -1};
  std::vector<std::thread> threads;
  for (uint32_t t = 0; t < 2; ++t) {
    threads.emplace_back([&, t] {
      differences[t] = Differences(
          Counts(most_tokens(), IsEmulated() ? 2 : 100, 100 + t), 2 + t);
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(differences[0], 0) << Notes();
  EXPECT_EQ(differences[1], 0) << Notes();
}

INSTANTIATE_TEST_SUITE_P(Numbers, FullBatchTest, ::testing::ValuesIn(kNumbers),
                         [](const ::testing::TestParamInfo<Numbers>& info) {
                           return info.param.name;
                         });

}  // namespace
}  // namespace cuda
}  // namespace encoderd
