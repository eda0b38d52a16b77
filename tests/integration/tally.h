// What callers count, in the words of /metrics, so that the two can be
// compared sample by sample. Tally is thread-safe.
#ifndef ENCODERD_TESTS_INTEGRATION_TALLY_H_
#define ENCODERD_TESTS_INTEGRATION_TALLY_H_

#include <gtest/gtest.h>

#include <cstdint>
#include <mutex>
#include <string>

#include "absl/strings/str_cat.h"
#include "tests/support/samples.h"
#include "tests/support/test_server.h"

namespace encoderd {

class Tally {
 public:
  void Add(const std::string& method, const std::string& model,
           const grpc::Status& status) {
    const auto code = static_cast<absl::StatusCode>(status.error_code());
    const std::string call =
        absl::StrCat("method=\"", method, "\",model=\"", model, "\",outcome=\"",
                     OutcomeOf(code), "\"");
    const std::lock_guard<std::mutex> lock(mu_);
    ++durations_[absl::StrCat("{", call, "}")];
    ++requests_[absl::StrCat("{code=\"", absl::StatusCodeToString(code), "\",",
                             call, "}")];
    if (!status.ok()) Reject(model, ReadError(status).reason);
  }
  void AddInput(const std::string& model, const std::string& reason) {
    const std::lock_guard<std::mutex> lock(mu_);
    Reject(model, reason);
  }
  void AddTokens(const std::string& model, uint64_t tokens) {
    if (tokens == 0) return;  // of a call that was refused
    const std::lock_guard<std::mutex> lock(mu_);
    tokens_[absl::StrCat("{model=\"", model, "\"}")] +=
        static_cast<double>(tokens);
  }

  void ExpectIn(const std::string& text) {
    EXPECT_EQ(NotZero(All(text, "encoderd_requests_total")), requests_);
    EXPECT_EQ(NotZero(All(text, "encoderd_request_duration_seconds_count")),
              durations_);
    EXPECT_EQ(NotZero(All(text, "encoderd_rejections_total")), rejections_);
    EXPECT_EQ(NotZero(All(text, "encoderd_tokens_total")), tokens_);
    Samples in_batches = All(text, "encoderd_batch_tokens_sum");
    for (const auto& [model, tokens] :
         All(text, "encoderd_duplicate_tokens_total")) {
      in_batches[model] += tokens;
    }
    EXPECT_EQ(NotZero(in_batches), tokens_);
  }

 private:
  void Reject(const std::string& model, const std::string& reason) {
    ++rejections_[absl::StrCat("{model=\"", model, "\",reason=\"", reason,
                               "\"}")];
  }

  std::mutex mu_;
  Samples requests_, durations_, rejections_, tokens_;
};

}  // namespace encoderd

#endif  // ENCODERD_TESTS_INTEGRATION_TALLY_H_
