// A Session with the modules after pooling behind it.
#ifndef ENCODERD_ENGINE_HEAD_SESSION_H_
#define ENCODERD_ENGINE_HEAD_SESSION_H_

#include <memory>

#include "engine/base/head.h"
#include "engine/session.h"

namespace encoderd {

// A Session that passes every pooled vector of `session` through `head`, and
// then normalizes it if the output asks for it; states are unchanged. `head`
// outlives it.
std::unique_ptr<Session> NewHeadSession(std::unique_ptr<Session> session,
                                        const Head* head);

}  // namespace encoderd

#endif  // ENCODERD_ENGINE_HEAD_SESSION_H_
