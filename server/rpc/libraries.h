// What a process does to gRPC and Protobuf before it uses them, for all of its
// servers: they have no such settings of one server.
#ifndef ENCODERD_SERVER_RPC_LIBRARIES_H_
#define ENCODERD_SERVER_RPC_LIBRARIES_H_

namespace encoderd {

// Before gRPC starts and before other threads, because it changes the
// environment (GRPC_EXPERIMENTS). From then on Protobuf before version 22 logs
// nothing, gRPC logs to the server's log (grpc_log.h), and reads from a
// connection in bounded pieces.
void PrepareLibraries();

}  // namespace encoderd

#endif  // ENCODERD_SERVER_RPC_LIBRARIES_H_
