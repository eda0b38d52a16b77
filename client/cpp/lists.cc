// The list methods of Client: cut, keep in flight, hand over in order.
#include <cstdint>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/cpp/calls.h"
#include "client/cpp/channel.h"
#include "client/cpp/client.h"
#include "client/cpp/requests.h"
#include "client/cpp/same_model.h"

namespace encoderd::client {
namespace {

using EmbedCall = Call<v1::EmbedRequest, v1::EmbedResponse>;
using EncodeCall = Call<v1::EncodeRequest, v1::EncodeResponse>;
using TokenizeCall = Call<v1::TokenizeRequest, v1::TokenizeResponse>;

template <typename C>
std::function<void(grpc::Status)> Finisher(C* call) {
  return [call](grpc::Status status) {
    call->status = std::move(status);
    call->done->Notify();
  };
}

CallOptions SendAs(const ClientOptions& options, InputCutter* cutter,
                   bool per_input) {
  return {
      .max_in_flight = options.calls_in_flight,
      .timeout = options.timeout,
      .stop = options.stop,
      .per_input = per_input,
      .ready = [cutter] { return cutter->Ready(); },
      .await_return = options.await_return,
      .take_fewer = [cutter](int64_t inputs) { cutter->TakeFewer(inputs); },
      .take_smaller = [cutter](int64_t bytes) { cutter->TakeSmaller(bytes); },
      // With a caller's own service config gRPC alone sends a call again.
      .retry_buffer_bytes = options.service_config_json.empty()
                                ? int64_t{RetryBufferBytes(options)}
                                : std::numeric_limits<int64_t>::max()};
}

absl::Status CheckEncoding(v1::Encoding encoding) {
  if (encoding <= v1::ENCODING_FLOAT32) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("encoding is ", v1::Encoding_Name(encoding),
                   "; Embed gives floats, EmbedBulk gives every encoding"));
}

}  // namespace

absl::Status Client::EmbedEach(
    InputSource source, const EmbedOptions& options,
    const std::function<absl::Status(const EmbeddingMatrix&)>& sink) const {
  const absl::Status checked = CheckEncoding(options.encoding);
  if (!checked.ok()) return checked;
  const v1::EmbedRequest blank = ToRequest(options);
  SameModel model(options.fingerprint);
  const bool per_input = options.on_error == v1::ON_ERROR_PER_INPUT;
  InputCutter cutter(std::move(source), options_.texts_per_call,
                     options_.bytes_per_call, per_input);
  const absl::Status status = RunCalls<v1::EmbedRequest, v1::EmbedResponse>(
      SendAs(options_, &cutter, per_input),
      [&](v1::EmbedRequest* request) {
        *request = blank;
        return cutter.Next(request->mutable_inputs());
      },
      [&](EmbedCall* call) {
        stub_->async()->Embed(call->context.get(), &call->request,
                              &call->response, Finisher(call));
      },
      [&](const EmbedCall& call) {
        EmbeddingMatrix rows;
        absl::Status read = model.Check(call.response.fingerprint());
        if (read.ok()) read = ReadRows(call.response, call.cut, &rows);
        return read.ok() ? sink(rows) : read;
      });
  return status.ok() ? cutter.status() : status;
}

absl::StatusOr<EmbeddingMatrix> Client::Embed(
    absl::Span<const std::string> texts, const EmbedOptions& options) const {
  EmbeddingMatrix all;
  const absl::Status status =
      EmbedEach(FromTexts(texts), options, [&](const EmbeddingMatrix& rows) {
        if (all.columns == 0) all.values.reserve(texts.size() * rows.columns);
        return AppendRows(rows, &all);
      });
  if (!status.ok()) return status;
  return all;
}

absl::Status Client::EncodeEach(
    InputSource source, const EncodeOptions& options,
    const std::function<absl::Status(const TokenStates&)>& sink) const {
  const v1::EncodeRequest blank = ToRequest(options);
  SameModel model("");
  const bool per_input = options.on_error == v1::ON_ERROR_PER_INPUT;
  InputCutter cutter(std::move(source), options_.texts_per_encode_call,
                     options_.bytes_per_call, per_input);
  const absl::Status status = RunCalls<v1::EncodeRequest, v1::EncodeResponse>(
      SendAs(options_, &cutter, per_input),
      [&](v1::EncodeRequest* request) {
        *request = blank;
        return cutter.Next(request->mutable_inputs());
      },
      [&](EncodeCall* call) {
        stub_->async()->Encode(call->context.get(), &call->request,
                               &call->response, Finisher(call));
      },
      [&](const EncodeCall& call) {
        absl::Status read = model.Check(call.response.fingerprint());
        if (read.ok()) read = CheckCount(call.response.states_size(), call.cut);
        for (size_t i = 0; read.ok() && i < call.cut.sent_as.size(); ++i) {
          const int at = call.cut.sent_as[i];
          TokenStates states;
          if (at < 0) {
            states.error = call.cut.errors[i];
          } else {
            const v1::TokenStates& message = call.response.states(at);
            states.error = ErrorInPlace(message.error(), call.cut,
                                        static_cast<int64_t>(i));
            if (states.error.ok()) read = ReadStates(message, &states);
          }
          if (read.ok()) read = sink(states);
        }
        return read;
      });
  return status.ok() ? cutter.status() : status;
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
                     options_.bytes_per_call, /*per_input=*/false);
  CallOptions send = SendAs(options_, &cutter, /*per_input=*/false);
  send.await_return = nullptr;  // answers do not tell one model from another
  const absl::Status status =
      RunCalls<v1::TokenizeRequest, v1::TokenizeResponse>(
          send,
          [&](v1::TokenizeRequest* request) {
            request->set_model(options.model);
            return cutter.Next(request->mutable_inputs());
          },
          [&](TokenizeCall* call) {
            stub_->async()->Tokenize(call->context.get(), &call->request,
                                     &call->response, Finisher(call));
          },
          [&](const TokenizeCall& call) {
            absl::Status read =
                CheckCount(call.response.inputs_size(), call.cut);
            for (const v1::TokenizedInput& input : call.response.inputs()) {
              if (!read.ok()) break;
              read = sink(input);
            }
            return read;
          });
  return status.ok() ? cutter.status() : status;
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
