// What a server says, or a text holds, does not control the terminal.
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/fake_encoder_service.h"
#include "tests/unit/client/encoderctl_fixture.h"

namespace encoderd::ctl {
namespace {

using encoderd::testing::FakeEncoderService;
using encoderd::testing::FakeError;
using ::testing::HasSubstr;

// Sets a terminal's title; then the same by the one-character form of ESC ].
constexpr char kRude[] = "a\x1b]0;title\x07 \xc2\x9d\x30;title\xc2\x9c\x7f";
constexpr char kShown[] =
    "a\\x1b]0;title\\x07 \\xc2\\x9d0;title\\xc2\\x9c\\x7f";

class RudeService : public FakeEncoderService {
 public:
  grpc::Status GetModel(grpc::ServerContext* context,
                        const v1::GetModelRequest* request,
                        v1::Model* model) override {
    const grpc::Status status =
        FakeEncoderService::GetModel(context, request, model);
    model->set_name(kRude);
    (*model->mutable_prompts())["query"] = kRude;
    return status;
  }
  grpc::Status Tokenize(grpc::ServerContext* context,
                        const v1::TokenizeRequest* request,
                        v1::TokenizeResponse* response) override {
    const grpc::Status status =
        FakeEncoderService::Tokenize(context, request, response);
    for (v1::TokenizedInput& input : *response->mutable_inputs()) {
      input.set_tokens(0, kRude);
    }
    return status;
  }
  grpc::Status InspectPositions(
      grpc::ServerContext* context, const v1::InspectPositionsRequest* request,
      v1::InspectPositionsResponse* response) override {
    const grpc::Status status =
        FakeEncoderService::InspectPositions(context, request, response);
    response->set_model(kRude);
    response->set_position_scheme(kRude);
    return status;
  }
};

// Whether a terminal would take a part of `text` for a command.
bool Controls(const std::string& text) {
  for (size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<uint8_t>(text[i]);
    if ((byte < 0x20 && byte != '\n') || byte == 0x7f) return true;
    const bool upper = byte == 0xc2 && i + 1 < text.size() &&
                       static_cast<uint8_t>(text[i + 1]) < 0xa0;
    if (upper) return true;
  }
  return false;
}

class EncoderctlTerminalTest : public EncoderctlTest {
 protected:
  int Run(std::vector<std::string> arguments) {
    arguments.push_back(absl::StrCat("--target=", rude_.target()));
    return RunBare(arguments);
  }

  RudeService rude_;
};

TEST_F(EncoderctlTerminalTest, TextShowsControlCharactersAsEscapes) {
  const std::vector<std::vector<std::string>> commands = {
      {"models", "fake"},
      {"tokenize", "one"},
      {"inspect"},
      {"bench", "--count=1", "--warm_up=0s", "--words=3"},
      {"similarity", kRude, "two"}};
  for (const std::vector<std::string>& command : commands) {
    ASSERT_EQ(Run(command), kExitOk) << err_;
    EXPECT_FALSE(Controls(out_)) << command[0] << out_;
    EXPECT_THAT(out_, HasSubstr(kShown)) << command[0];
  }
}

TEST_F(EncoderctlTerminalTest, JsonHasThemAsEscapes) {
  const std::vector<std::vector<std::string>> commands = {
      {"models", "fake", "--format=jsonl"},
      {"tokenize", "one", "--format=jsonl"},
      {"inspect", "--json=-"},
      {"bench", "--count=1", "--warm_up=0s", "--words=3", "--format=jsonl"}};
  for (const std::vector<std::string>& command : commands) {
    ASSERT_EQ(Run(command), kExitOk) << err_;
    EXPECT_FALSE(Controls(out_)) << command[0] << out_;
    const auto json = nlohmann::json::parse(out_, nullptr, false);
    EXPECT_THAT(json.dump(), HasSubstr(nlohmann::json(kRude).dump()))
        << command[0];
  }
}

TEST_F(EncoderctlTerminalTest, SoDoErrors) {
  const auto refuse = [this](int calls) {
    rude_.FailNext(calls, FakeError(grpc::StatusCode::INVALID_ARGUMENT, kRude,
                                    kRude, {{"input_index", "0"}}));
  };
  refuse(1);
  EXPECT_EQ(Run({"embed", "one"}), kExitFailed);
  EXPECT_FALSE(Controls(err_)) << err_;
  EXPECT_THAT(err_, HasSubstr(kShown));
  refuse(1000);  // bench has several calls in flight
  EXPECT_EQ(Run({"bench", "one", "--count=1", "--warm_up=0s"}), kExitFailed);
  EXPECT_FALSE(Controls(err_)) << err_;
}

}  // namespace
}  // namespace encoderd::ctl
