// What a pass leaves out where one row of each sequence is needed of the last
// layer, and that no bit changes with it, in any form of layers.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <random>
#include <utility>
#include <variant>
#include <vector>

#include "engine/encoder.h"
#include "tests/support/forwarding_device.h"
#include "tests/support/random_model.h"
#include "tests/unit/engine/device/test_devices.h"

namespace encoderd {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;

constexpr int32_t kHidden = 64;
constexpr int32_t kInner = 96;

// The rows of each product of the feed-forward layers' first halves.
class CountingExecutor : public Executor {
 public:
  CountingExecutor(std::unique_ptr<Executor> executor, bool attends_needed_rows,
                   std::vector<int64_t>* rows)
      : executor_(std::move(executor)),
        attends_needed_rows_(attends_needed_rows),
        rows_(*rows) {}

  absl::StatusOr<Matrix> Allocate(int64_t rows, int64_t cols) override {
    return executor_->Allocate(rows, cols);
  }
  int64_t scratch_bytes() const override { return executor_->scratch_bytes(); }
  int64_t row_block() const override { return executor_->row_block(); }
  bool attends_needed_rows() const override { return attends_needed_rows_; }
  BatchRef Upload(const PackedBatch& batch) override {
    return executor_->Upload(batch);
  }
  void Run(const Op& op) override {
    const auto* product = std::get_if<ProductOp>(&op);
    if (product != nullptr && product->y.cols == kInner)
      rows_.push_back(product->y.rows);
    executor_->Run(op);
  }
  absl::Status Finish(ForwardResult* result) override {
    return executor_->Finish(result);
  }

 private:
  const std::unique_ptr<Executor> executor_;
  const bool attends_needed_rows_;
  std::vector<int64_t>& rows_;
};

class CountingDevice : public ForwardingDevice {
 public:
  CountingDevice(bool attends_needed_rows, std::vector<int64_t>* rows)
      : ForwardingDevice(TestDevices().front().Open()),
        attends_needed_rows_(attends_needed_rows),
        rows_(rows) {}

  absl::StatusOr<std::unique_ptr<Executor>> NewExecutor(
      const ExecutorLimits& limits) const override {
    auto executor = ForwardingDevice::NewExecutor(limits);
    if (!executor.ok()) return executor.status();
    return std::unique_ptr<Executor>(std::make_unique<CountingExecutor>(
        *std::move(executor), attends_needed_rows_, rows_));
  }

 private:
  const bool attends_needed_rows_;
  std::vector<int64_t>* const rows_;
};

// The rows of each first feed-forward product in a pass of two layers over
// sequences of these lengths.
std::vector<int64_t> Rows(const std::vector<int32_t>& lengths,
                          const std::vector<Pooling>& poolings,
                          bool attends_needed_rows = true) {
  RandomShape shape;
  shape.hidden = kHidden;
  shape.inner = kInner;
  shape.layers = 2;
  const IdLimits limits = RandomLimits(shape);
  std::vector<int64_t> rows;
  const auto encoder =
      Encoder::Build(
          std::make_unique<CountingDevice>(attends_needed_rows, &rows),
          RandomConfig(shape), RandomCheckpoint(shape, 1).get())
          .value();
  std::mt19937 random(1);
  PackedBatch batch;
  std::vector<SequenceOutput> outputs(lengths.size());
  for (size_t b = 0; b < lengths.size(); ++b) {
    batch.Append(RandomSequence(lengths[b], limits, &random), limits);
    outputs[b].pooling = poolings[b % poolings.size()];
  }
  ForwardResult result;
  EXPECT_TRUE(
      encoder->NewSession({2048}).value()->Run(batch, outputs, &result).ok());
  return rows;
}

TEST(NeededRowsTest, ComputesOneRowOfEachSequenceInTheLastLayer) {
  EXPECT_THAT(Rows({5, 20, 1}, {Pooling::kCls, Pooling::kLastToken}),
              ElementsAre(26, 3));
}

TEST(NeededRowsTest, ComputesAllRowsWhereOneSequenceNeedsThem) {
  EXPECT_THAT(Rows({5, 20, 1}, {Pooling::kCls, Pooling::kMean}),
              ElementsAre(26, 26));
}

TEST(NeededRowsTest, PicksRowsOnADeviceThatAttendsToAll) {
  const std::vector<Pooling> poolings = {Pooling::kCls, Pooling::kLastToken};
  EXPECT_THAT(Rows({5, 20, 1}, poolings, /*attends_needed_rows=*/false),
              ElementsAre(26, 3));
  EXPECT_THAT(Rows({60, 60, 8}, poolings, /*attends_needed_rows=*/false),
              ElementsAre(128, 3));
}

// A row block has 128 rows.
TEST(NeededRowsTest, ComputesAllRowsWhereSuchADeviceTakesSeveralBlocks) {
  EXPECT_THAT(Rows({60, 60, 9}, {Pooling::kCls}, /*attends_needed_rows=*/false),
              ElementsAre(120, 9, 120, 9));
}

// Row blocks of 128 rows: the first layer takes 25 sequences of 5 tokens at a
// time, the last one multiplies the rows of as many such groups as fit.
TEST(NeededRowsTest, GathersTheRowsOfManyGroups) {
  std::vector<int64_t> rows =
      Rows(std::vector<int32_t>(200, 5), {Pooling::kCls});
  ASSERT_EQ(rows.size(), 10u);
  EXPECT_THAT(std::vector<int64_t>(rows.end() - 2, rows.end()),
              ElementsAre(125, 75));
  rows.resize(8);
  EXPECT_THAT(rows, Each(125));
}

class NeededRowsBitsTest : public ::testing::TestWithParam<TestDevice> {
 protected:
  // The same with sequences of which all rows are needed in the batch.
  void ExpectBitsOfAllRows(const RandomShape& shape) const {
    const IdLimits limits = RandomLimits(shape);
    const auto encoder = Encoder::Build(GetParam().Open(), RandomConfig(shape),
                                        RandomCheckpoint(shape, 1).get())
                             .value();
    // 64: all rows of a batch fit in one row block.
    for (const int64_t max_batch_tokens : {64, 1024}) {
      const auto session = encoder->NewSession({max_batch_tokens}).value();
      std::mt19937 random(9);
      PackedBatch batch;
      std::vector<SequenceOutput> outputs;
      for (const int32_t length : {20, 9, 1, 12, 2, 64, 1, 1, 33, 64}) {
        if (batch.num_tokens() + length > max_batch_tokens - 8) break;
        batch.Append(RandomSequence(length, limits, &random), limits);
        SequenceOutput output;
        output.pooling =
            outputs.size() % 2 == 0 ? Pooling::kLastToken : Pooling::kCls;
        output.normalize = outputs.size() % 3 == 0;
        outputs.push_back(output);
      }
      outputs[1].kind = SequenceOutput::Kind::kStates;
      outputs[1].layer = shape.layers - 1;
      ForwardResult needed_rows, all_rows;
      ASSERT_TRUE(session->Run(batch, outputs, &needed_rows).ok());
      batch.Append(RandomSequence(8, limits, &random), limits);
      SequenceOutput states;
      states.kind = SequenceOutput::Kind::kStates;
      states.layer = shape.layers;
      for (const SequenceOutput& last : {SequenceOutput(), states}) {
        outputs.push_back(last);
        ASSERT_TRUE(session->Run(batch, outputs, &all_rows).ok());
        all_rows.values.resize(needed_rows.values.size());
        EXPECT_EQ(needed_rows.values, all_rows.values);
        outputs.pop_back();
      }
    }
  }
};

TEST_P(NeededRowsBitsTest, AreThoseOfAllRowsWithNormsAfterEachHalf) {
  RandomShape shape;
  ExpectBitsOfAllRows(shape);
  shape.layers = 1;
  ExpectBitsOfAllRows(shape);
  shape.hidden = 75;
  shape.heads = 3;
  shape.inner = 77;
  ExpectBitsOfAllRows(shape);
}

TEST_P(NeededRowsBitsTest, AreThoseOfAllRowsWithSharedLayersAndABias) {
  RandomShape shape;
  shape.embedding = 19;
  shape.distinct_layers = 1;
  shape.relative_bias = true;
  ExpectBitsOfAllRows(shape);
}

TEST_P(NeededRowsBitsTest, AreThoseOfAllRowsWithNormsFirst) {
  RandomShape shape;
  shape.pre_norm = true;
  ExpectBitsOfAllRows(shape);
  shape.outer_norms = false;
  ExpectBitsOfAllRows(shape);
  shape.layers = 1;
  ExpectBitsOfAllRows(shape);
}

TEST_P(NeededRowsBitsTest, AreThoseOfAllRowsWithAGateRotationsAndWindows) {
  RandomShape shape;
  shape.pre_norm = shape.gated = true;
  shape.thetas = {160000, 10000};
  for (const Reach& last : {Reach(), Reach{-1, 0}, Reach{5, 5}, Reach{0, 3}}) {
    shape.reaches = {{8, 8}, last};
    ExpectBitsOfAllRows(shape);
  }
}

INSTANTIATE_TEST_SUITE_P(Devices, NeededRowsBitsTest,
                         ::testing::ValuesIn(TestDevicesAndInt8()),
                         [](const ::testing::TestParamInfo<TestDevice>& info) {
                           return TestDeviceName(info.param);
                         });

}  // namespace
}  // namespace encoderd
