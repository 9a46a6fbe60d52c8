#pragma once

#include <string>

namespace linserve {

// Says what is wrong with a target that gRPC would look for in vain; "" if nothing can be seen.
std::string TargetFault(const std::string& target);

}  // namespace linserve
