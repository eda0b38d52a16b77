// How the process ends.
#ifndef ENCODERD_SERVER_EXIT_CODES_H_
#define ENCODERD_SERVER_EXIT_CODES_H_

namespace encoderd {

inline constexpr int kExitOk = 0;           // after TERM or INT
inline constexpr int kExitStartFailed = 1;  // flags, a file or a model rejected
inline constexpr int kExitDeviceLost = 3;   // a supervisor should restart it
inline constexpr int kExitHurried = 4;      // a second TERM or INT
// The start failed, but the next may succeed: the address is in use; memory,
// threads, descriptors or the device are not available; or the disk or network
// file system with flags, a model, a certificate, a key or tokens did not
// answer.
inline constexpr int kExitTryAgain = 5;

}  // namespace encoderd

#endif  // ENCODERD_SERVER_EXIT_CODES_H_
