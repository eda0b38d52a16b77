// The served models, by name. Added at start, constant afterwards.
#ifndef ENCODERD_SERVER_API_MODEL_REGISTRY_H_
#define ENCODERD_SERVER_API_MODEL_REGISTRY_H_

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "engine/model.h"
#include "server/pipeline/pipeline.h"

namespace encoderd {

class ModelMetrics;  // server/observe

// A model with everything that serves it. Members are destroyed in reverse
// order: the pipeline's threads before the observer and the model they use.
struct ServedModel {
  std::string name;
  std::shared_ptr<const Model> model;
  std::unique_ptr<PipelineObserver> observer;
  std::unique_ptr<Pipeline> pipeline;
  // Where adapters count their work for it; this folder does not use it.
  ModelMetrics* metrics = nullptr;
};

// Thread-safe. Pointers stay valid as long as the registry.
class ModelRegistry {
 public:
  // The first one added is the default. The name must be new.
  void Add(std::unique_ptr<ServedModel> model);

  // Empty name: the default model. NOT_FOUND (MODEL_NOT_FOUND) with the
  // available names.
  absl::StatusOr<const ServedModel*> Find(const std::string& name) const;

  // By name, the default first.
  std::vector<const ServedModel*> All() const;

 private:
  mutable absl::Mutex mu_;
  std::map<std::string, std::unique_ptr<ServedModel>> models_
      ABSL_GUARDED_BY(mu_);
  const ServedModel* default_ ABSL_GUARDED_BY(mu_) = nullptr;
};

}  // namespace encoderd

#endif  // ENCODERD_SERVER_API_MODEL_REGISTRY_H_
