// Fault points: calls to the system that a test makes fail, by name. The test
// program itself defines the functions (faults.cc) and passes each call on to
// the system unless a fault is switched on, so that no product code knows of
// it. In server_fault_test every point strikes at least once.
//
//   ScopedFault fault(FaultPoint::kAccept,
//                     {.error = EMFILE, .times = 3, .thread = "accept"});
//
// Calls that gRPC makes itself always pass: it ends the process where one
// fails. Works under the sanitizers, whose own versions are called next.
// Thread-safe; one fault a point at a time.
#ifndef ENCODERD_TESTS_SUPPORT_FAULTS_H_
#define ENCODERD_TESTS_SUPPORT_FAULTS_H_

#include <cerrno>
#include <climits>
#include <cstddef>

namespace encoderd {

enum class FaultPoint {
  kAllocation,  // operator new (throws bad_alloc), aligned_alloc (null)
  kThread,      // pthread_create
  kOpen,        // open, mkostemp
  kStat,        // fstat
  kLookUp,      // lstat, stat, realpath (null)
  kRead,        // read
  kReadAt,      // pread
  kWrite,       // write
  kSync,        // fsync
  kRename,      // rename
  kMakeFolder,  // mkdir
  kLock,        // flock
  kSocket,      // socket
  kBind,        // bind
  kListen,      // listen
  kSocketName,  // getsockname
  kAccept,      // accept4
  kDuplicate,   // fcntl with F_DUPFD_CLOEXEC
  kReceive,     // recv
  kSend,        // send
  kWatcher,     // epoll_create1
  kWatch,       // epoll_ctl with EPOLL_CTL_ADD
  kWakeUp,      // eventfd
  kSignals,     // signalfd
  kDevice,      // a batch of FakeDevice, where FailWhen asks Strikes
  kCount,
};

const char* NameOf(FaultPoint point);

// What is to fail, and how.
struct Fault {
  static constexpr char kAnyThread[] = "*";

  // As errno has it. 0, for what reads or writes: 0 bytes, as at a file's end.
  int error = EIO;
  int after = 0;  // calls that are meant and pass before the first that fails
  int times = 1;  // INT_MAX: all from there on
  size_t min_bytes = 0;  // allocations: of this many bytes or more
  // Whose calls are meant: those of the thread that switches the fault on
  // (null), of threads of this name, or of any.
  const char* thread = nullptr;
  // Its end does not ask that it struck: for a loop over `after`.
  bool may_miss = false;
};

// Switched on until the end, which fails the test where no call was struck.
class ScopedFault {
 public:
  ScopedFault(FaultPoint point, const Fault& fault);
  ~ScopedFault();
  ScopedFault(const ScopedFault&) = delete;
  ScopedFault& operator=(const ScopedFault&) = delete;

  // Calls so far: those that were meant, and those of them that failed.
  int meant() const;
  int struck() const;

 private:
  const FaultPoint point_;
  const bool may_miss_;
};

// For a stand-in of the test's own: whether this call fails.
bool Strikes(FaultPoint point);

// In the whole program so far.
int TimesStruck(FaultPoint point);

}  // namespace encoderd

#endif  // ENCODERD_TESTS_SUPPORT_FAULTS_H_
