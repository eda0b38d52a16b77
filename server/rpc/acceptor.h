// Our own accept loop in front of gRPC, for three things its own cannot do:
//
// 1. A cap on open connections; beyond it new ones wait in the kernel's backlog
//    and are taken as soon as another ends.
// 2. It lives on after the process ran out of file descriptors.
// 3. A way out without a wrong answer: gRPC's Shutdown answers calls that are
//    already on their way with CANCELLED. Goodbye closes our side of every
//    connection first, so that those calls end with UNAVAILABLE.
//
// It keeps a duplicate of each connection's descriptor, to see it end and to
// close our side of it: two descriptors a connection. One thread, "accept".
#ifndef ENCODERD_SERVER_RPC_ACCEPTOR_H_
#define ENCODERD_SERVER_RPC_ACCEPTOR_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <thread>
#include <unordered_set>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "grpcpp/server_builder.h"

namespace encoderd {

class Acceptor {
 public:
  // Takes over `listener`, a listening non-blocking socket; hands connections
  // to `sink` from Start on.
  Acceptor(
      int listener, int max_connections,
      std::unique_ptr<grpc::experimental::ExternalConnectionAcceptor> sink);
  // Stops accepting and closes the listener; connections stay gRPC's.
  ~Acceptor();

  // After the gRPC server has started. Call once.
  void Start();

  // Stops accepting for good, then says on every connection that nothing will
  // follow what was sent, and waits for the callers to hang up.
  void Goodbye(absl::Duration patience);

  int64_t connections() const;
  int64_t max_connections() const { return max_connections_; }

 private:
  void Run();
  void AcceptAll();
  void Ended(int duplicate);
  void WatchListener(bool on);

  const int listener_;
  const int max_connections_;
  const std::unique_ptr<grpc::experimental::ExternalConnectionAcceptor> sink_;
  const int epoll_;
  const int wake_;
  std::atomic<bool> stop_{false};
  std::atomic<bool> closed_{false};  // to new connections
  bool listening_ = false;           // the thread's own
  std::thread thread_;

  mutable absl::Mutex mu_;
  // Duplicates of open connections.
  std::unordered_set<int> open_ ABSL_GUARDED_BY(mu_);
};

}  // namespace encoderd

#endif  // ENCODERD_SERVER_RPC_ACCEPTOR_H_
