#include "server/api/model_registry.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "engine/base/error.h"
#include "server/api/options.h"
#include "server/pipeline/reasons.h"

namespace encoderd {

void ModelRegistry::Add(std::unique_ptr<ServedModel> model) {
  absl::MutexLock lock(&mu_);
  const ServedModel* added = model.get();
  models_[added->name] = std::move(model);
  if (default_ == nullptr) default_ = added;
}

absl::StatusOr<const ServedModel*> ModelRegistry::Find(
    const std::string& name) const {
  absl::MutexLock lock(&mu_);
  if (name.empty() && default_ != nullptr) return default_;
  const auto at = models_.find(name);
  if (at != models_.end()) return at->second.get();
  std::string available;
  for (const auto& entry : models_) {
    absl::StrAppend(&available, available.empty() ? "" : ", ", entry.first);
  }
  const std::string asked = ForMessage(name);
  return MakeError(
      absl::StatusCode::kNotFound,
      absl::StrCat("no model '", asked, "'; available: ", available),
      {reason::kModelNotFound,
       {{"model", asked}, {"available", available}},
       "model"});
}

std::vector<const ServedModel*> ModelRegistry::All() const {
  absl::MutexLock lock(&mu_);
  std::vector<const ServedModel*> all;
  if (default_ != nullptr) all.push_back(default_);
  for (const auto& entry : models_) {
    if (entry.second.get() != default_) all.push_back(entry.second.get());
  }
  return all;
}

}  // namespace encoderd
