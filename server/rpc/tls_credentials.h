// gRPC's side of TLS: every new connection gets the certificate that is current
// then; open ones keep theirs.
#ifndef ENCODERD_SERVER_RPC_TLS_CREDENTIALS_H_
#define ENCODERD_SERVER_RPC_TLS_CREDENTIALS_H_

#include <memory>

#include "grpcpp/security/server_credentials.h"
#include "server/security/secrets.h"

namespace encoderd {

// TLS 1.2 or later. If the certificates have a client CA, only clients with a
// certificate signed by it are accepted. `secrets`, which has certificates,
// outlives the server.
std::shared_ptr<grpc::ServerCredentials> NewTlsCredentials(
    const Secrets* secrets);

}  // namespace encoderd

#endif  // ENCODERD_SERVER_RPC_TLS_CREDENTIALS_H_
