// A folder for one test, removed with everything in it at the end.
#ifndef ENCODERD_TESTS_SUPPORT_TEMP_FOLDER_H_
#define ENCODERD_TESTS_SUPPORT_TEMP_FOLDER_H_

#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <string>

namespace encoderd {

class TempFolder {
 public:
  TempFolder() {
    std::string name =
        (std::filesystem::temp_directory_path() / "encoderd-test-XXXXXX");
    path_ = ::mkdtemp(name.data()) == nullptr ? "" : name;
  }
  ~TempFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TempFolder(const TempFolder&) = delete;
  TempFolder& operator=(const TempFolder&) = delete;

  const std::string& path() const { return path_; }
  std::string Path(const std::string& name) const { return path_ + "/" + name; }

  // Makes the folders on the way.
  void Write(const std::string& name, const std::string& content) const {
    std::filesystem::create_directories(
        std::filesystem::path(Path(name)).parent_path());
    std::ofstream(Path(name), std::ios::binary) << content;
  }

 private:
  std::string path_;
};

}  // namespace encoderd

#endif  // ENCODERD_TESTS_SUPPORT_TEMP_FOLDER_H_
