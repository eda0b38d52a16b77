// Runs every file of a folder through a fuzz target, once. So the corpus is
// replayed by any compiler, and a found input stays found.
#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <string>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

int main(int argc, char** argv) {
  if (argc != 2) {
    std::cerr << "usage: " << argv[0] << " FOLDER\n";
    return 2;
  }
  std::error_code error;
  std::vector<std::filesystem::path> paths;
  for (const auto& entry :
       std::filesystem::recursive_directory_iterator(argv[1], error)) {
    if (entry.is_regular_file()) paths.push_back(entry.path());
  }
  if (paths.empty()) {
    std::cerr << "no file in " << argv[1] << "\n";
    return 1;
  }
  std::sort(paths.begin(), paths.end());
  for (const std::filesystem::path& path : paths) {
    std::ifstream file(path, std::ios::binary);
    const std::string bytes((std::istreambuf_iterator<char>(file)), {});
    std::cerr << path.filename().string() << " " << bytes.size() << "\n";
    LLVMFuzzerTestOneInput(reinterpret_cast<const uint8_t*>(bytes.data()),
                           bytes.size());
  }
  std::cerr << paths.size() << " inputs replayed\n";
  return 0;
}
