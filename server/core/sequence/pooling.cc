#include "core/sequence/pooling.h"

#include <algorithm>

namespace linserve {

std::string_view Name(Pooling pooling) { return kPoolingNames[static_cast<size_t>(pooling)]; }

std::optional<Pooling> PoolingFromName(std::string_view name) {
  const auto* found = std::find(kPoolingNames.begin(), kPoolingNames.end(), name);
  if (found == kPoolingNames.end()) return std::nullopt;
  return static_cast<Pooling>(found - kPoolingNames.begin());
}

}  // namespace linserve
