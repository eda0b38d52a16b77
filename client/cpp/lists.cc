// The list methods of Client: cut, keep in flight, hand over in order.
#include <utility>

#include "absl/time/clock.h"
#include "client/cpp/calls.h"
#include "client/cpp/client.h"

namespace encoderd::client {
namespace {

using EmbedCall = Call<v1::EmbedRequest, v1::EmbedResponse>;
using EncodeCall = Call<v1::EncodeRequest, v1::EncodeResponse>;
using TokenizeCall = Call<v1::TokenizeRequest, v1::TokenizeResponse>;

template <typename C>
std::function<void(grpc::Status)> Finisher(C* call) {
  return [call](grpc::Status status) {
    call->status = std::move(status);
    call->done.Notify();
  };
}

absl::Status CheckCount(int64_t answered, int64_t inputs) {
  if (answered == inputs) return absl::OkStatus();
  return absl::InternalError(absl::StrCat("the server answered ", answered,
                                          " results for ", inputs, " inputs"));
}

}  // namespace

absl::Status Client::EmbedEach(
    InputSource source, const EmbedOptions& options,
    const std::function<absl::Status(const EmbeddingMatrix&)>& sink) const {
  v1::EmbedRequest blank;
  blank.set_model(options.model);
  v1::EmbedOptions& wanted = *blank.mutable_options();
  wanted.set_pooling(options.pooling);
  if (options.normalize.has_value()) wanted.set_normalize(*options.normalize);
  wanted.set_dimensions(options.dimensions);
  wanted.set_truncate(options.truncate);
  wanted.set_prompt_name(options.prompt_name);
  wanted.set_packed(true);
  InputCutter cutter(std::move(source), options_.texts_per_call,
                     options_.bytes_per_call);
  return RunCalls<v1::EmbedRequest, v1::EmbedResponse>(
      options_.calls_in_flight,
      [&](v1::EmbedRequest* request) {
        *request = blank;
        return cutter.Next(request->mutable_inputs());
      },
      [&](EmbedCall* call) {
        Prepare(&call->context);
        stub_->async()->Embed(&call->context, &call->request, &call->response,
                              Finisher(call));
      },
      [&](const EmbedCall& call) {
        EmbeddingMatrix rows;
        const absl::Status status =
            AppendRows(call.response, call.request.inputs_size(), &rows);
        return status.ok() ? sink(rows) : status;
      });
}

absl::StatusOr<EmbeddingMatrix> Client::Embed(
    absl::Span<const std::string> texts, const EmbedOptions& options) const {
  EmbeddingMatrix all;
  const int64_t texts_count = static_cast<int64_t>(texts.size());
  const absl::Status status =
      EmbedEach(FromTexts(texts), options, [&](const EmbeddingMatrix& rows) {
        if (all.rows == 0) {
          all.columns = rows.columns;
          all.values.reserve(texts_count * rows.columns);
        }
        if (rows.columns != all.columns) {
          return absl::InternalError(
              absl::StrCat("the server answered vectors of ", all.columns,
                           " and of ", rows.columns, " values"));
        }
        all.rows += rows.rows;
        all.values.insert(all.values.end(), rows.values.begin(),
                          rows.values.end());
        all.token_counts.insert(all.token_counts.end(),
                                rows.token_counts.begin(),
                                rows.token_counts.end());
        all.truncated.insert(all.truncated.end(), rows.truncated.begin(),
                             rows.truncated.end());
        return absl::OkStatus();
      });
  if (!status.ok()) return status;
  return all;
}

absl::Status Client::EncodeEach(
    InputSource source, const EncodeOptions& options,
    const std::function<absl::Status(const TokenStates&)>& sink) const {
  v1::EncodeRequest blank;
  blank.set_model(options.model);
  if (options.layer.has_value()) blank.set_layer(*options.layer);
  blank.set_truncate(options.truncate);
  InputCutter cutter(std::move(source), options_.texts_per_encode_call,
                     options_.bytes_per_call);
  return RunCalls<v1::EncodeRequest, v1::EncodeResponse>(
      options_.calls_in_flight,
      [&](v1::EncodeRequest* request) {
        *request = blank;
        return cutter.Next(request->mutable_inputs());
      },
      [&](EncodeCall* call) {
        Prepare(&call->context);
        stub_->async()->Encode(&call->context, &call->request, &call->response,
                               Finisher(call));
      },
      [&](const EncodeCall& call) {
        absl::Status status =
            CheckCount(call.response.states_size(), call.request.inputs_size());
        for (const v1::TokenStates& message : call.response.states()) {
          TokenStates states;
          status.Update(ReadStates(message, &states));
          if (!status.ok()) break;
          status = sink(states);
        }
        return status;
      });
}

absl::StatusOr<std::vector<TokenStates>> Client::Encode(
    absl::Span<const std::string> texts, const EncodeOptions& options) const {
  std::vector<TokenStates> all;
  const absl::Status status =
      EncodeEach(FromTexts(texts), options, [&](const TokenStates& states) {
        all.push_back(states);
        return absl::OkStatus();
      });
  if (!status.ok()) return status;
  return all;
}

absl::Status Client::TokenizeEach(
    InputSource source, const TokenizeOptions& options,
    const std::function<absl::Status(const v1::TokenizedInput&)>& sink) const {
  InputCutter cutter(std::move(source), options_.texts_per_call,
                     options_.bytes_per_call);
  return RunCalls<v1::TokenizeRequest, v1::TokenizeResponse>(
      options_.calls_in_flight,
      [&](v1::TokenizeRequest* request) {
        request->set_model(options.model);
        return cutter.Next(request->mutable_inputs());
      },
      [&](TokenizeCall* call) {
        Prepare(&call->context);
        stub_->async()->Tokenize(&call->context, &call->request,
                                 &call->response, Finisher(call));
      },
      [&](const TokenizeCall& call) {
        absl::Status status =
            CheckCount(call.response.inputs_size(), call.request.inputs_size());
        for (const v1::TokenizedInput& input : call.response.inputs()) {
          if (!status.ok()) break;
          status = sink(input);
        }
        return status;
      });
}

absl::StatusOr<std::vector<v1::TokenizedInput>> Client::Tokenize(
    absl::Span<const std::string> texts, const TokenizeOptions& options) const {
  std::vector<v1::TokenizedInput> all;
  const absl::Status status = TokenizeEach(
      FromTexts(texts), options, [&](const v1::TokenizedInput& input) {
        all.push_back(input);
        return absl::OkStatus();
      });
  if (!status.ok()) return status;
  return all;
}

}  // namespace encoderd::client
