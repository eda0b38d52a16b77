#include "server/rpc/libraries.h"

#include <cstdlib>
#include <string>

#include "absl/strings/str_cat.h"
#include "google/protobuf/stubs/common.h"
#include "server/rpc/grpc_log.h"

#if GOOGLE_PROTOBUF_VERSION < 4000000
#include "google/protobuf/stubs/logging.h"
#endif

namespace encoderd {
namespace {

// Keeps the Protobuf library from writing a line to standard error for each
// text that is not UTF-8: callers must not be able to fill the log. Does
// nothing if the library has no such switch (version 22 and later).
void QuietProtobuf() {
#if GOOGLE_PROTOBUF_VERSION < 4000000
  google::protobuf::SetLogHandler(nullptr);
#endif
}

// gRPC 1.51 sizes the buffers of a connection's next read by the bytes that
// came since its socket was last empty. A caller that never lets it be empty
// makes it allocate hundreds of megabytes, and past 2 GiB abort the process.
// Without this experiment, which is on by default, a read has a fixed limit.
void ReadInBoundedPieces() {
  constexpr char kName[] = "GRPC_EXPERIMENTS";
  const char* chosen = std::getenv(kName);
  const std::string others = chosen == nullptr ? "" : absl::StrCat(chosen, ",");
  ::setenv(kName, absl::StrCat(others, "-tcp_read_chunks").c_str(),
           /*overwrite=*/1);
}

}  // namespace

void PrepareLibraries() {
  QuietProtobuf();
  ReadInBoundedPieces();
  TakeGrpcLog();
}

}  // namespace encoderd
