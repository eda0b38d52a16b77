// A path of attention is admitted as it is built, and refused where it is wrong
// on purpose. Over the emulation, whose memory a test can change.
#include "engine/device/cuda/host/attention_proof.h"

#include <gmock/gmock.h>

#include "engine/device/cuda/host/attention_proof_inputs.h"
#include "tests/support/cuda/emulated_card.h"
#include "tests/unit/engine/device/cuda/test_card.h"

namespace encoderd {
namespace cuda {
namespace {

using ::testing::HasSubstr;

constexpr AttentionPath kFastPaths[] = {
    AttentionPath::kWarp, AttentionPath::kWhole64, AttentionPath::kWhole128};

class AttentionProofTest : public ::testing::Test {
 protected:
  absl::Status Prove(AttentionPath path,
                     const AttentionStart& fast = kStartAttention,
                     DType element = DType::kBF16, int32_t head_size = 32,
                     bool biased = true, const Reach& reach = {}) {
    const absl::Status status =
        ProveAttention(&runtime_, element, head_size, 12, biased, reach, path,
                       nullptr, &figures_, fast);
    EXPECT_EQ(runtime_.allocations(), 0);
    return status;
  }
  void ExpectRefused(AttentionPath path, const AttentionStart& fast,
                     const std::string& text) {
    const absl::Status status = Prove(path, fast);
    EXPECT_EQ(status.code(), absl::StatusCode::kInternal);
    EXPECT_THAT(std::string(status.message()), HasSubstr(text));
    EXPECT_THAT(std::string(status.message()), HasSubstr(PathName(path)));
  }

  EmulatedRuntime runtime_;
  std::string figures_;
};

TEST_F(AttentionProofTest, AdmitsEveryPathAsItIsBuilt) {
  for (const DType element : {DType::kF16, DType::kBF16}) {
    for (const AttentionPath path : kFastPaths) {
      for (const int32_t head_size : {8, 32, 64, 128}) {
        if (!HasPath(element, head_size, path)) continue;
        const absl::Status status =
            Prove(path, kStartAttention, element, head_size,
                  /*biased=*/head_size != 64);
        EXPECT_TRUE(status.ok()) << status;
        EXPECT_THAT(figures_, HasSubstr("of the bound"));
        RecordProperty(PathName(path) + std::to_string(head_size), figures_);
      }
    }
  }
}

TEST_F(AttentionProofTest, AdmitsEveryPathWithinAReach) {
  for (const AttentionPath path : kFastPaths) {
    for (const Reach& reach : {Reach{-1, 0}, Reach{64, 64}, Reach{9, 2}}) {
      for (const DType element : {DType::kF16, DType::kBF16}) {
        const absl::Status status =
            Prove(path, kStartAttention, element, 32, reach.right == 0, reach);
        EXPECT_TRUE(status.ok()) << status;
        EXPECT_THAT(figures_, HasSubstr("from the formula 0."));
        RecordProperty(std::string(PathName(path)) + DTypeName(element) +
                           std::to_string(reach.left),
                       figures_);
      }
    }
  }
}

TEST_F(AttentionProofTest, RefusesAPathThatSeesAKeyBeyondItsReach) {
  const AttentionStart wrong = [](AttentionOp op, const OpStream& stream) {
    ++op.reach.right;
    return Start(op, stream);
  };
  for (const AttentionPath path : kFastPaths) {
    const absl::Status status =
        Prove(path, wrong, DType::kBF16, 32, false, {-1, 0});
    EXPECT_EQ(status.code(), absl::StatusCode::kInternal);
    EXPECT_THAT(std::string(status.message()), HasSubstr("reach -1 and 0"));
  }
}

// Both paths read the reach by the same code.
TEST_F(AttentionProofTest, RefusesAReachThatBothPathsTakeForAnother) {
  for (const DType element : {DType::kF16, DType::kBF16}) {
    for (const AttentionPath path : kFastPaths) {
      for (const Reach& by : {Reach{1, 0}, Reach{-1, 0}, Reach{0, 1}}) {
        const AttentionStart wrong = [&](AttentionOp op,
                                         const OpStream& stream) {
          op.reach.left += by.left;
          op.reach.right += by.right;
          return Start(op, stream);
        };
        const absl::Status status =
            ProveAttention(&runtime_, element, 32, 12, false, {6, 3}, path,
                           nullptr, &figures_, wrong, wrong);
        EXPECT_EQ(status.code(), absl::StatusCode::kInternal);
        EXPECT_THAT(figures_, HasSubstr("from the formula "));
      }
    }
  }
}

TEST_F(AttentionProofTest, HasNothingToProveWhereNoFastPathIsTaken) {
  const AttentionStart never = [](const AttentionOp&, const OpStream&) {
    return 1;
  };
  EXPECT_TRUE(Prove(AttentionPath::kGeneral, never).ok());
  EXPECT_TRUE(Prove(AttentionPath::kWarp, never, DType::kF32).ok());
  EXPECT_TRUE(Prove(AttentionPath::kWhole128, never, DType::kF16, 128).ok());
  EXPECT_EQ(figures_, "nothing to prove");
}

TEST_F(AttentionProofTest, RefusesARowThatIsNotWritten) {
  for (const AttentionPath path : kFastPaths) {
    ExpectRefused(
        path,
        [](AttentionOp op, const OpStream& stream) {
          op.work_count = std::max<int64_t>(1, op.work_count - 1);
          return Start(op, stream);
        },
        "largest difference inf of the bound");
  }
}

TEST_F(AttentionProofTest, RefusesAnotherBiasOrNone) {
  for (const AttentionPath path : kFastPaths) {
    ExpectRefused(
        path,
        [](AttentionOp op, const OpStream& stream) {
          op.bias = nullptr;
          op.bias_stride = 0;
          return Start(op, stream);
        },
        "; 0 of 4 sequences");
    ExpectRefused(
        path,
        [](AttentionOp op, const OpStream& stream) {
          ++op.bias;
          --op.bias_stride;
          return Start(op, stream);
        },
        "; 0 of 4 sequences");
  }
}

TEST_F(AttentionProofTest, RefusesOneValueThatIsOffByALittleMoreThanItMayBe) {
  // The last query's first column: by 1/32 of the column's largest value.
  for (const AttentionPath path : kFastPaths) {
    ExpectRefused(
        path,
        [](const AttentionOp& op, const OpStream& stream) {
          const int code = Start(op, stream);
          const AttentionWork& last = op.work[op.work_count - 1];
          const int64_t row = last.first + last.length - 1;
          const int64_t hidden = int64_t{op.heads} * op.head_size;
          const auto* values = static_cast<const uint16_t*>(op.qkv.data);
          auto* context =
              static_cast<uint16_t*>(op.context.data) + row * hidden;
          float v = 0;
          for (int64_t r = last.first; r <= row; ++r) {
            const uint16_t bits = values[(3 * r + 2) * hidden];
            v = std::max(v, std::fabs(emulation::FromBf16(bits)));
          }
          *context = emulation::ToBf16(emulation::FromBf16(*context) + v / 32);
          return code;
        },
        "of the bound");
    EXPECT_THAT(figures_, ::testing::MatchesRegex(".* [12]\\.[0-9]* of .*"));
  }
}

TEST_F(AttentionProofTest, RefusesBitsThatDependOnCompany) {
  // One bit of one value, well within the bound, where there is company.
  for (const AttentionPath path : kFastPaths) {
    ExpectRefused(
        path,
        [](const AttentionOp& op, const OpStream& stream) {
          const int code = Start(op, stream);
          if (op.work_count > 1) *static_cast<uint16_t*>(op.context.data) ^= 1;
          return code;
        },
        "; 1 of 4 sequences have different bits alone and in a batch");
  }
}

TEST_F(AttentionProofTest, ReportsEveryCallThatFails) {
  for (const char* call : {"Allocate", "AllocatePinned", "CopyToDeviceAndWait",
                           "FillWithNaNs", "CopyToHost", "Synchronize"}) {
    runtime_.Fail(call, 701);
    const absl::Status status = Prove(AttentionPath::kWarp);
    EXPECT_THAT(std::string(status.message()), HasSubstr("attention's proof"))
        << call;
    EXPECT_EQ(figures_, "did not run");
  }
  const absl::Status status =
      Prove(AttentionPath::kWarp,
            [](const AttentionOp&, const OpStream&) { return 700; });
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
}

TEST(AttentionProofInputsTest, AreOfThePathsLengthsAndSpreadWidely) {
  for (const AttentionPath path : kFastPaths) {
    const AttentionProofInputs inputs =
        MakeAttentionProofInputs(DType::kF16, 32, 12, path);
    const AttentionRule rule = {DType::kF16, 32};
    for (const int32_t length : inputs.lengths)
      EXPECT_EQ(rule.Of(length), path);
    EXPECT_EQ(inputs.lengths.back(), PathTokens(path));
    EXPECT_NE(rule.Of(inputs.lengths.front() - 1),
              inputs.lengths.front() == 1 ? AttentionPath::kGeneral : path);
    float least = INFINITY, most = 0;
    for (const uint16_t bits : inputs.qkv) {
      least = std::min(least, std::fabs(emulation::FromHalf(bits)));
      most = std::max(most, std::fabs(emulation::FromHalf(bits)));
    }
    EXPECT_LT(least, 0x1p-13f);
    EXPECT_GT(most, 0x1p6f);
    EXPECT_LE(inputs.qkv.size() * 2 * 2, size_t{1} << 20);
  }
}

}  // namespace
}  // namespace cuda
}  // namespace encoderd
