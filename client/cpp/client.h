// A client of encoderd.v1: lists of texts in, matrices out.
//
// Start here:
//   auto client = Client::Connect("localhost:8400");
//   auto matrix = (*client)->Embed({"first text", "second text"});
//
// Lists may have any length. They are cut into calls
// (ClientOptions.texts_per_call), and a bounded number of calls is in flight
// together; rows keep the order of the list. The ...Each forms read the list
// and return results piece by piece, so memory does not grow with the list.
//
// Errors: the server's own code and message; error.h has the details. All
// methods but Health first retry UNAVAILABLE and RESOURCE_EXHAUSTED
// (service_config.h). They wait up to the timeout for a server that is loading
// its model or whose queue is full, and for one that has gone away if
// ClientOptions::await_return says so.
// Thread-safe: any thread may call anything; calls block the calling thread.
#ifndef ENCODERD_CLIENT_CPP_CLIENT_H_
#define ENCODERD_CLIENT_CPP_CLIENT_H_

#include <grpcpp/channel.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "client/cpp/bulk.h"
#include "client/cpp/inputs.h"
#include "client/cpp/matrix.h"
#include "client/cpp/options.h"
#include "encoderd/v1/encoder.grpc.pb.h"

namespace encoderd::client {

// The health of a server or of one of its services (grpc.health.v1).
enum class ServingStatus { kUnknown, kServing, kNotServing };

class Client {
 public:
  // `target` is a gRPC name: host:port, dns:///name:port, unix:/path; without
  // a port: 8400. Returns at once; the connection is made by the first call.
  // INVALID_ARGUMENT for an option out of range, a target that cannot be
  // dialed, a certificate, key or token that cannot be used, or a token that
  // would cross the network unencrypted.
  static absl::StatusOr<std::unique_ptr<Client>> Connect(
      const std::string& target, ClientOptions options = {});

  // One vector for each text. An empty list gives an empty matrix. Floats only:
  // INVALID_ARGUMENT for another encoding.
  absl::StatusOr<EmbeddingMatrix> Embed(absl::Span<const std::string> texts,
                                        const EmbedOptions& options = {}) const;

  // The same for a list of any length: `sink` gets the rows of call after call
  // in order. An error of source or sink ends the list with that error.
  absl::Status EmbedEach(
      InputSource source, const EmbedOptions& options,
      const std::function<absl::Status(const EmbeddingMatrix&)>& sink) const;

  // The same over one EmbedStream call, for work in bulk (bulk.h): survives a
  // restart of the server, and one bad input costs its own answer only. `sink`
  // gets answers in the list's order; its error ends the work.
  absl::Status EmbedBulk(
      InputSource source, const EmbedOptions& embed, const BulkOptions& options,
      const std::function<absl::Status(const BulkAnswer&)>& sink) const;

  // The states of every token of each text at one layer.
  absl::StatusOr<std::vector<TokenStates>> Encode(
      absl::Span<const std::string> texts,
      const EncodeOptions& options = {}) const;
  absl::Status EncodeEach(
      InputSource source, const EncodeOptions& options,
      const std::function<absl::Status(const TokenStates&)>& sink) const;

  // Ids, tokens and offsets of each text. Nothing is computed. A text may be
  // longer than Model.max_len; REQUEST_TOO_LARGE for one that exceeds the
  // server's --max_queue_tokens or the size of an answer.
  absl::StatusOr<std::vector<v1::TokenizedInput>> Tokenize(
      absl::Span<const std::string> texts,
      const TokenizeOptions& options = {}) const;
  absl::Status TokenizeEach(
      InputSource source, const TokenizeOptions& options,
      const std::function<absl::Status(const v1::TokenizedInput&)>& sink) const;

  // The models of the server, the default one first.
  absl::StatusOr<std::vector<v1::Model>> Models() const;
  // One model; empty: the only or the default one.
  absl::StatusOr<v1::Model> GetModel(const std::string& name = "") const;

  // Norms, similarities and a verdict on rows of the position table.
  absl::StatusOr<v1::InspectPositionsResponse> InspectPositions(
      const InspectOptions& options = {}) const;

  // Empty: the server as a whole. NOT_FOUND for a service it does not know.
  absl::StatusOr<ServingStatus> Health(const std::string& service = "") const;

  // For calls that this class does not make: the contract as generated, on the
  // same connection and with the same retries.
  v1::Encoder::Stub* stub() const { return stub_.get(); }

 private:
  Client(std::shared_ptr<grpc::Channel> channel, ClientOptions options);
  // Makes a call, and again while the server loads or its queue is full, until
  // the timeout passes. CANCELLED if it was stopped in between.
  absl::Status Call(
      absl::FunctionRef<grpc::Status(grpc::ClientContext*)> call) const;

  const ClientOptions options_;
  const std::shared_ptr<grpc::Channel> channel_;
  const std::unique_ptr<v1::Encoder::Stub> stub_;
};

}  // namespace encoderd::client

#endif  // ENCODERD_CLIENT_CPP_CLIENT_H_
