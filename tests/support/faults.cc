#include "tests/support/faults.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstring>
#include <mutex>
#include <new>
#include <optional>

namespace encoderd {
namespace {

// Nothing here allocates: it is asked by operator new.
struct Point {
  std::atomic<bool> on{false};
  std::atomic<int> in_all{0};
  std::mutex mutex;  // all below
  Fault fault;
  pthread_t owner = {};
  int meant = 0;
  int struck = 0;
};

constexpr auto kPoints = static_cast<size_t>(FaultPoint::kCount);
constinit std::array<Point, kPoints> g_points;

Point& PointOf(FaultPoint point) {
  return g_points[static_cast<size_t>(point)];
}

bool IsMeant(const Point& point) {
  const char* const wanted = point.fault.thread;
  if (wanted == nullptr) return pthread_equal(pthread_self(), point.owner) != 0;
  if (std::strcmp(wanted, Fault::kAnyThread) == 0) return true;
  char name[16] = "";
  pthread_getname_np(pthread_self(), name, sizeof(name));
  return std::strcmp(wanted, name) == 0;
}

// Of gRPC's libraries.
bool IsSpared(const void* caller) {
  Dl_info info = {};
  if (dladdr(caller, &info) == 0 || info.dli_fname == nullptr) return false;
  for (const char* library : {"/libgrpc", "/libgpr"}) {
    if (std::strstr(info.dli_fname, library) != nullptr) return true;
  }
  return false;
}

// The error that a call is to have, if it is to have one.
std::optional<int> Strike(FaultPoint which, const void* caller,
                          size_t bytes = SIZE_MAX) {
  Point& point = PointOf(which);
  if (!point.on.load(std::memory_order_acquire)) return std::nullopt;
  const std::lock_guard<std::mutex> lock(point.mutex);
  const Fault& fault = point.fault;
  if (!point.on || bytes < fault.min_bytes || !IsMeant(point) ||
      IsSpared(caller)) {
    return std::nullopt;
  }
  if (point.meant++ < fault.after || point.struck >= fault.times) {
    return std::nullopt;
  }
  ++point.struck;
  ++point.in_all;
  return fault.error;
}

// What a call that was struck returns.
int Failed(int error) {
  if (error == 0) return 0;
  errno = error;
  return -1;
}

// The function that a call would reach without this file. It is called with
// the types of the arguments as they are given.
template <typename Result = int>
class Next {
 public:
  constexpr explicit Next(const char* name) : name_(name) {}

  template <typename... Arguments>
  Result operator()(Arguments... arguments) {
    void* address = address_.load(std::memory_order_relaxed);
    if (address == nullptr) {
      address = dlsym(RTLD_NEXT, name_);
      if (address == nullptr) abort();
      address_.store(address, std::memory_order_relaxed);
    }
    return reinterpret_cast<Result (*)(Arguments...)>(address)(arguments...);
  }

 private:
  const char* const name_;
  std::atomic<void*> address_{nullptr};
};

}  // namespace

const char* NameOf(FaultPoint point) {
  constexpr std::array<const char*, kPoints> kNames = {
      "allocation", "thread",  "open",      "stat",    "look-up",
      "read",       "read at", "write",     "sync",    "rename",
      "folder",     "lock",    "socket",    "bind",    "listen",
      "name",       "accept",  "duplicate", "receive", "send",
      "watcher",    "watch",   "wake-up",   "signals", "device"};
  return kNames[static_cast<size_t>(point)];
}

ScopedFault::ScopedFault(FaultPoint point, const Fault& fault)
    : point_(point), may_miss_(fault.may_miss) {
  Point& to = PointOf(point);
  const std::lock_guard<std::mutex> lock(to.mutex);
  if (to.on) abort();  // one at a time
  to.fault = fault;
  to.owner = pthread_self();
  to.meant = 0;
  to.struck = 0;
  to.on.store(true, std::memory_order_release);
}

ScopedFault::~ScopedFault() {
  PointOf(point_).on = false;
  if (may_miss_) return;
  EXPECT_GT(struck(), 0) << NameOf(point_);
}

int ScopedFault::meant() const {
  Point& point = PointOf(point_);
  const std::lock_guard<std::mutex> lock(point.mutex);
  return point.meant;
}

int ScopedFault::struck() const {
  Point& point = PointOf(point_);
  const std::lock_guard<std::mutex> lock(point.mutex);
  return point.struck;
}

bool Strikes(FaultPoint point) {
  return Strike(point, __builtin_return_address(0)).has_value();
}

int TimesStruck(FaultPoint point) { return PointOf(point).in_all; }

}  // namespace encoderd

// From here on: the functions of the C and C++ libraries. The compiler must not
// see through operator new, or it warns of a delete that does not match.

using encoderd::FaultPoint;

// Returns from a function of the system that is to fail.
#define ENCODERD_FAIL_IF_STRUCK(point)                                        \
  if (const auto error =                                                      \
          encoderd::Strike(FaultPoint::point, __builtin_return_address(0))) { \
    return encoderd::Failed(*error);                                          \
  }

[[gnu::noinline]] void* operator new(size_t size) {
  static constinit encoderd::Next<void*> next("_Znwm");
  if (encoderd::Strike(FaultPoint::kAllocation, __builtin_return_address(0),
                       size)) {
    throw std::bad_alloc();
  }
  return next(size);
}

[[gnu::noinline]] void* operator new[](size_t size) {
  static constinit encoderd::Next<void*> next("_Znam");
  if (encoderd::Strike(FaultPoint::kAllocation, __builtin_return_address(0),
                       size)) {
    throw std::bad_alloc();
  }
  return next(size);
}

extern "C" {

void* aligned_alloc(size_t alignment, size_t size) noexcept {
  static constinit encoderd::Next<void*> next("aligned_alloc");
  if (encoderd::Strike(FaultPoint::kAllocation, __builtin_return_address(0),
                       size)) {
    return nullptr;
  }
  return next(alignment, size);
}

int pthread_create(pthread_t* thread, const pthread_attr_t* attributes,
                   void* (*start)(void*), void* argument) noexcept {
  static constinit encoderd::Next<> next("pthread_create");
  if (const auto error =
          encoderd::Strike(FaultPoint::kThread, __builtin_return_address(0))) {
    return *error;
  }
  return next(thread, attributes, start, argument);
}

int open(const char* path, int flags, ...) {
  static constinit encoderd::Next<> next("open");
  ENCODERD_FAIL_IF_STRUCK(kOpen)
  mode_t mode = 0;
  if ((flags & O_CREAT) != 0) {
    va_list more;
    va_start(more, flags);
    mode = va_arg(more, mode_t);
    va_end(more);
  }
  return next(path, flags, mode);
}

int mkostemp(char* path, int flags) {
  static constinit encoderd::Next<> next("mkostemp");
  ENCODERD_FAIL_IF_STRUCK(kOpen)
  return next(path, flags);
}

int fstat(int fd, struct stat* info) noexcept {
  static constinit encoderd::Next<> next("fstat");
  ENCODERD_FAIL_IF_STRUCK(kStat)
  return next(fd, info);
}

int lstat(const char* path, struct stat* info) noexcept {
  static constinit encoderd::Next<> next("lstat");
  ENCODERD_FAIL_IF_STRUCK(kLookUp)
  return next(path, info);
}

int stat(const char* path, struct stat* info) noexcept {
  static constinit encoderd::Next<> next("stat");
  ENCODERD_FAIL_IF_STRUCK(kLookUp)
  return next(path, info);
}

char* realpath(const char* path, char* resolved) noexcept {
  static constinit encoderd::Next<char*> next("realpath");
  if (const auto error =
          encoderd::Strike(FaultPoint::kLookUp, __builtin_return_address(0))) {
    errno = *error;
    return nullptr;
  }
  return next(path, resolved);
}

ssize_t read(int fd, void* bytes, size_t count) {
  static constinit encoderd::Next<ssize_t> next("read");
  ENCODERD_FAIL_IF_STRUCK(kRead)
  return next(fd, bytes, count);
}

ssize_t pread(int fd, void* bytes, size_t count, off_t offset) {
  static constinit encoderd::Next<ssize_t> next("pread");
  ENCODERD_FAIL_IF_STRUCK(kReadAt)
  return next(fd, bytes, count, offset);
}

ssize_t write(int fd, const void* bytes, size_t count) {
  static constinit encoderd::Next<ssize_t> next("write");
  ENCODERD_FAIL_IF_STRUCK(kWrite)
  return next(fd, bytes, count);
}

int fsync(int fd) {
  static constinit encoderd::Next<> next("fsync");
  ENCODERD_FAIL_IF_STRUCK(kSync)
  return next(fd);
}

int rename(const char* from, const char* to) noexcept {
  static constinit encoderd::Next<> next("rename");
  ENCODERD_FAIL_IF_STRUCK(kRename)
  return next(from, to);
}

int mkdir(const char* path, mode_t mode) noexcept {
  static constinit encoderd::Next<> next("mkdir");
  ENCODERD_FAIL_IF_STRUCK(kMakeFolder)
  return next(path, mode);
}

int flock(int fd, int operation) noexcept {
  static constinit encoderd::Next<> next("flock");
  ENCODERD_FAIL_IF_STRUCK(kLock)
  return next(fd, operation);
}

int socket(int domain, int type, int protocol) noexcept {
  static constinit encoderd::Next<> next("socket");
  ENCODERD_FAIL_IF_STRUCK(kSocket)
  return next(domain, type, protocol);
}

int bind(int fd, const sockaddr* address, socklen_t size) noexcept {
  static constinit encoderd::Next<> next("bind");
  ENCODERD_FAIL_IF_STRUCK(kBind)
  return next(fd, address, size);
}

int listen(int fd, int backlog) noexcept {
  static constinit encoderd::Next<> next("listen");
  ENCODERD_FAIL_IF_STRUCK(kListen)
  return next(fd, backlog);
}

int getsockname(int fd, sockaddr* address, socklen_t* size) noexcept {
  static constinit encoderd::Next<> next("getsockname");
  ENCODERD_FAIL_IF_STRUCK(kSocketName)
  return next(fd, address, size);
}

int accept4(int fd, sockaddr* address, socklen_t* size, int flags) {
  static constinit encoderd::Next<> next("accept4");
  ENCODERD_FAIL_IF_STRUCK(kAccept)
  return next(fd, address, size, flags);
}

// Every command's third argument, if any, is an int or a pointer: one register.
int fcntl(int fd, int command, ...) {
  static constinit encoderd::Next<> next("fcntl");
  if (command == F_DUPFD_CLOEXEC) ENCODERD_FAIL_IF_STRUCK(kDuplicate)
  va_list more;
  va_start(more, command);
  void* const argument = va_arg(more, void*);
  va_end(more);
  return next(fd, command, argument);
}

ssize_t recv(int fd, void* bytes, size_t count, int flags) {
  static constinit encoderd::Next<ssize_t> next("recv");
  ENCODERD_FAIL_IF_STRUCK(kReceive)
  return next(fd, bytes, count, flags);
}

ssize_t send(int fd, const void* bytes, size_t count, int flags) {
  static constinit encoderd::Next<ssize_t> next("send");
  ENCODERD_FAIL_IF_STRUCK(kSend)
  return next(fd, bytes, count, flags);
}

int epoll_create1(int flags) noexcept {
  static constinit encoderd::Next<> next("epoll_create1");
  ENCODERD_FAIL_IF_STRUCK(kWatcher)
  return next(flags);
}

int epoll_ctl(int epoll, int operation, int fd, epoll_event* event) noexcept {
  static constinit encoderd::Next<> next("epoll_ctl");
  if (operation == EPOLL_CTL_ADD) ENCODERD_FAIL_IF_STRUCK(kWatch)
  return next(epoll, operation, fd, event);
}

int eventfd(unsigned int count, int flags) noexcept {
  static constinit encoderd::Next<> next("eventfd");
  ENCODERD_FAIL_IF_STRUCK(kWakeUp)
  return next(count, flags);
}

int signalfd(int fd, const sigset_t* mask, int flags) noexcept {
  static constinit encoderd::Next<> next("signalfd");
  ENCODERD_FAIL_IF_STRUCK(kSignals)
  return next(fd, mask, flags);
}

}  // extern "C"
