// gRPC's side of TLS: every new connection gets the certificate that is in use
// then; those that are open keep theirs.
#ifndef ENCODERD_SERVER_RPC_TLS_CREDENTIALS_H_
#define ENCODERD_SERVER_RPC_TLS_CREDENTIALS_H_

#include <memory>

#include "grpcpp/security/server_credentials.h"
#include "server/security/secrets.h"

namespace encoderd {

// TLS 1.2 or later. Where the certificates have a client CA, only clients with
// a certificate of it are let in. `secrets`, which has certificates, outlives
// the server.
std::shared_ptr<grpc::ServerCredentials> NewTlsCredentials(
    const Secrets* secrets);

}  // namespace encoderd

#endif  // ENCODERD_SERVER_RPC_TLS_CREDENTIALS_H_
