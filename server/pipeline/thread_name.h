// Names for threads, as ps, top and debuggers show them.
#ifndef ENCODERD_SERVER_PIPELINE_THREAD_NAME_H_
#define ENCODERD_SERVER_PIPELINE_THREAD_NAME_H_

#include <pthread.h>

#include <string>

namespace encoderd {

// Names the calling thread; the system keeps the first 15 characters.
inline void SetThreadName(const std::string& name) {
#ifdef __linux__
  pthread_setname_np(pthread_self(), name.substr(0, 15).c_str());
#endif
}

}  // namespace encoderd

#endif  // ENCODERD_SERVER_PIPELINE_THREAD_NAME_H_
