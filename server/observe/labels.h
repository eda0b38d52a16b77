// The values of the labels: the result of a call, the reason of an error, the
// stages of a request, the states of the server. Fixed lists, so that every
// series exists from the start and no caller can create another. Thread-safe:
// plain functions.
#ifndef ENCODERD_SERVER_OBSERVE_LABELS_H_
#define ENCODERD_SERVER_OBSERVE_LABELS_H_

#include <array>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "server/pipeline/request.h"

namespace encoderd {

const char* StageName(Stage stage);  // "tokenize"

// `code`: the codes with which methods of this server answer. Any other code
// counts as INTERNAL.
inline constexpr std::array<absl::StatusCode, 9> kAnswerCodes = {
    absl::StatusCode::kOk,          absl::StatusCode::kInvalidArgument,
    absl::StatusCode::kNotFound,    absl::StatusCode::kResourceExhausted,
    absl::StatusCode::kUnavailable, absl::StatusCode::kDeadlineExceeded,
    absl::StatusCode::kCancelled,   absl::StatusCode::kUnauthenticated,
    absl::StatusCode::kInternal};

// `outcome`: who is responsible, from the code. "ok"; "invalid", the caller's
// fault (also RESOURCE_EXHAUSTED by a limit of the caller's own token);
// "refused", retry; "cancelled", the caller canceled or its time was up;
// "failed", the server's fault.
const char* OutcomeOf(absl::StatusCode code);

// `reason`: every reason of ErrorReason. An unknown one counts as
// INTERNAL_FAULT.
const std::vector<std::string>& RejectionReasons();

// `state` of encoderd_state, in the order of a server's life.
enum class ServerState { kLoading, kServing, kDraining, kFailed };
inline constexpr int kNumServerStates =
    static_cast<int>(ServerState::kFailed) + 1;
const char* StateName(ServerState state);  // "loading"

// `cause` of a TLS handshake that failed.
enum class TlsFault {
  kNoCertificate,       // the client has none, and needs one
  kCertificateRefused,  // the client's: foreign, expired, not for clients
  kRefusedByClient,     // it does not trust the server's, or disconnects
  kOldProtocol,         // before TLS 1.2
  kNotTls,              // plain text
  kOther
};
inline constexpr int kNumTlsFaults = static_cast<int>(TlsFault::kOther) + 1;
const char* TlsFaultName(TlsFault fault);  // "no_certificate"

}  // namespace encoderd

#endif  // ENCODERD_SERVER_OBSERVE_LABELS_H_
