#include "tests/bench/stream_load.h"

#include <algorithm>
#include <mutex>
#include <thread>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"

namespace encoderd {
namespace {

struct Share {
  int64_t texts = 0;  // 0: until the time is up
  absl::Time until;
  absl::Duration stall;  // 0: none
};

// One stream: the caller's thread writes, a second one reads.
class OneStream {
 public:
  OneStream(v1::Encoder::Stub* stub, std::vector<v1::EmbedRequest> requests,
            const Share& share)
      : requests_(std::move(requests)),
        share_(share),
        stream_(stub->EmbedStream(&context_)) {}

  StreamLoadResult Run() {
    const absl::Time start = absl::Now();
    std::thread reader([this] { ReadAll(); });
    WriteAll();
    reader.join();
    const grpc::Status status = stream_->Finish();
    result_.seconds = absl::ToDoubleSeconds(absl::Now() - start);
    if (!status.ok()) result_.Fail(status.error_message());
    const auto unanswered = std::count_if(waiting_.begin(), waiting_.end(),
                                          [](int64_t n) { return n != 0; });
    if (unanswered > 0) {
      result_.Fail(absl::StrCat(unanswered, " requests were not answered"));
    }
    result_.requests = static_cast<int64_t>(waiting_.size());
    return std::move(result_);
  }

 private:
  void WriteAll() {
    int64_t sent = 0;
    for (size_t i = 0;
         share_.texts > 0 ? sent < share_.texts : absl::Now() < share_.until;
         ++i) {
      v1::EmbedRequest* request = &requests_[i % requests_.size()];
      v1::EmbedRequest shorter;
      const int64_t left = share_.texts > 0 ? share_.texts - sent : INT64_MAX;
      if (left < request->inputs_size()) {
        shorter = *request;
        shorter.mutable_inputs()->DeleteSubrange(
            static_cast<int>(left),
            request->inputs_size() - static_cast<int>(left));
        request = &shorter;
      }
      request->set_request_id(absl::StrCat(i));
      sent += request->inputs_size();
      {
        std::lock_guard<std::mutex> lock(mutex_);
        waiting_.push_back(request->inputs_size());
      }
      if (!stream_->Write(*request)) break;  // Finish says why
    }
    stream_->WritesDone();
  }

  void ReadAll() {
    v1::EmbedResponse response;
    while (stream_->Read(&response)) {
      Check(response);
      if (share_.stall > absl::ZeroDuration() && !stalled_ &&
          result_.texts >= share_.texts / 2) {
        stalled_ = true;
        absl::SleepFor(share_.stall);
      }
    }
  }

  void Check(const v1::EmbedResponse& response) {
    size_t id = 0;
    int64_t texts = 0;
    if (absl::SimpleAtoi(response.request_id(), &id)) {
      std::lock_guard<std::mutex> lock(mutex_);
      if (id < waiting_.size()) std::swap(texts, waiting_[id]);
    }
    if (texts == 0) {
      result_.Fail(absl::StrCat("request_id '", response.request_id(),
                                "' was answered twice or never sent"));
    } else if (response.has_error()) {
      result_.Fail(response.error().message());
    } else if (response.embeddings_size() != texts) {
      result_.Fail(absl::StrCat(response.embeddings_size(), " vectors for ",
                                texts, " texts"));
    } else {
      result_.texts += texts;
      result_.tokens += static_cast<int64_t>(response.usage().tokens());
    }
  }

  std::vector<v1::EmbedRequest> requests_;
  const Share share_;
  grpc::ClientContext context_;
  std::unique_ptr<grpc::ClientReaderWriter<v1::EmbedRequest, v1::EmbedResponse>>
      stream_;
  std::mutex mutex_;
  std::vector<int64_t> waiting_;  // texts of each request; 0: answered
  bool stalled_ = false;
  StreamLoadResult result_;  // of the reader until it has ended
};

}  // namespace

void StreamLoadResult::Fail(const std::string& error) {
  if (errors++ == 0) first_error = error;
}

void StreamLoadResult::Add(const StreamLoadResult& other) {
  requests += other.requests;
  texts += other.texts;
  tokens += other.tokens;
  if (errors == 0) first_error = other.first_error;
  errors += other.errors;
  seconds = std::max(seconds, other.seconds);
}

StreamLoadResults RunStreams(v1::Encoder::Stub* stub,
                             const std::vector<v1::EmbedRequest>& requests,
                             const StreamLoadOptions& options) {
  const absl::Time until = absl::Now() + options.time;
  std::vector<Share> shares;
  for (int64_t i = 0; i < options.streams; ++i) {
    const int64_t before = options.total_texts * i / options.streams;
    const int64_t after = options.total_texts * (i + 1) / options.streams;
    shares.push_back({after - before, until, absl::ZeroDuration()});
  }
  if (options.stall > absl::ZeroDuration()) {
    shares.push_back(
        {std::max<int64_t>(1, options.total_texts / 10), until, options.stall});
  }
  std::vector<StreamLoadResult> results(shares.size());
  std::vector<std::thread> threads;
  for (size_t i = 0; i < shares.size(); ++i) {
    threads.emplace_back(
        [&, i] { results[i] = OneStream(stub, requests, shares[i]).Run(); });
  }
  for (std::thread& thread : threads) thread.join();
  StreamLoadResults all;
  for (size_t i = 0; i < results.size(); ++i) {
    const bool stalled = shares[i].stall > absl::ZeroDuration();
    (stalled ? all.stalled : all.reading).Add(results[i]);
  }
  return all;
}

}  // namespace encoderd
