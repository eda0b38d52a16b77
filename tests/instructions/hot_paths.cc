// Runs one hot path; instruction_counts.py counts its instructions.
//
//   hot_paths NAME             runs it twice, the second time in CountedRun
//   hot_paths --list           the names
//   hot_paths --environment    what the counts depend on, as JSON
#include <gnu/libc-version.h>

#include <cstdio>
#include <functional>
#include <string>

#include "absl/base/config.h"
#include "google/protobuf/stubs/common.h"
#include "grpcpp/grpcpp.h"
#include "tests/instructions/hot_path.h"

namespace encoderd {
namespace {

struct NamedPath {
  const char* name;
  std::function<HotPathPtr()> make;
};

const NamedPath kPaths[] = {
    {"wordpiece", [] { return MakeTokenizerPath("mpnet", false); }},
    {"wordpiece_offsets", [] { return MakeTokenizerPath("mpnet", true); }},
    {"byte_pair", [] { return MakeTokenizerPath("roberta", false); }},
    {"unigram", [] { return MakeTokenizerPath("xlm_roberta", false); }},
    {"pack", MakePackPath},
    {"pooling", MakePoolingPath},
    {"policy", MakePolicyPath},
    {"pipeline", MakePipelinePath},
    {"request", [] { return MakeRequestPath(false); }},
    {"request_ids", [] { return MakeRequestPath(true); }},
    {"answer", [] { return MakeAnswerPath(false, EncodingChoice::kFloat32); }},
    {"answer_packed",
     [] { return MakeAnswerPath(true, EncodingChoice::kFloat32); }},
    {"answer_int8", [] { return MakeAnswerPath(true, EncodingChoice::kInt8); }},
};

// The first Run resolves symbols and fills what is kept from run to run.
bool RunTwice(HotPath* path, int64_t (*counted)(HotPath*)) {
  path->Prepare();
  const int64_t first = path->Run();
  path->Prepare();
  const int64_t second = counted(path);
  std::printf("%lld\n", static_cast<long long>(second));
  return first == second;
}

const char* Cpu() {
#ifdef __x86_64__
  return __builtin_cpu_supports("avx2") ? "x86_64, AVX2" : "x86_64";
#else
  return "not x86_64";
#endif
}

void PrintEnvironment() {
  std::printf(
      "{\"compiler\": \"%s\", \"cpu\": \"%s\", \"glibc\": \"%s\", "
      "\"grpc\": \"%s\", \"protobuf\": \"%d\", \"abseil\": \"%d\"}\n",
      ENCODERD_COMPILER, Cpu(), gnu_get_libc_version(), grpc::Version().c_str(),
      GOOGLE_PROTOBUF_VERSION, ABSL_LTS_RELEASE_VERSION);
}

}  // namespace
}  // namespace encoderd

// Named without arguments and namespaces, so that valgrind finds it. What
// follows the call keeps it from becoming a jump.
extern "C" __attribute__((noinline)) int64_t CountedRun(
    encoderd::HotPath* path) {
  const int64_t figure = path->Run();
  std::fflush(stdout);
  return figure;
}

int main(int argc, char** argv) {
  const std::string argument = argc == 2 ? argv[1] : "";
  if (argument == "--environment") {
    encoderd::PrintEnvironment();
    return 0;
  }
  for (const encoderd::NamedPath& path : encoderd::kPaths) {
    if (argument == "--list") {
      std::printf("%s\n", path.name);
    } else if (argument == path.name) {
      if (encoderd::RunTwice(path.make().get(), CountedRun)) return 0;
      std::fprintf(stderr, "hot_paths: %s gives two results\n", path.name);
      return 1;
    }
  }
  if (argument == "--list") return 0;
  std::fprintf(stderr,
               "usage: hot_paths NAME; hot_paths --list; hot_paths "
               "--environment\n");
  return 2;
}
