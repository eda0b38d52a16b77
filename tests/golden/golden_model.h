// A golden's model, ready to run on a device.
#ifndef ENCODERD_TESTS_GOLDEN_GOLDEN_MODEL_H_
#define ENCODERD_TESTS_GOLDEN_GOLDEN_MODEL_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/base/batch.h"
#include "engine/checkpoint/model_config.h"
#include "engine/device/device.h"
#include "engine/encoder.h"
#include "engine/session.h"
#include "tests/support/temp_folder.h"

namespace encoderd {

// "minilm" and the names of tests/support/checkpoints.json.
std::vector<std::string> GoldenNames();

// The folder of a golden's model: all-MiniLM-L6-v2 as ENCODERD_TEST_MODEL names
// it, or a random checkpoint written into `folder`. NOT_FOUND: the variable is
// not set.
absl::StatusOr<std::string> GoldenFolder(const std::string& name,
                                         const TempFolder& folder);

struct GoldenModel {
  ModelConfig config;  // max_len: all the position table's rows
  IdLimits limits;
  std::unique_ptr<const Encoder> encoder;
  std::unique_ptr<Session> session;  // up to 1024 tokens per batch
};
absl::StatusOr<GoldenModel> OpenGoldenModel(const std::string& folder,
                                            std::unique_ptr<Device> device);

}  // namespace encoderd

#endif  // ENCODERD_TESTS_GOLDEN_GOLDEN_MODEL_H_
