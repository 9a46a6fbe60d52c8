#pragma once

#include <memory>

#include "rpc/service_context.h"

namespace linserve {

// Engines over the test models "tokens" and "floats", as a request meets them behind the wire. Made
// at the first call, and never destroyed.
ServiceContext& FuzzServer();

// Who may do everything.
std::shared_ptr<const Caller> FuzzCaller();

}  // namespace linserve
