// What encoderctl says is to be done about an error.
#include "client/cpp/encoderctl/remedy.h"

#include <map>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/cpp/error.h"
#include "client/cpp/grpc_status.h"
#include "client/cpp/handshake.h"
#include "gtest/gtest.h"

namespace encoderd::ctl {
namespace {

class RemedyTest : public ::testing::Test {
 protected:
  // A command with these flags.
  void Add(const std::string& name) {
    flags_.AddString(name, "X", "", &value_);
  }
  std::string Of(const absl::Status& status) const {
    return Remedy(status, flags_);
  }
  // Of gRPC's words about a connection that was never made.
  std::string OfNoConnection(grpc::StatusCode code,
                             const std::string& words) const {
    const grpc::Status explained = client::ExplainHandshake(
        grpc::Status(code, words), /*tls=*/false, "host:1");
    return Of(client::FromGrpc(explained, /*first_input=*/0));
  }
  std::string OfReason(absl::StatusCode code, const std::string& reason,
                       const std::map<std::string, std::string>& metadata = {
                           {"input_index", "0"}}) const {
    return Of(client::MakeError(code, "words", reason, metadata));
  }

  std::string value_;
  Flags flags_;
};

constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;

TEST_F(RemedyTest, NamesWhatTakesATextAndOnlyWhereTheCommandHasIt) {
  EXPECT_EQ(OfReason(kInvalid, "INPUT_TOO_LONG"), "");
  EXPECT_EQ(OfReason(kInvalid, "EMPTY_INPUT"), "; remove it");
  Add("truncate");
  EXPECT_EQ(OfReason(kInvalid, "INPUT_TOO_LONG"), "; --truncate=end cuts it");
  Add("windows");
  Add("on_error");
  EXPECT_EQ(OfReason(kInvalid, "INPUT_TOO_LONG"),
            "; --truncate=end cuts it, --windows=16 averages windows of it, "
            "--on_error=skip passes over such texts");
  EXPECT_EQ(
      OfReason(kInvalid, "INVALID_UTF8"),
      "; if the file has another encoding: iconv -f ENCODING -t UTF-8 FILE; "
      "--on_error=skip passes over such texts");
  EXPECT_EQ(OfReason(kInvalid, ""), "; --on_error=skip passes over such texts");
  EXPECT_EQ(OfReason(kInvalid, "LAYER_OUT_OF_RANGE", {}), "");
}

TEST_F(RemedyTest, TakesThePlaceOfTheAdviceOfTheServer) {
  for (const char* advice : {": split it, or set options.truncate",
                             ": shorten it, or set options.truncate",
                             ": shorten it; token ids are never cut"}) {
    const auto described = [&](const char* reason) {
      return DescribeInFlags(
          client::MakeError(kInvalid, absl::StrCat("9 tokens", advice), reason,
                            {}),
          flags_);
    };
    flags_ = Flags();
    EXPECT_EQ(
        described("INPUT_TOO_LONG"),
        absl::StrCat("INVALID_ARGUMENT (INPUT_TOO_LONG): 9 tokens", advice));
    Add("truncate");
    EXPECT_EQ(described("INPUT_TOO_LONG"),
              "INVALID_ARGUMENT (INPUT_TOO_LONG): 9 tokens");
    EXPECT_EQ(described("OTHER"),
              absl::StrCat("INVALID_ARGUMENT (OTHER): 9 tokens", advice));
  }
}

TEST_F(RemedyTest, NamesTheFlagsOfSizesAndTime) {
  EXPECT_EQ(OfReason(kInvalid, "TOO_MANY_INPUTS", {}), "");
  EXPECT_EQ(OfReason(absl::StatusCode::kResourceExhausted, "QUEUE_FULL", {}),
            "; wait longer with --timeout");
  Add("batch_size");
  Add("in_flight");
  EXPECT_EQ(OfReason(kInvalid, "TOO_MANY_INPUTS", {}), "; lower --batch_size");
  EXPECT_EQ(OfReason(kInvalid, "REQUEST_TOO_LARGE", {}),
            "; lower --batch_size");
  EXPECT_EQ(OfReason(absl::StatusCode::kResourceExhausted, "QUEUE_FULL", {}),
            "; lower --in_flight, or wait longer with --timeout");
  EXPECT_EQ(OfReason(absl::StatusCode::kUnavailable, "LOADING", {}),
            "; raise --timeout");
  EXPECT_EQ(Of(absl::DeadlineExceededError("x")), "; raise --timeout");
  EXPECT_EQ(OfReason(absl::StatusCode::kDeadlineExceeded, "EXPIRED_IN_QUEUE",
                     {{"max_queue_ms", "100"}}),
            "");
}

TEST_F(RemedyTest, TellsAServerThatIsAwayFromAConnectionThatBroke) {
  const std::pair<const char*, const char*> kFaults[] = {
      {"Connection refused", " (--target or ENCODERD_TARGET)"},
      {"SETTINGS frame", " (--target or ENCODERD_TARGET)"},
      {"http1.x server", "; correct --target or ENCODERD_TARGET"},
      {"No route to host", "; --target or ENCODERD_TARGET sets the address"},
      {"Socket closed", ""},  // TLS may be wanted: the message says it
      {"something new", ""}};
  for (const auto& [cause, remedy] : kFaults) {
    EXPECT_EQ(OfNoConnection(grpc::StatusCode::UNAVAILABLE,
                             std::string("failed to connect to all: ") + cause),
              remedy);
  }
  EXPECT_EQ(OfNoConnection(grpc::StatusCode::UNIMPLEMENTED,
                           "Received http2 header with status: 404"),
            "; correct --target or ENCODERD_TARGET");
  EXPECT_EQ(Of(absl::UnavailableError("Socket closed at host:1")),
            "; the connection broke: repeat the command");
  EXPECT_EQ(OfReason(absl::StatusCode::kUnavailable, "DRAINING", {}), "");
}

TEST_F(RemedyTest, NamesTheTokenAndTheAgeOfTheServer) {
  EXPECT_EQ(
      OfReason(absl::StatusCode::kUnauthenticated, "BEARER_TOKEN_MISSING", {}),
      "; --token_file=FILE or ENCODERD_TOKEN_FILE gives the token");
  EXPECT_EQ(Of(absl::UnimplementedError("unknown service")),
            "; is this server an encoderd, and as new as this program?");
}

}  // namespace
}  // namespace encoderd::ctl
