// Answers of the API -> bytes.
#include <string>
#include <utility>
#include <vector>

#include "engine/base/quantize.h"
#include "google/protobuf/arena.h"
#include "google/protobuf/io/coded_stream.h"
#include "google/rpc/status.pb.h"
#include "server/api/publish.h"
#include "server/base/steady_time.h"
#include "server/observe/metrics.h"
#include "server/rpc/convert.h"
#include "server/rpc/status.h"
#include "server/rpc/vector_answer.h"
#include "server/rpc/wire.h"

namespace encoderd {
namespace {

// Bytes of one input's error: a thousand of them fit into an answer.
constexpr int kMaxInputErrorBytes = 1024;

using google::protobuf::Arena;

// Measures the time to write one answer.
class ReplyTimer {
 public:
  explicit ReplyTimer(ModelMetrics* metrics) : metrics_(*metrics) {}
  ~ReplyTimer() { metrics_.StageDuration(Stage::kReply, SteadyNow() - start_); }

 private:
  ModelMetrics& metrics_;
  const absl::Time start_ = SteadyNow();
};

void SetUsage(const PipelineResult& result, v1::Usage* usage) {
  usage->set_tokens(static_cast<uint64_t>(result.tokens));
  usage->set_tokenize_ms(absl::ToDoubleMilliseconds(result.tokenize_time));
  usage->set_queue_ms(absl::ToDoubleMilliseconds(result.queue_time));
  usage->set_compute_ms(absl::ToDoubleMilliseconds(result.compute_time));
}

google::rpc::Status InputError(const absl::Status& status,
                               WrittenAnswer* written) {
  const absl::Status published = Publish(status);
  written->rejected.push_back(ReasonOf(published));
  return ToRpcStatus(published, kMaxInputErrorBytes);
}

std::string PackFloats(absl::Span<const float> values) {
  std::string bytes(values.size() * sizeof(float), '\0');
  WriteVector(VectorFormat::kFloat32, {}, values,
              reinterpret_cast<uint8_t*>(bytes.data()));
  return bytes;
}

int64_t VarintBytes(int32_t value) {
  return google::protobuf::io::CodedOutputStream::VarintSize32(
      static_cast<uint32_t>(value));
}

// The lists of a TokenizedInput on the wire, without building them; a little
// less than the whole message.
int64_t TokenizedBytes(const Encoding& encoding, const Tokenizer& tokenizer) {
  int64_t bytes = 0;
  for (const int32_t id : encoding.token_ids) {
    const auto text = static_cast<int32_t>(tokenizer.Token(id).size());
    bytes += VarintBytes(id) + 1 + VarintBytes(text) + text;
  }
  for (const int32_t id : encoding.segment_ids) bytes += VarintBytes(id);
  for (const ByteOffset& offset : encoding.offsets) {
    bytes += VarintBytes(offset.begin) + VarintBytes(offset.end);
  }
  return bytes;
}

void FillTokenized(const Encoding& encoding, const Tokenizer& tokenizer,
                   v1::TokenizedInput* input) {
  input->mutable_ids()->Add(encoding.token_ids.begin(),
                            encoding.token_ids.end());
  input->mutable_segment_ids()->Add(encoding.segment_ids.begin(),
                                    encoding.segment_ids.end());
  input->mutable_tokens()->Reserve(static_cast<int>(encoding.token_ids.size()));
  for (int32_t id : encoding.token_ids) {
    input->add_tokens(std::string(tokenizer.Token(id)));
  }
  for (const ByteOffset& offset : encoding.offsets) {
    input->add_begin_offsets(static_cast<uint32_t>(offset.begin));
    input->add_end_offsets(static_cast<uint32_t>(offset.end));
  }
  input->set_token_count(static_cast<uint32_t>(encoding.token_ids.size()));
}

v1::PositionVerdict ToProto(PositionVerdict verdict) {
  switch (verdict) {
    case PositionVerdict::kUndecided:
      return v1::POSITION_VERDICT_UNSPECIFIED;
    case PositionVerdict::kTrained:
      return v1::POSITION_VERDICT_TRAINED;
    case PositionVerdict::kLooksRandom:
      return v1::POSITION_VERDICT_LOOKS_RANDOM;
    case PositionVerdict::kPartlyTrained:
      return v1::POSITION_VERDICT_PARTLY_TRAINED;
  }
  return v1::POSITION_VERDICT_UNSPECIFIED;
}

void SetFigures(const PositionInspection& inspection,
                v1::InspectPositionsResponse* response) {
  for (const double norm : inspection.norms) {
    response->add_norms(static_cast<float>(norm));
  }
  for (const NeighbourCosine& neighbour : inspection.profile) {
    v1::NeighbourSimilarity* entry = response->add_profile();
    entry->set_distance(static_cast<uint32_t>(neighbour.distance));
    entry->set_mean_cosine(static_cast<float>(neighbour.mean));
    entry->set_mean_centered_cosine(
        static_cast<float>(neighbour.centered_mean));
  }
  response->set_verdict(ToProto(inspection.verdict));
  response->set_verdict_cosine(static_cast<float>(inspection.verdict_cosine));
  response->set_threshold(static_cast<float>(inspection.threshold));
  response->set_change_row(static_cast<uint32_t>(inspection.change_row));
}

}  // namespace

absl::Status Write(const CallEnvironment& environment, const EmbedJob& job,
                   PipelineResult result, WrittenAnswer* written) {
  const ReplyTimer timer(job.model().metrics);
  Arena arena;
  auto* rest = Arena::CreateMessage<v1::EmbedResponse>(&arena);
  rest->set_model(job.model().name);
  rest->set_request_id(job.request_id());
  rest->set_fingerprint(job.info().fingerprint);
  const int64_t max_bytes = environment.api.limits.max_answer_bytes;
  SetUsage(result, rest->mutable_usage());
  const VectorAnswer::Place place =
      job.packed() ? VectorAnswer::Place{v1::Embedding::kPackedFieldNumber}
                   : VectorAnswer::Place{v1::Embedding::kFloatsFieldNumber,
                                         v1::FloatVector::kValuesFieldNumber};
  std::vector<Embedding> embeddings = job.Answer(&result.outputs);
  VectorAnswer answer(v1::EmbedResponse::kEmbeddingsFieldNumber,
                      embeddings.size());
  for (Embedding& from : embeddings) {
    auto* to = Arena::CreateMessage<v1::Embedding>(&arena);
    to->set_token_count(static_cast<uint32_t>(from.token_count));
    if (!from.status.ok()) {
      *to->mutable_error() = InputError(from.status, written);
    } else {
      to->set_truncated(from.truncated);
      to->set_windows(static_cast<uint32_t>(from.windows));
      to->set_scale(from.scale);
      if (!from.encoded.empty()) to->set_packed(std::move(from.encoded));
    }
    answer.Add(*to, place, from.values);
    const absl::Status fits = answer.CheckSize(max_bytes, EmbedJob::kField);
    if (!fits.ok()) return fits;
  }
  return answer.Serialize(*rest, max_bytes, EmbedJob::kField, &written->bytes);
}

absl::Status Write(const CallEnvironment& environment, const EncodeJob& job,
                   PipelineResult result, WrittenAnswer* written) {
  const ReplyTimer timer(job.model().metrics);
  Arena arena;
  auto* rest = Arena::CreateMessage<v1::EncodeResponse>(&arena);
  rest->set_model(job.model().name);
  rest->set_request_id(job.request_id());
  rest->set_fingerprint(job.info().fingerprint);
  const int64_t max_bytes = environment.api.limits.max_answer_bytes;
  SetUsage(result, rest->mutable_usage());
  VectorAnswer answer(v1::EncodeResponse::kStatesFieldNumber,
                      result.outputs.size());
  for (const InputResult& from : result.outputs) {
    auto* to = Arena::CreateMessage<v1::TokenStates>(&arena);
    to->set_token_count(static_cast<uint32_t>(from.token_count));
    if (!from.status.ok()) {
      *to->mutable_error() = InputError(from.status, written);
    } else {
      to->set_rows(static_cast<uint32_t>(from.rows));
      to->set_columns(static_cast<uint32_t>(job.columns()));
      to->set_truncated(from.truncated);
    }
    answer.Add(*to, {v1::TokenStates::kPackedFieldNumber}, from.values);
    const absl::Status fits = answer.CheckSize(max_bytes, EncodeJob::kField);
    if (!fits.ok()) return fits;
  }
  return answer.Serialize(*rest, max_bytes, EncodeJob::kField, &written->bytes);
}

absl::Status Write(const CallEnvironment& environment, const TokenizeJob& job,
                   PipelineResult result, WrittenAnswer* written) {
  const ReplyTimer timer(job.model().metrics);
  Arena arena;
  auto* response = Arena::CreateMessage<v1::TokenizeResponse>(&arena);
  const int64_t max_bytes = environment.api.limits.max_answer_bytes;
  const Tokenizer& tokenizer = job.model().model->tokenizer();
  const auto max_len = static_cast<uint32_t>(job.info().limits.max_len);
  response->set_model(job.model().name);
  response->set_max_len(max_len);
  // Checked before, too: this answer grows most while it is built.
  int64_t lists = 0;
  for (Encoding& from : result.encodings) {
    lists += TokenizedBytes(from, tokenizer);
    const absl::Status fits =
        CheckAnswerSize(lists, max_bytes, TokenizeJob::kField);
    if (!fits.ok()) return fits;
    v1::TokenizedInput* to = response->add_inputs();
    FillTokenized(from, tokenizer, to);
    from = Encoding();
    to->set_fits(to->token_count() <= max_len);
  }
  return SerializeAnswer(*response, max_bytes, TokenizeJob::kField,
                         &written->bytes);
}

absl::Status Write(const CallEnvironment& environment, const InspectJob& job,
                   const InspectAnswer& result, WrittenAnswer* written) {
  Arena arena;
  auto* response = Arena::CreateMessage<v1::InspectPositionsResponse>(&arena);
  response->set_model(job.model().name);
  response->set_position_scheme(
      job.model().model->info().config.position_scheme->name());
  response->set_table_rows(static_cast<uint32_t>(job.table().rows));
  response->set_columns(static_cast<uint32_t>(job.table().cols));
  response->set_first_row(static_cast<uint32_t>(job.first()));
  response->set_row_count(static_cast<uint32_t>(job.count()));
  SetFigures(result.figures, response);
  if (!result.cosine.empty()) response->set_cosine(PackFloats(result.cosine));
  if (!result.values.empty()) response->set_values(PackFloats(result.values));
  return SerializeAnswer(*response, environment.api.limits.max_answer_bytes,
                         InspectJob::kField, &written->bytes);
}

grpc::ByteBuffer WriteError(const std::string& request_id,
                            const absl::Status& published) {
  v1::EmbedResponse response;
  response.set_request_id(request_id);
  *response.mutable_error() = ToRpcStatus(published);
  return SerializeMessage(response);
}

}  // namespace encoderd
