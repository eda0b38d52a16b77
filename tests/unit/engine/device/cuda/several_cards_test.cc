// Several cards as one device, over a runtime that has as many as it is told.
#include <gmock/gmock.h>

#include <map>
#include <thread>

#include "engine/device/cuda/host/open_cards.h"
#include "engine/encoder.h"
#include "tests/support/cuda/emulated_card.h"
#include "tests/support/random_model.h"
#include "tests/support/temp_folder.h"
#include "tests/unit/engine/device/cuda/test_card.h"

namespace encoderd {
namespace cuda {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;

class SeveralCardsTest : public ::testing::Test {
 protected:
  SeveralCardsTest() { runtime_->devices = 3; }

  // Few rows, since loops compute them.
  static CardOptions Few(const std::string& folder = "") {
    CardOptions options;
    options.dtype = "bf16";
    options.tuning_folder = folder;
    options.prove_paths = false;
    options.most_tuned_rows = 16;
    return options;
  }
  absl::StatusOr<std::unique_ptr<Device>> Open(
      std::vector<int32_t> ordinals) const {
    CardLibraries libraries;
    libraries.plain = [] { return TestLibrary(); };
    return OpenCards(runtime_, libraries, std::move(ordinals), Few());
  }
  absl::StatusOr<std::unique_ptr<const Encoder>> Build(
      std::vector<int32_t> ordinals) const {
    auto device = Open(std::move(ordinals));
    if (!device.ok()) return device.status();
    return Encoder::Build(*std::move(device), RandomConfig(shape_),
                          RandomCheckpoint(shape_, 1).get());
  }
  std::string Refusal(std::vector<int32_t> ordinals) const {
    return std::string(Build(std::move(ordinals)).status().message());
  }

  absl::StatusOr<std::vector<float>> RunPass(Session* session) const {
    std::mt19937 random(1);
    PackedBatch batch;
    for (const int32_t length : {3, 40, 17})
      batch.Append(RandomSequence(length, RandomLimits(shape_), &random),
                   RandomLimits(shape_));
    ForwardResult result;
    const absl::Status status =
        session->Run(batch, std::vector<SequenceOutput>(3), &result);
    if (!status.ok()) return status;
    return result.values;
  }

  RandomShape shape_;
  const std::shared_ptr<EmulatedRuntime> runtime_ =
      std::make_shared<EmulatedRuntime>();
};

TEST_F(SeveralCardsTest, PutsTheWeightsOnEachAndDealsSessionsOutInTurn) {
  shape_.relative_bias = true;
  const auto encoder = Build({2, 0}).value();
  const int64_t weights = runtime_->allocated_bytes(0);
  EXPECT_GT(weights, 0);
  EXPECT_EQ(runtime_->allocated_bytes(1), 0);
  EXPECT_EQ(runtime_->allocated_bytes(2), weights);
  EXPECT_EQ(encoder->device().preferred_sessions(), 4);
  EXPECT_EQ(encoder->device().least_sessions(), 2);

  std::vector<std::unique_ptr<Session>> sessions;
  for (int i = 0; i < 4; ++i)
    sessions.push_back(encoder->NewSession({100}).value());
  EXPECT_EQ(runtime_->allocated_bytes(0), runtime_->allocated_bytes(2));
  EXPECT_EQ((runtime_->allocated_bytes(0) - weights) % 2, 0);
  EXPECT_GT(runtime_->allocated_bytes(0), weights);
}

TEST_F(SeveralCardsTest, GivesTheSameBitsOnEachOnASeparateThread) {
  const auto alone = Build({0}).value();
  const auto want = RunPass(alone->NewSession({100}).value().get()).value();
  for (const std::vector<int32_t>& ordinals :
       {std::vector<int32_t>{0, 1, 2}, std::vector<int32_t>{}}) {
    const auto encoder = Build(ordinals).value();
    EXPECT_EQ(encoder->device().least_sessions(), 3);
    std::vector<std::unique_ptr<Session>> sessions;
    for (int i = 0; i < 3; ++i)
      sessions.push_back(encoder->NewSession({100}).value());
    std::vector<absl::StatusOr<std::vector<float>>> got(sessions.size());
    std::vector<std::thread> threads;
    for (size_t i = 0; i < sessions.size(); ++i)
      threads.emplace_back([&, i] { got[i] = RunPass(sessions[i].get()); });
    for (std::thread& thread : threads) thread.join();
    for (const auto& values : got) {
      ASSERT_TRUE(values.ok()) << values.status();
      EXPECT_EQ(*values, want);
    }
    // One thread may also run Sessions of several cards, one by one.
    for (const auto& session : sessions)
      EXPECT_EQ(RunPass(session.get()).value(), want);
  }
}

TEST_F(SeveralCardsTest, NamesEveryCardAndWhatItTakes) {
  const auto encoder = Build({0, 1}).value();
  EXPECT_THAT(encoder->device().name(),
              HasSubstr("cuda:0 (Emulated Card, compute capability 9.0"));
  EXPECT_THAT(encoder->device().name(), HasSubstr(" + cuda:1 (Emulated Card"));
  const std::vector<std::string>& notes = encoder->device().notes();
  ASSERT_GE(notes.size(), 2U);
  EXPECT_THAT(notes[0], HasSubstr("cuda:0: the model takes"));
  EXPECT_THAT(notes[1], HasSubstr("cuda:1: the model takes"));
}

TEST_F(SeveralCardsTest, RefusesCardsThatAreNotThereTwiceThereOrOfTwoKinds) {
  EXPECT_EQ(Refusal({0, 3}), "cuda:3 does not exist; 3 devices are visible");
  EXPECT_EQ(Refusal({1, 0, 1}), "cuda:1 is named twice");
  runtime_->other_cards[2] = {"Other Card", 8, 0, int64_t{1} << 30};
  EXPECT_THAT(Refusal({0, 1, 2}),
              HasSubstr("cuda:0 is Emulated Card (compute capability 9.0), "
                        "cuda:2 is Other Card (compute capability 8.0): the "
                        "GPUs of a server must be of one kind"));
  EXPECT_THAT(Refusal({}), HasSubstr("of one kind"));
  EXPECT_TRUE(Build({0, 1}).ok());
  EXPECT_TRUE(Build({2}).ok());
}

TEST_F(SeveralCardsTest, NamesTheCardThatHasTooLittleMemory) {
  runtime_->other_free_bytes[1] = 1 << 14;
  const absl::Status status = Build({0, 1}).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("cuda:1: the model takes"));
  EXPECT_THAT(std::string(status.message()), HasSubstr("16384 bytes"));
  EXPECT_EQ(runtime_->allocations(), 0);
}

TEST_F(SeveralCardsTest, GivesEverythingBackWhereTheSecondCardFails) {
  for (const char* call : {"UseDevice", "Allocate", "CopyToDeviceAndWait"}) {
    for (int number = 0; number < 200; number += 7) {
      runtime_->Fail(call, 701, number);
      const bool built = Build({0, 1}).ok();
      runtime_->Fail(call, 0);
      EXPECT_EQ(runtime_->allocations(), 0) << call;
      if (built) break;
    }
  }
}

TEST_F(SeveralCardsTest, LosesTheCardThatFailedAndSaysWhich) {
  const auto encoder = Build({0, 1}).value();
  const auto first = encoder->NewSession({100}).value();
  const auto second = encoder->NewSession({100}).value();
  runtime_->Fail("Synchronize", 700);
  EXPECT_EQ(RunPass(second.get()).status().code(), absl::StatusCode::kDataLoss);
  const absl::Status later = RunPass(second.get()).status();
  EXPECT_EQ(later.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(std::string(later.message()), HasSubstr("cuda:1 was lost"));
  EXPECT_TRUE(RunPass(first.get()).ok());
}

// Products that are timed and never computed with. check: of each Check, where
// it fails.
class IdleLibrary : public EmulatedLibrary {
 public:
  explicit IdleLibrary(absl::Status check = absl::OkStatus())
      : check_(std::move(check)) {}
  absl::Status Check(const ProductArgs& args, const Algorithm& algorithm,
                     absl::Span<const int64_t> rows) override {
    return check_.ok() ? EmulatedLibrary::Check(args, algorithm, rows) : check_;
  }
  absl::StatusOr<std::unique_ptr<Product>> Create(
      const ProductArgs& args, const Algorithm& algorithm) override {
    return std::unique_ptr<Product>(new Idle);
  }

 private:
  struct Idle : Product {
    absl::Status Run(const void* x, int64_t rows, void* y,
                     const OpStream& stream) const override {
      return absl::OkStatus();
    }
  };
  const absl::Status check_;
};

TEST_F(SeveralCardsTest, ProvesEveryProductOnEachCard) {
  CardLibraries libraries;
  libraries.plain = [] { return std::make_unique<IdleLibrary>(); };
  auto device = OpenCards(runtime_, libraries, {0, 1}, Few());
  ASSERT_TRUE(device.ok()) << device.status();
  const auto encoder = Encoder::Build(*std::move(device), RandomConfig(shape_),
                                      RandomCheckpoint(shape_, 1).get())
                           .value();
  std::map<std::string, int> proved;
  for (const std::string& note : encoder->device().notes()) {
    if (note.find("products bf16") != note.npos) ++proved[note.substr(0, 6)];
  }
  // Q|K|V, attention's output, in and out of the inner.
  EXPECT_THAT(proved, ElementsAre(Pair("cuda:0", 4), Pair("cuda:1", 4)));
}

TEST_F(SeveralCardsTest, RefusesACardThatCannotServeAsTheFirstOneDoes) {
  const TempFolder folder;
  for (const std::string& tuning : {folder.path(), std::string()}) {
    for (const absl::Status& check : {absl::InvalidArgumentError("not here"),
                                      absl::InternalError("not now")}) {
      int cards = 0;
      CardLibraries libraries;
      libraries.plain = [&] {
        return std::make_unique<IdleLibrary>(cards++ == 0 ? absl::OkStatus()
                                                          : check);
      };
      auto device = OpenCards(runtime_, libraries, {0, 1}, Few(tuning));
      ASSERT_TRUE(device.ok()) << device.status();
      const absl::Status status =
          Encoder::Build(*std::move(device), RandomConfig(shape_),
                         RandomCheckpoint(shape_, 1).get())
              .status();
      EXPECT_EQ(status.code(), absl::StatusCode::kInternal);
      EXPECT_THAT(
          std::string(status.message()),
          HasSubstr(
              absl::IsInternal(check)
                  ? "cuda:1: checking the algorithm of products bf16"
                  : "cuda:1: loops rejects the algorithm that products bf16"));
      EXPECT_THAT(std::string(status.message()), HasSubstr(check.message()));
      EXPECT_EQ(runtime_->allocations(), 0);
    }
  }
}

}  // namespace
}  // namespace cuda
}  // namespace encoderd
