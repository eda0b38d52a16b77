// The engine's numbers against the reference implementation's, from ids, so
// that the tokenizer has no part in it.
#include "tests/golden/golden.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <iostream>

#include "engine/device/cpu/cpu_info.h"
#include "tests/golden/golden_model.h"
#include "tests/support/status_matchers.h"
#include "tests/support/temp_folder.h"
#include "tests/support/tolerances.h"

namespace encoderd {
namespace {

struct Worst {
  double max_difference = 0;           // of normalized vectors
  double max_relative_difference = 0;  // of states and other vectors
  double min_cosine = 1;
};

// Runs a golden's sequences in batches of several lengths, as a server would,
// then the shortest and longest alone, and compares every output.
class Run {
 public:
  static absl::StatusOr<Worst> Batched(const std::string& folder,
                                       const std::string& dtype,
                                       const std::string& products,
                                       const Golden& golden) {
    auto device = OpenDevice("cpu", dtype, "", products);
    if (!device.ok()) return device.status();
    const absl::StatusOr<GoldenModel> model =
        OpenGoldenModel(folder, *std::move(device));
    if (!model.ok()) return model.status();
    Run run(*model, golden);
    const absl::Status status = run.Batches();
    if (!status.ok()) return status;
    return run.worst_;
  }

 private:
  struct Wanted {
    int64_t sequence;
    SequenceOutput output;
    const std::vector<float>* reference;
  };

  Run(const GoldenModel& model, const Golden& golden)
      : config_(model.config),
        limits_(model.limits),
        golden_(golden),
        session_(model.session.get()) {}

  absl::Status Batches() {
    std::vector<Wanted> all;
    for (size_t b = 0; b < golden_.sequences.size(); ++b) {
      all.push_back({static_cast<int64_t>(b),
                     {.kind = SequenceOutput::Kind::kPooled,
                      .pooling = config_.pooling,
                      .normalize = config_.normalize},
                     &golden_.pooled[b]});
    }
    for (const GoldenStates& states : golden_.states) {
      all.push_back(
          {states.sequence,
           {.kind = SequenceOutput::Kind::kStates, .layer = states.layer},
           &states.values});
    }
    std::vector<Wanted> batch;
    int64_t tokens = 0;
    for (const Wanted& wanted : all) {
      const int64_t n = golden_.sequences[wanted.sequence].size();
      if (tokens + n > session_->max_batch_tokens()) {
        const absl::Status status = Compute(batch);
        if (!status.ok()) return status;
        batch.clear();
        tokens = 0;
      }
      batch.push_back(wanted);
      tokens += n;
    }
    absl::Status status = Compute(batch);
    for (const Wanted& wanted : all) {
      const int64_t n = golden_.sequences[wanted.sequence].size();
      if (n <= 2 || n + 1 >= config_.max_len) status.Update(Compute({wanted}));
    }
    return status;
  }

  absl::Status Compute(const std::vector<Wanted>& wanted) {
    PackedBatch batch;
    std::vector<SequenceOutput> outputs;
    for (const Wanted& one : wanted) {
      const TokenSequence& sequence = golden_.sequences[one.sequence];
      const absl::Status valid = ValidateSequence(sequence, limits_);
      if (!valid.ok()) return valid;
      batch.Append(sequence, limits_);
      outputs.push_back(one.output);
    }
    ForwardResult result;
    const absl::Status status = session_->Run(batch, outputs, &result);
    if (!status.ok()) return status;
    for (size_t i = 0; i < wanted.size(); ++i) {
      const absl::Span<const float> values = result.Output(i);
      if (values.size() != wanted[i].reference->size()) {
        return absl::InternalError("an output of another size");
      }
      const Difference difference =
          Compare(values.data(), *wanted[i].reference);
      const bool unit = outputs[i].kind == SequenceOutput::Kind::kPooled &&
                        outputs[i].normalize;
      double& worst =
          unit ? worst_.max_difference : worst_.max_relative_difference;
      const double size = unit ? 1.0 : std::max(1.0, difference.largest);
      if (!(difference.max_difference / size <= worst)) {
        worst = difference.max_difference / size;
      }
      if (!(difference.cosine >= worst_.min_cosine)) {
        worst_.min_cosine = difference.cosine;
      }
    }
    return absl::OkStatus();
  }

  const ModelConfig& config_;
  const IdLimits& limits_;
  const Golden& golden_;
  Session* session_;
  Worst worst_;
};

class GoldenTest : public testing::TestWithParam<std::string> {
 protected:
  absl::StatusOr<Worst> RunAll(const std::string& dtype,
                               const std::string& products = "dtype") {
    const auto folder = GoldenFolder(GetParam(), folder_);
    if (!folder.ok()) return folder.status();
    const absl::StatusOr<Golden> golden = ReadGolden(GetParam());
    if (!golden.ok()) return golden.status();
    auto worst = Run::Batched(*folder, dtype, products, *golden);
    if (worst.ok()) {
      std::cout << GetParam() << " " << dtype << ", products " << products
                << ": max |d| " << worst->max_difference << ", relative "
                << worst->max_relative_difference << ", min cosine 1 - "
                << 1 - worst->min_cosine << "\n";
    }
    return worst;
  }

 private:
  const TempFolder folder_;
};

TEST_P(GoldenTest, Fp32EqualsTheReferenceImplementation) {
  const auto worst = RunAll("fp32");
  ASSERT_THAT(worst, IsOk());
  EXPECT_LE(worst->max_difference, kFp32Vector);
  EXPECT_LE(worst->max_relative_difference, kFp32Share);
  EXPECT_GE(worst->min_cosine, kFp32Cosine);
}

TEST_P(GoldenTest, Bf16StaysCloseToTheReferenceImplementation) {
  const auto worst = RunAll("bf16");
  ASSERT_THAT(worst, IsOk());
  EXPECT_GE(worst->min_cosine, kBf16Cosine);
}

TEST_P(GoldenTest, Int8ProductsStayCloseToTheReferenceImplementation) {
  if (!cpu::HasVnni()) GTEST_SKIP() << "this CPU has no avx512_vnni";
  const auto worst = RunAll("bf16", "int8");
  ASSERT_THAT(worst, IsOk());
  EXPECT_GE(worst->min_cosine, kInt8Cosine);
}

INSTANTIATE_TEST_SUITE_P(Models, GoldenTest, testing::ValuesIn(GoldenNames()),
                         [](const testing::TestParamInfo<std::string>& info) {
                           return info.param;
                         });

}  // namespace
}  // namespace encoderd
