// The server with a fake engine, for tests of the process and for the ceiling
// of the benchmarks. The folder of --model is the fake's options:
//   encoderd_fake_server --model=fake=load_ms:3000,batch_us:500
#include "server/run.h"
#include "tests/support/fake_model.h"

int main(int argc, char** argv) {
  return encoderd::RunServer(
      argc, argv,
      [](const std::string& folder, const encoderd::ModelOptions& options)
          -> absl::StatusOr<std::shared_ptr<const encoderd::Model>> {
        const auto fake = encoderd::ParseFakeModelOptions(folder);
        if (!fake.ok()) return fake.status();
        return encoderd::FakeModel::Load(*fake, options);
      });
}
