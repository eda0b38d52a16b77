// What the work of a bulk run is: whether a later run may go on with its rows.
// Pure but for the size and time of the input file.
#ifndef ENCODERD_CLIENT_CPP_ENCODERCTL_BULK_WORK_H_
#define ENCODERD_CLIENT_CPP_ENCODERCTL_BULK_WORK_H_

#include <string>

#include "client/cpp/client.h"
#include "client/cpp/encoderctl/invocation.h"

namespace encoderd::ctl {

// Names the work on one line: any change of input, model or options that could
// change a row gives another name.
std::string NameWork(const Settings& settings,
                     const client::EmbedOptions& options,
                     const v1::Model& model);

// In what two names differ, for people: "the input and the options".
std::string Difference(const std::string& earlier, const std::string& now);

}  // namespace encoderd::ctl

#endif  // ENCODERD_CLIENT_CPP_ENCODERCTL_BULK_WORK_H_
