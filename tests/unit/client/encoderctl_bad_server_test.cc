// What encoderctl leaves in an .npy when the server is not what it was, or is
// none of ours.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/support/patience.h"
#include "tests/unit/client/bulk_runs.h"

namespace encoderd::ctl {
namespace {

using ::testing::HasSubstr;

constexpr int kColumns = encoderd::testing::FakeEncoderService::kHiddenSize;
constexpr size_t kRowBytes = kColumns * sizeof(float);

std::string Lines(int from, int to) {
  std::string lines;
  for (int i = from; i < to; ++i) absl::StrAppend(&lines, "text ", i, "\n");
  return lines;
}

using EncoderctlModelChangeTest = BulkRuns;

TEST_F(EncoderctlModelChangeTest, TheRowsOfTheEarlierModelAreKeptAndNoOthers) {
  constexpr int kBefore = 700;
  constexpr size_t kKept = kNpyHeaderBytes + kBefore * kRowBytes;
  Write("in.txt", Lines(0, kTexts));
  ASSERT_EQ(Run("whole.npy", {}, "in.txt"), kExitOk) << err_;
  const std::string whole = Read(Path("whole.npy"));

  PipedRun run(service_.target(), Path("out.npy"));
  run.Give(Lines(0, kBefore));
  EXPECT_TRUE(
      Eventually([&] { return Read(Path("out.npy")).size() == kKept; }));
  service_.SetPooling(v1::POOLING_CLS);
  run.Give(Lines(kBefore, kTexts));
  EXPECT_EQ(run.End(), kExitFailed);
  EXPECT_THAT(run.err(), HasSubstr("FAILED_PRECONDITION"));
  EXPECT_THAT(run.err(), HasSubstr("the server's model or its settings changed "
                                   "during the job"));
  EXPECT_THAT(run.err(), HasSubstr("700 texts are done by the earlier model; "
                                   "--resume=no discards them and starts "
                                   "over\n"));
  EXPECT_EQ(Read(Path("out.npy")),
            NpyHeader(kBefore, kColumns) +
                whole.substr(kNpyHeaderBytes, kBefore * kRowBytes));

  // Once the server has that model again, the run is resumed.
  service_.SetPooling(v1::POOLING_MEAN);
  EXPECT_EQ(Run("out.npy", {}, "in.txt"), kExitOk) << err_;
  EXPECT_EQ(err_, "encoderctl embed: Resuming: 700 texts already done.\n");
  EXPECT_EQ(Read(Path("out.npy")), whole);
}

// Its states of the text "narrow" have a column less; its vectors may have
// none.
class OddServer : public encoderd::testing::FakeEncoderService {
 public:
  static constexpr int kNarrow = kColumns - 1;

  grpc::Status GetModel(grpc::ServerContext* context,
                        const v1::GetModelRequest* request,
                        v1::Model* model) override {
    const grpc::Status status =
        FakeEncoderService::GetModel(context, request, model);
    if (no_dimensions_) model->set_dimensions(0);
    return status;
  }

  grpc::Status Encode(grpc::ServerContext* context,
                      const v1::EncodeRequest* request,
                      v1::EncodeResponse* response) override {
    const grpc::Status status =
        FakeEncoderService::Encode(context, request, response);
    for (int i = 0; i < response->states_size(); ++i) {
      v1::TokenStates* const states = response->mutable_states(i);
      if (request->inputs(i).text() != "narrow") continue;
      states->set_columns(kNarrow);
      states->mutable_packed()->resize(states->rows() * kNarrow *
                                       sizeof(float));
    }
    return status;
  }

  void HaveNoDimensions() { no_dimensions_ = true; }

 private:
  std::atomic<bool> no_dimensions_{false};
};

class EncoderctlOddServerTest : public ::testing::Test {
 protected:
  int Run(std::vector<std::string> arguments) {
    std::istringstream in;
    std::ostringstream out, err;
    Environment environment{in, out, err};
    arguments.push_back(absl::StrCat("--target=", service_.target()));
    arguments.push_back(absl::StrCat("--output=", npy_));
    const int code = RunEncoderctl(arguments, environment);
    err_ = err.str();
    return code;
  }

  OddServer service_;
  const TempFolder folder_;
  const std::string npy_ = folder_.Path("out.npy");
  std::string err_;
};

TEST_F(EncoderctlOddServerTest, RowsOfAnotherWidthAreNotWritten) {
  EXPECT_EQ(Run({"encode", "one", "narrow", "two"}), kExitFailed);
  EXPECT_THAT(err_, HasSubstr("a row of 5 values after rows of 6"));
  constexpr int kRows = 3;  // of "one", with the special tokens
  const std::string kept = Read(npy_);
  EXPECT_EQ(kept.substr(0, kNpyHeaderBytes), NpyHeader(kRows, kColumns));
  EXPECT_EQ(kept.size(), kNpyHeaderBytes + kRows * kRowBytes);
}

TEST_F(EncoderctlOddServerTest, AServerWhoseVectorsHaveNoValuesIsRefused) {
  service_.HaveNoDimensions();
  EXPECT_EQ(Run({"embed", "one"}), kExitFailed);
  EXPECT_THAT(err_, HasSubstr("the server's vectors have 0 dimensions; is it "
                              "an encoderd?"));
  EXPECT_FALSE(std::filesystem::exists(npy_));
}

}  // namespace
}  // namespace encoderd::ctl
