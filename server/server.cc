#include "server/server.h"

#include <algorithm>
#include <chrono>
#include <limits>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "engine/base/cgroup.h"
#include "engine/checkpoint/weight_bytes.h"
#include "server/base/catch_all.h"
#include "server/base/log.h"
#include "server/base/steady_time.h"
#include "server/memory.h"
#include "server/observe/pipeline_reporter.h"
#include "server/part_options.h"
#include "server/rpc/convert.h"
#include "server/rpc/grpc_log.h"
#include "server/rpc/grpc_server.h"
#include "server/rpc/service.h"
#include "server/sessions.h"
#include "server/start_warnings.h"

namespace encoderd {
namespace {

constexpr absl::Duration kPoll = absl::Milliseconds(2);
// For open calls, streams and health watches that were told to end: the longest
// wait without any of them ending, as when a caller reads nothing.
constexpr absl::Duration kNoProgress = absl::Milliseconds(400);
// However many of them end one after the other, as a hostile caller may wish.
constexpr absl::Duration kLastWords = absl::Seconds(3);
// For gRPC's threads to hand over the calls that they have already read.
constexpr absl::Duration kSettle = absl::Milliseconds(100);
// Between the first GOAWAY, after which callers start no call here, and the
// second, which names the last call that was read. gRPC drops a connection when
// a write fails, without reading on: a caller must have read the first before
// the close, or it may miss the second.
constexpr absl::Duration kNotice = absl::Milliseconds(100);
// For callers to read their last answers.
constexpr absl::Duration kGoodbye = absl::Milliseconds(400);

std::vector<std::string> NamesOf(const std::vector<ModelSource>& models) {
  std::vector<std::string> names;
  for (const ModelSource& model : models) names.push_back(model.name);
  return names;
}

// An address that could not be bound: its flag and the remedy.
absl::Status NameFlag(absl::string_view flag, absl::string_view way_out,
                      const absl::Status& status) {
  if (!absl::IsUnavailable(status) && !absl::IsFailedPrecondition(status)) {
    return status;
  }
  return absl::Status(
      status.code(),
      absl::StrCat("--", flag, ": ", status.message(), "; ", way_out));
}

void WarnBeforeLoading(const ServerConfig& config, int64_t memory_limit_bytes) {
  if (memory_limit_bytes == kNoMemoryLimit) return;
  LoadSizes sizes;
  sizes.limit_bytes = memory_limit_bytes;
  sizes.resident_bytes = ThisProcess().resident_bytes();
  for (const ModelSource& model : config.models) {
    sizes.weights_bytes += WeightBytes(model.folder);
  }
  WarnOfLoading(config, sizes);
}

}  // namespace

Server::Server(const ServerConfig& config, std::function<void()> on_device_lost,
               const BuildInfo& build, std::unique_ptr<Secrets> secrets)
    : config_(config),
      on_device_lost_(std::move(on_device_lost)),
      secrets_(std::move(secrets)),
      metrics_(NamesOf(config.models), EncoderMethods(), build.revision),
      tracer_(NewTracer(config)),
      unread_(config.max_unread_answer_bytes),
      health_(config.health_needs_token ? secrets_.get() : nullptr,
              config.max_streams) {
  environment_.state = &state_;
  environment_.api.models = &models_;
  environment_.metrics = &metrics_;
  environment_.calls = &calls_;
  environment_.held = &held_;
  environment_.streams = &streams_;
  environment_.max_streams = config_.max_streams;
  environment_.unread = &unread_;
  environment_.tracer = tracer_.get();
  environment_.secrets = secrets_.get();
  environment_.api.limits.max_inputs = config_.max_inputs_per_request;
  environment_.api.limits.max_answer_bytes = config_.max_message_bytes;
  // More ids than that are never admitted, and each may have a segment and a
  // position.
  environment_.max_list_values = 3 * config_.max_queue_tokens;
}

Server::~Server() {
  if (!leaving_) {
    http_.reset();  // its pages read what goes below
    state_.Advance(ServingState::Phase::kDraining);
    health_.SetServing(false);
    health_.EndWatches();
    acceptor_.reset();
    if (grpc_ != nullptr) grpc_->Shutdown(std::chrono::system_clock::now());
  }
}

absl::StatusOr<std::unique_ptr<Server>> Server::Start(
    const ServerConfig& config, std::function<void()> on_device_lost,
    const BuildInfo& build) {
  std::unique_ptr<Server> server;
  const absl::Status status = CatchAll([&]() -> absl::Status {
    auto secrets = Secrets::Open(SecretFilesOf(config));
    if (!secrets.ok()) return secrets.status();
    server.reset(new Server(config, std::move(on_device_lost), build,
                            *std::move(secrets)));
    return server->Listen();
  });
  if (!status.ok()) return status;
  return server;
}

absl::Status Server::Listen() {
  service_ = NewEncoderService(environment_);
  const auto options = GrpcOptionsOf(config_);
  if (!options.ok()) return options.status();
  auto listening =
      StartGrpcServer(*options, secrets_.get(), {service_.get(), &health_});
  if (!listening.ok()) {
    return NameFlag("listen",
                    "choose another address, or port 0 for a free one",
                    listening.status());
  }
  grpc_ = std::move(listening->server);
  acceptor_ = std::move(listening->acceptor);
  grpc_port_ = listening->port;
  if (!config_.http_listen.empty()) {
    const auto address = ParseHostPort(config_.http_listen);
    if (!address.ok()) return address.status();
    HttpSources sources = {[this] { return MetricsText(); },
                           [this] { return health_.serving(); }, nullptr};
    if (config_.tls()) {
      sources.tls = [this] { return secrets_->certificates()->context; };
    }
    auto http = HttpServer::Start(*address, std::move(sources));
    if (!http.ok()) {
      return NameFlag("http_listen",
                      "choose another address, port 0 for a free one, or an "
                      "empty one for no HTTP",
                      http.status());
    }
    http_ = std::move(*http);
    http_port_ = http_->port();
  }
  return absl::OkStatus();
}

absl::Status Server::Load(const ModelLoader& loader,
                          int64_t memory_limit_bytes) {
  const absl::Status status =
      CatchAll([&] { return LoadAll(loader, memory_limit_bytes); });
  if (!status.ok()) health_.SetServing(false);
  return status;
}

absl::Status Server::LoadAll(const ModelLoader& loader,
                             int64_t memory_limit_bytes) {
  WarnBeforeLoading(config_, memory_limit_bytes);
  std::vector<Loaded> loaded;
  for (const ModelSource& source : config_.models) {
    const absl::Status status = CatchAll([&] {
      const auto model = LoadModel(source, loader);
      if (model.ok()) loaded.push_back(*model);
      return model.status();
    });
    if (!status.ok()) {
      return absl::Status(status.code(), absl::StrCat("model '", source.name,
                                                      "': ", status.message()));
    }
  }
  MemorySizes memory;
  memory.limit_bytes = memory_limit_bytes;
  // Before any call adds to it.
  if (memory_limit_bytes != kNoMemoryLimit)
    memory.resident_bytes = ThisProcess().resident_bytes();
  if (!state_.Advance(ServingState::Phase::kServing)) return absl::OkStatus();
  health_.SetServing(true);
  // A device lost in between has reported false before this reports true.
  if (state_.phase() != ServingState::Phase::kServing) {
    health_.SetServing(false);
  }
  std::vector<std::pair<std::string, const ModelInfo*>> models;
  for (const Loaded& model : loaded) {
    LogServing(model);
    models.emplace_back(model.served->name, &model.served->model->info());
    memory.scratch_bytes += model.scratch_bytes;
  }
  WarnOfSettings(config_, secrets_->tokens().get(), models);
  WarnOfMemory(config_, memory, models);
  return absl::OkStatus();
}

absl::StatusOr<Server::Loaded> Server::LoadModel(const ModelSource& source,
                                                 const ModelLoader& loader) {
  const absl::Time start = SteadyNow();
  auto model = loader(source.folder, ModelOptionsOf(config_));
  if (!model.ok()) return model.status();
  const ModelInfo& info = (*model)->info();
  auto sessions = NewSessions(config_, **model);
  if (!sessions.ok()) return sessions.status();
  const size_t count = sessions->sessions.size();
  const int64_t scratch_bytes = sessions->scratch_bytes();

  auto served = std::make_unique<ServedModel>();
  served->name = source.name;
  served->metrics = metrics_.ForModel(source.name);
  served->model = *model;
  served->observer = std::make_unique<PipelineReporter>(
      &metrics_, source.name, [this] { DeviceLost(); });
  served->pipeline = std::make_unique<Pipeline>(
      &(*model)->tokenizer(), info.limits, std::move(sessions->sessions),
      PipelineOptionsOf(config_), served->observer.get(),
      std::move(sessions->pause_sessions));
  const ServedModel* const added = served.get();
  models_.Add(std::move(served));

  metrics_.SetModel({{"model", source.name},
                     {"architecture", info.config.model_type},
                     {"device", info.device},
                     {"dtype", info.dtype},
                     {"max_len", absl::StrCat(info.limits.max_len)},
                     {"weights_sha256", info.weights_sha256}});
  return Loaded{added, count, scratch_bytes, SteadyNow() - start};
}

void Server::LogServing(const Loaded& loaded) {
  const std::string& name = loaded.served->name;
  const ModelInfo& info = loaded.served->model->info();
  const auto log_notes = [&name](LogLevel level,
                                 const std::vector<std::string>& notes) {
    for (const std::string& note : notes) {
      Log(level, "model_note",
          LogFields().Add("model", name).Add("note", note));
    }
  };
  log_notes(LogLevel::kWarning, info.config.warnings);
  log_notes(LogLevel::kInfo, info.notes);
  Log(LogLevel::kInfo, "serving",
      LogFields()
          .Add("model", name)
          .Add("device", info.device)
          .Add("dtype", info.dtype)
          .Add("sessions", loaded.sessions)
          .Add("scratch_bytes", loaded.scratch_bytes)
          .Add("max_len", info.limits.max_len)
          .Add("max_len_source",
               v1::MaxLenSource_Name(ToProto(info.config.max_len_source)))
          .Add("parameters", info.parameters.total)
          .Add("weights_sha256", info.weights_sha256)
          .Add("fingerprint", info.fingerprint)
          .Add("load_ms", absl::ToInt64Milliseconds(loaded.took)));
}

void Server::DeviceLost() {
  state_.Advance(ServingState::Phase::kDeviceLost);
  health_.SetServing(false);
  if (on_device_lost_ != nullptr) on_device_lost_();
}

// Draining from the moment when health reports NOT_SERVING, also while work is
// still accepted.
ServerState Server::StateNow() const {
  switch (state_.phase()) {
    case ServingState::Phase::kLoading:
      return leaving_ ? ServerState::kDraining : ServerState::kLoading;
    case ServingState::Phase::kServing:
      return leaving_ ? ServerState::kDraining : ServerState::kServing;
    case ServingState::Phase::kDraining:
      return ServerState::kDraining;
    case ServingState::Phase::kDeviceLost:
      return ServerState::kFailed;
  }
  return ServerState::kFailed;
}

std::string Server::MetricsText() {
  ServerFigures figures;
  figures.state = StateNow();
  figures.connections = acceptor_->connections();
  figures.connections_limit = acceptor_->max_connections();
  figures.streams = streams_.count();
  figures.unread_answer_bytes = unread_.bytes();
  figures.unread_answers_cut = unread_.calls_cut();
  figures.connections_refused = acceptor_->refused();
  figures.log_lines_lost = LogLinesLost();
  const auto certificates = secrets_->certificates();
  if (certificates != nullptr) {
    figures.certificate_expires = certificates->expires;
    figures.client_ca_expires = certificates->client_ca_expires;
  }
  figures.certificate_reloads = secrets_->certificate_reloads();
  if (tracer_ != nullptr) figures.traces = tracer_->figures();
  figures.token_reloads = secrets_->token_reloads();
  figures.handshakes_failed = TlsHandshakesFailed();
  metrics_.server().Sample(figures);
  for (const ServedModel* model : models_.All()) {
    model->metrics->Sample(model->pipeline->figures());
  }
  metrics_.server().Sample(ReadProcess());
  return metrics_.Text();
}

bool Server::WaitIdle(absl::Duration patience) const {
  const absl::Time until = SteadyNow() + patience;
  while (state_.unanswered() > 0) {
    if (SteadyNow() >= until) return false;
    absl::SleepFor(kPoll);
  }
  return true;
}

bool Server::WaitForLastWords(absl::Time last) const {
  int64_t least = std::numeric_limits<int64_t>::max();
  absl::Time until = absl::InfiniteFuture();
  for (;;) {
    // All unary calls in flight, because one that is being parsed is abandoned
    // only once it is open.
    const int64_t left =
        state_.in_flight() + streams_.count() + health_.watches();
    const absl::Time now = SteadyNow();
    if (left < least) {
      least = left;
      until = std::min(now + kNoProgress, last);
    }
    if (left == 0 || now >= until) return left == 0;
    absl::SleepFor(kPoll);
  }
}

bool Server::Drain() {
  leaving_ = true;
  const absl::Time start = SteadyNow();
  health_.SetServing(false);
  // A lost device computes nothing for late callers: the sooner this process
  // ends, the sooner another starts.
  const absl::Time refuse = start + config_.drain_delay;
  while (SteadyNow() < refuse &&
         state_.phase() != ServingState::Phase::kDeviceLost) {
    absl::SleepFor(std::min(kPoll, refuse - SteadyNow()));
  }
  state_.Advance(ServingState::Phase::kDraining);
  for (const ServedModel* model : models_.All()) {
    model->pipeline->StartDraining();
  }
  streams_.DrainAll();
  const bool idle = WaitIdle(config_.drain_timeout);
  const int64_t unanswered = idle ? 0 : state_.unanswered();
  calls_.GiveUpAll();
  streams_.GiveUpAll();
  health_.EndWatches();
  const absl::Time last = SteadyNow() + kLastWords;
  const bool all_left = WaitForLastWords(last);
  state_.HoldRefusals();
  acceptor_->StopReading();
  held_.GiveUpAll();
  absl::SleepFor(kSettle);
  if (all_left) WaitForLastWords(last);
  acceptor_->CloseAllAfter(kNotice + kGoodbye);
  grpc_->Shutdown(absl::ToChronoTime(absl::Now() + kNotice));
  Log(idle ? LogLevel::kInfo : LogLevel::kWarning, "drained",
      LogFields()
          .Add("unanswered", unanswered)
          .Add("drain_ms", absl::ToInt64Milliseconds(SteadyNow() - start)));
  return idle;
}

}  // namespace encoderd
