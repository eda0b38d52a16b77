// The rate over gRPC, from a closed loop: N calls in flight, always; one JSON
// object a line on stdout.
//
// grpc_bench --target=HOST:PORT [--texts=64] [--in_flight=8] [--seconds=10]
//     [--lengths=N|mix] [--ids]
// grpc_bench --stream=STREAMS [--total=TEXTS] [--stall=SECONDS] [as above]
//
// --stream sends the requests over EmbedStream, as fast as the server reads,
// for
// --seconds or until --total texts are sent, and checks that every request_id
// is answered once. --stall (needs --total) adds a stream of a tenth of the
// texts that stops reading halfway for so long.
// --ids sends token ids instead of text: what the way costs without the
// tokenizer. Against encoderd_fake_server the result is the ceiling of the way
// itself. Texts are common English words of one token each.
#include <algorithm>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "encoderd/v1/encoder.grpc.pb.h"
#include "grpcpp/create_channel.h"
#include "tests/bench/stream_load.h"
#include "tests/bench/workload.h"

namespace encoderd {
namespace {

using Flags = std::map<std::string, std::string>;

constexpr const char* kWords[] = {
    "time",  "people", "water", "world", "music", "house", "river", "light",
    "money", "night",  "woman", "child", "paper", "group", "party", "story"};
constexpr int kWordCount = sizeof(kWords) / sizeof(kWords[0]);

Flags ParseFlags(int argc, char** argv) {
  Flags flags = {{"target", "127.0.0.1:8400"},
                 {"texts", "64"},
                 {"in_flight", "8"},
                 {"seconds", "10"},
                 {"lengths", "mix"},
                 {"ids", ""},
                 {"stream", ""},
                 {"total", ""},
                 {"stall", ""}};
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    const size_t equals = argument.find('=');
    const std::string name =
        argument.rfind("--", 0) == 0 ? argument.substr(2, equals - 2) : "";
    if (flags.count(name) == 0) {
      std::cerr << "grpc_bench: unknown argument " << argument
                << "; the top of grpc_bench.cc has all\n";
      std::exit(1);
    }
    flags[name] =
        equals == std::string::npos ? "true" : argument.substr(equals + 1);
  }
  return flags;
}

int64_t Number(const Flags& flags, const std::string& name) {
  int64_t value = 0;
  if (!absl::SimpleAtoi(flags.at(name), &value) || value < 1) {
    std::cerr << "grpc_bench: --" << name << " must be a number from 1\n";
    std::exit(1);
  }
  return value;
}

// 0 where the flag is not given.
int64_t NumberOrZero(const Flags& flags, const std::string& name) {
  return flags.at(name).empty() ? 0 : Number(flags, name);
}

// Requests of `texts` inputs each, of the lengths that engine_bench runs.
std::vector<v1::EmbedRequest> MakeRequests(const Flags& flags,
                                           int32_t max_len) {
  const int64_t texts = Number(flags, "texts");
  const bool ids = !flags.at("ids").empty();
  std::mt19937 random(7);
  std::vector<v1::EmbedRequest> requests;
  for (int32_t length : WorkloadLengths(flags.at("lengths"), 65536)) {
    if (requests.empty() || requests.back().inputs_size() == texts) {
      requests.emplace_back();
      requests.back().mutable_options()->set_packed(true);
    }
    v1::Input* input = requests.back().add_inputs();
    const int32_t tokens = std::min(length, max_len);
    if (ids) {
      auto* list = input->mutable_tokens()->mutable_ids();
      list->Add(101);
      for (int32_t i = 2; i < tokens; ++i) list->Add(1000 + random() % 20000);
      list->Add(102);
    } else {
      std::string* text = input->mutable_text();
      for (int32_t i = 2; i < tokens; ++i) {
        *text += kWords[random() % kWordCount];
        *text += ' ';
      }
    }
  }
  // A last request with fewer texts would be another workload.
  if (requests.size() > 1 && requests.back().inputs_size() < texts) {
    requests.pop_back();
  }
  return requests;
}

// Keeps in_flight calls going until the time is up.
class ClosedLoop {
 public:
  ClosedLoop(v1::Encoder::Stub* stub, std::vector<v1::EmbedRequest> requests,
             int64_t in_flight)
      : stub_(stub), requests_(std::move(requests)), in_flight_(in_flight) {}

  // Seconds from the first call to the last answer.
  double Run(absl::Duration time) {
    std::unique_lock<std::mutex> lock(mutex_);
    tokens_ = texts_ = calls_ = errors_ = 0;
    latencies_.clear();
    const absl::Time start = absl::Now();
    until_ = start + time;
    for (int64_t i = 0; i < in_flight_; ++i) Send();
    idle_.wait(lock, [this] { return open_ == 0; });
    return absl::ToDoubleSeconds(absl::Now() - start);
  }

  void Print(const Flags& flags, double seconds) {
    std::sort(latencies_.begin(), latencies_.end());
    const auto at = [this](double share) {
      if (latencies_.empty()) return 0.0;
      return latencies_[static_cast<size_t>(share * (latencies_.size() - 1))];
    };
    std::printf(
        "{\"bench\": \"grpc\", \"lengths\": \"%s\", \"input\": \"%s\", "
        "\"texts_per_call\": %s, \"in_flight\": %s, \"calls\": %ld, "
        "\"errors\": %ld, \"texts_per_s\": %.1f, \"tokens_per_s\": %.0f, "
        "\"ms_p50\": %.2f, \"ms_p99\": %.2f}\n",
        flags.at("lengths").c_str(), flags.at("ids").empty() ? "text" : "ids",
        flags.at("texts").c_str(), flags.at("in_flight").c_str(), calls_,
        errors_, texts_ / seconds, tokens_ / seconds, at(0.5), at(0.99));
    if (errors_ > 0) std::printf("{\"first_error\": \"%s\"}\n", error_.c_str());
  }

  bool failed() const { return errors_ > 0; }

 private:
  struct Call {
    grpc::ClientContext context;
    v1::EmbedResponse response;
    absl::Time sent;
  };

  // With the lock held.
  void Send() {
    ++open_;
    auto call = std::make_shared<Call>();
    call->sent = absl::Now();
    const v1::EmbedRequest* request = &requests_[next_++ % requests_.size()];
    stub_->async()->Embed(
        &call->context, request, &call->response,
        [this, call](const grpc::Status& status) { Done(*call, status); });
  }

  void Done(const Call& call, const grpc::Status& status) {
    std::lock_guard<std::mutex> lock(mutex_);
    --open_;
    ++calls_;
    if (status.ok()) {
      tokens_ += static_cast<long>(call.response.usage().tokens());
      texts_ += call.response.embeddings_size();
      latencies_.push_back(absl::ToDoubleMilliseconds(absl::Now() - call.sent));
    } else if (errors_++ == 0) {
      error_ = status.error_message();
    }
    if (absl::Now() < until_ && errors_ < 100) Send();
    if (open_ == 0) idle_.notify_all();
  }

  v1::Encoder::Stub* const stub_;
  const std::vector<v1::EmbedRequest> requests_;
  const int64_t in_flight_;
  std::mutex mutex_;
  std::condition_variable idle_;
  absl::Time until_;
  size_t next_ = 0;
  int64_t open_ = 0;
  long tokens_ = 0, texts_ = 0, calls_ = 0, errors_ = 0;
  std::string error_;
  std::vector<double> latencies_;  // ms
};

void PrintStream(const Flags& flags, const char* reader,
                 const StreamLoadResult& result) {
  std::printf(
      "{\"bench\": \"grpc_stream\", \"reader\": \"%s\", \"lengths\": \"%s\", "
      "\"input\": \"%s\", \"texts_a_request\": %s, \"streams\": %s, "
      "\"requests\": %ld, \"texts\": %ld, \"errors\": %ld, "
      "\"seconds\": %.2f, \"texts_per_s\": %.1f, \"tokens_per_s\": %.0f}\n",
      reader, flags.at("lengths").c_str(),
      flags.at("ids").empty() ? "text" : "ids", flags.at("texts").c_str(),
      flags.at("stream").c_str(), static_cast<long>(result.requests),
      static_cast<long>(result.texts), static_cast<long>(result.errors),
      result.seconds, static_cast<double>(result.texts) / result.seconds,
      static_cast<double>(result.tokens) / result.seconds);
  if (result.errors > 0) {
    std::printf("{\"first_error\": \"%s\"}\n", result.first_error.c_str());
  }
}

int MainStream(const Flags& flags, v1::Encoder::Stub* stub,
               const std::vector<v1::EmbedRequest>& requests) {
  StreamLoadOptions options;
  options.streams = Number(flags, "stream");
  options.total_texts = NumberOrZero(flags, "total");
  options.time = absl::Seconds(Number(flags, "seconds"));
  options.stall = absl::Seconds(NumberOrZero(flags, "stall"));
  if (options.stall > absl::ZeroDuration() && options.total_texts == 0) {
    std::cerr << "grpc_bench: --stall needs --total\n";
    return 1;
  }
  const StreamLoadResults results = RunStreams(stub, requests, options);
  PrintStream(flags, "reading", results.reading);
  if (options.stall > absl::ZeroDuration()) {
    PrintStream(flags, "stalled", results.stalled);
  }
  return results.reading.errors + results.stalled.errors > 0 ? 1 : 0;
}

int Main(int argc, char** argv) {
  const Flags flags = ParseFlags(argc, argv);
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(-1);
  const auto stub = v1::Encoder::NewStub(grpc::CreateCustomChannel(
      flags.at("target"), grpc::InsecureChannelCredentials(), arguments));
  grpc::ClientContext context;
  context.set_wait_for_ready(true);
  context.set_deadline(absl::ToChronoTime(absl::Now() + absl::Seconds(20)));
  v1::Model model;
  const grpc::Status status = stub->GetModel(&context, {}, &model);
  if (!status.ok()) {
    std::cerr << "grpc_bench: " << flags.at("target") << ": "
              << status.error_message() << "\n";
    return 1;
  }
  std::vector<v1::EmbedRequest> requests =
      MakeRequests(flags, static_cast<int32_t>(model.max_len()));
  if (!flags.at("stream").empty()) {
    return MainStream(flags, stub.get(), requests);
  }
  ClosedLoop loop(stub.get(), std::move(requests), Number(flags, "in_flight"));
  loop.Run(absl::Seconds(1));  // warms both sides up
  const double seconds = loop.Run(absl::Seconds(Number(flags, "seconds")));
  loop.Print(flags, seconds);
  return loop.failed() ? 1 : 0;
}

}  // namespace
}  // namespace encoderd

int main(int argc, char** argv) { return encoderd::Main(argc, argv); }
