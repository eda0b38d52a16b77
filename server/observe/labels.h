// The values of the labels: what a call ended in, why it was refused, the
// stages of its way, the states of the server. Fixed lists, so that every
// series is there from the start and no caller can make another one.
// Thread-safe: plain functions.
#ifndef ENCODERD_SERVER_OBSERVE_LABELS_H_
#define ENCODERD_SERVER_OBSERVE_LABELS_H_

#include <array>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "server/pipeline/request.h"

namespace encoderd {

const char* StageName(Stage stage);  // "tokenize"

// `code`: the codes that a method of this server answers with. Any other code
// counts as INTERNAL.
inline constexpr std::array<absl::StatusCode, 9> kAnswerCodes = {
    absl::StatusCode::kOk,          absl::StatusCode::kInvalidArgument,
    absl::StatusCode::kNotFound,    absl::StatusCode::kResourceExhausted,
    absl::StatusCode::kUnavailable, absl::StatusCode::kDeadlineExceeded,
    absl::StatusCode::kCancelled,   absl::StatusCode::kUnauthenticated,
    absl::StatusCode::kInternal};

// `outcome`: whose it is, from the code alone. "ok"; "invalid", the caller's;
// "refused", try again; "cancelled", the caller left or its time was over;
// "failed", the server's.
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
  kRefusedByClient,     // it does not trust the server's, or leaves
  kOldProtocol,         // before TLS 1.2
  kNotTls,              // plain text
  kOther
};
inline constexpr int kNumTlsFaults = static_cast<int>(TlsFault::kOther) + 1;
const char* TlsFaultName(TlsFault fault);  // "no_certificate"

}  // namespace encoderd

#endif  // ENCODERD_SERVER_OBSERVE_LABELS_H_
