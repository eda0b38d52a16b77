// Tells the service manager that started the process how far it is: systemd's
// protocol for Type=notify, a datagram of NAME=VALUE lines to a Unix socket.
// Without a library: the protocol is one sendto. Thread-safe; never blocks.
#ifndef ENCODERD_SERVER_SERVICE_MANAGER_H_
#define ENCODERD_SERVER_SERVICE_MANAGER_H_

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace encoderd {

// Where the service manager listens, from the environment variable
// NOTIFY_SOCKET: a path, or an abstract name that begins with '@'. Empty:
// nobody asked to be told.
std::string ServiceManagerSocket();

// Sends `lines` to that socket; nothing if it is empty. UNAVAILABLE names the
// socket if it takes nothing.
absl::Status TellServiceManager(const std::string& socket,
                                absl::string_view lines);

// What to tell: every model is served; or the process is leaving, and may take
// `patience` from now on before it is killed, whatever TimeoutStopSec= says.
inline constexpr char kReadyLines[] = "READY=1\nSTATUS=serving\n";
std::string StoppingLines(absl::Duration patience);

}  // namespace encoderd

#endif  // ENCODERD_SERVER_SERVICE_MANAGER_H_
