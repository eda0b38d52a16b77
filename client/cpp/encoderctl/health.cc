// encoderctl health
#include "client/cpp/encoderctl/invocation.h"

namespace encoderd::ctl {

int RunHealth(const Command& command, const Arguments& arguments,
              Environment& environment) {
  Invocation invocation(command, environment, absl::Seconds(5),
                        "time limit for the answer; does not wait for a model "
                        "to load");
  if (const auto over = invocation.Parse(arguments)) return *over;
  if (invocation.positional.size() > 1) {
    return invocation.Usage("takes one service at most");
  }
  const auto client = invocation.Connect();
  if (!client.ok()) return invocation.Refuse(client.status());
  const auto health = (*client)->Health(
      invocation.positional.empty() ? "" : invocation.positional[0]);
  if (!health.ok()) return invocation.Fail(health.status());
  const bool serving = *health == client::ServingStatus::kServing;
  environment.out << (serving ? "SERVING"
                      : *health == client::ServingStatus::kNotServing
                          ? "NOT_SERVING"
                          : "UNKNOWN")
                  << "\n";
  return serving ? kExitOk : kExitFailed;
}

}  // namespace encoderd::ctl
