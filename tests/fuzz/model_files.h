// A folder of files, for fuzzers of what reads folders.
#ifndef ENCODERD_TESTS_FUZZ_MODEL_FILES_H_
#define ENCODERD_TESTS_FUZZ_MODEL_FILES_H_

#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <string>
#include <system_error>

#include "tests/fuzz/require.h"

namespace encoderd {

// The program's own, removed when it exits. In memory where the system has such
// a folder: a run writes millions of files.
inline const std::string& FuzzFolder() {
  static const std::string& made = *[] {
    for (const char* parent : {"/dev/shm", "/tmp"}) {
      std::string folder = std::string(parent) + "/encoderd-fuzz-XXXXXX";
      if (mkdtemp(folder.data()) != nullptr) return new std::string(folder);
    }
    abort();
  }();
  static const int registered = atexit([] {
    std::error_code ignored;
    std::filesystem::remove_all(made, ignored);
  });
  Require(registered == 0);
  return made;
}

// Makes a folder in it.
inline void MakeFuzzFolder(const std::string& name) {
  Require(mkdir((FuzzFolder() + "/" + name).c_str(), 0700) == 0);
}

// Writes a file of it; one that is empty is not there.
inline void Put(const std::string& name, const std::string& content) {
  const std::string path = FuzzFolder() + "/" + name;
  if (content.empty()) {
    unlink(path.c_str());
    return;
  }
  FILE* file = fopen(path.c_str(), "wb");
  Require(file != nullptr);
  Require(fwrite(content.data(), 1, content.size(), file) == content.size());
  Require(fclose(file) == 0);
}

}  // namespace encoderd

#endif  // ENCODERD_TESTS_FUZZ_MODEL_FILES_H_
