// Our own accept loop in front of gRPC, for three things its own cannot do:
//
// 1. A cap on open connections; beyond it new ones wait in the kernel's backlog
//    and are taken as soon as another ends.
// 2. It lives on after the process ran out of file descriptors.
// 3. A shutdown that loses no call. gRPC's Shutdown cancels every call that it
//    reads afterwards; StopReading leaves such calls unread, so that the GOAWAY
//    that Shutdown sends does not cover them and callers send them elsewhere
//    (RFC 9113, section 6.8).
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

  // Takes every connection in the backlog, closes the listener, and keeps gRPC
  // from reading: what callers send from now on stays unread in the sockets.
  // Returns once the listener is closed. Threads of gRPC may still be busy with
  // what they read before.
  void StopReading();

  // Closes every connection that is still open so long from now, whatever its
  // caller has left unread: bounds a Shutdown that is called next. After
  // StopReading.
  void CloseAllAfter(absl::Duration patience);

  int64_t connections() const;
  int64_t max_connections() const { return max_connections_; }

 private:
  void Run();
  void AcceptAll();
  void StopAccepting();
  void CloseAll();
  int TimeLeftMs() const;
  void Wake();
  void Ended(int duplicate);
  void WatchListener(bool on);

  const int listener_;
  const int max_connections_;
  const std::unique_ptr<grpc::experimental::ExternalConnectionAcceptor> sink_;
  const int epoll_;
  const int wake_;
  std::atomic<bool> stop_{false};
  std::atomic<bool> stop_reading_{false};
  bool listening_ = false;  // only the thread uses it
  std::thread thread_;

  mutable absl::Mutex mu_;
  bool listener_closed_ ABSL_GUARDED_BY(mu_) = false;
  absl::Time close_all_ ABSL_GUARDED_BY(mu_) = absl::InfiniteFuture();
  // Duplicates of open connections.
  std::unordered_set<int> open_ ABSL_GUARDED_BY(mu_);
};

}  // namespace encoderd

#endif  // ENCODERD_SERVER_RPC_ACCEPTOR_H_
