// An accept loop in front of gRPC, for three things that gRPC's own cannot do:
//
// 1. A cap on open connections; beyond it new ones wait in the kernel's backlog
//    and are taken as soon as another ends. And a cap for each address, so that
//    one caller cannot keep all others waiting; beyond it new ones are closed.
//    The last connections are for addresses that have none, so that a health
//    check gets in despite a few callers who take all they can.
// 2. It keeps working after the process ran out of file descriptors.
// 3. A shutdown that loses no call. gRPC's Shutdown cancels every call that it
//    reads afterwards; StopReading leaves such calls unread, so that the last
//    GOAWAY that Shutdown sends does not cover them and callers send them
//    elsewhere (RFC 9113, section 6.8).
//
// It keeps a duplicate of each connection's descriptor, to notice its end and
// to close its local side: two descriptors per connection. One thread,
// "accept".
#ifndef ENCODERD_SERVER_RPC_ACCEPTOR_H_
#define ENCODERD_SERVER_RPC_ACCEPTOR_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <unordered_map>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "grpcpp/server_builder.h"
#include "server/base/log.h"

namespace encoderd {

class Acceptor {
 public:
  static constexpr int kReserveShare = 64;

  // Takes over `listener`, a listening non-blocking socket; hands connections
  // to `sink` from Start on. An address is an IPv4 address or the first 64 bits
  // of an IPv6 address, because a caller with one of those has all of them.
  // The last max_connections / kReserveShare, so none below 64, are for
  // addresses without any.
  Acceptor(
      int listener, int max_connections, int max_per_address,
      std::unique_ptr<grpc::experimental::ExternalConnectionAcceptor> sink);
  // Stops accepting and closes the listener; connections stay with gRPC.
  ~Acceptor();

  // After the gRPC server has started. Call once. The system's error if its
  // descriptors are unavailable; throws what StartThread throws.
  absl::Status Start();

  // Takes what waits in the backlog, as far as max_connections() allows, closes
  // the listener, and keeps gRPC from reading: what callers send from now on
  // stays unread in the sockets. Waits for each connection to be quiet, 200 ms
  // at most: Shutdown would cancel a call that is only partly read. Threads of
  // gRPC may still be busy with what they read before.
  void StopReading();

  // Closes every connection that is still open after this time, whatever its
  // caller has not read: bounds the following Shutdown. After StopReading.
  void CloseAllAfter(absl::Duration patience);

  int64_t connections() const;
  int64_t max_connections() const { return max_connections_; }
  // Connections closed so far because their address had reached a limit.
  int64_t refused() const { return refused_; }

 private:
  bool Watch(int fd, uint32_t events);
  void Run();
  // At most `most` connections of the backlog.
  void AcceptSome(int most);
  // False: none waits, or none can be accepted now.
  bool AcceptOne();
  struct Limit {
    int value;
    absl::string_view message;
  };
  // What an address with `open` connections has reached, if it may have no
  // other.
  std::optional<Limit> LimitReached(int open) const
      ABSL_SHARED_LOCKS_REQUIRED(mu_);
  // Counts the connection as open, or returns the limit that it exceeds.
  std::optional<Limit> Register(int duplicate, const std::string& address);
  // Counts a connection closed at once, and logs it once per minute at most.
  void Refused(const std::string& address, const Limit& limit);
  void StopAccepting();
  void StopReadingBetweenCalls();
  void CloseAll();
  int TimeLeftMs() const;
  void Wake();
  void Ended(int duplicate);
  void WatchListener(bool on);

  const int listener_;
  const int max_connections_;
  const int max_per_address_;
  const std::unique_ptr<grpc::experimental::ExternalConnectionAcceptor> sink_;
  const int epoll_;
  const int wake_;
  int setup_error_ = 0;  // errno; constant once constructed
  std::atomic<int64_t> refused_{0};
  LogLimit refusals_logged_{1, absl::Minutes(1)};  // only the thread uses it
  std::atomic<bool> stop_{false};
  std::atomic<bool> stop_reading_{false};
  bool listening_ = false;  // only the thread uses it
  std::thread thread_;

  mutable absl::Mutex mu_;
  bool listener_closed_ ABSL_GUARDED_BY(mu_) = false;
  absl::Time close_all_ ABSL_GUARDED_BY(mu_) = absl::InfiniteFuture();
  // Duplicates of open connections, each with its address.
  std::unordered_map<int, std::string> open_ ABSL_GUARDED_BY(mu_);
  std::unordered_map<std::string, int> by_address_ ABSL_GUARDED_BY(mu_);
};

}  // namespace encoderd

#endif  // ENCODERD_SERVER_RPC_ACCEPTOR_H_
