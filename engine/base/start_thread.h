// Threads with names, which ps, top and debuggers show.
#ifndef ENCODERD_ENGINE_BASE_START_THREAD_H_
#define ENCODERD_ENGINE_BASE_START_THREAD_H_

#include <pthread.h>

#include <string>
#include <system_error>
#include <thread>
#include <utility>

namespace encoderd {

// Runs `body` on a new thread of this name, of which the system keeps the first
// 15 characters. Throws a std::system_error that names the thread if the system
// starts no more threads, and std::bad_alloc.
template <typename Body>
std::thread StartThread(const std::string& name, Body body) {
  try {
    return std::thread([name, body = std::move(body)]() mutable {
#ifdef __linux__
      pthread_setname_np(pthread_self(), name.substr(0, 15).c_str());
#endif
      body();
    });
  } catch (const std::system_error& error) {
    throw std::system_error(error.code(), "cannot start the thread " + name);
  }
}

}  // namespace encoderd

#endif  // ENCODERD_ENGINE_BASE_START_THREAD_H_
