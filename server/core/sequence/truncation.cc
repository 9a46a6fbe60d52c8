#include "core/sequence/truncation.h"

#include <algorithm>

namespace linserve {

std::string_view Name(Truncation truncation) {
  return kTruncationNames[static_cast<size_t>(truncation)];
}

std::optional<Truncation> TruncationFromName(std::string_view name) {
  const auto* found = std::find(kTruncationNames.begin(), kTruncationNames.end(), name);
  if (found == kTruncationNames.end()) return std::nullopt;
  return static_cast<Truncation>(found - kTruncationNames.begin());
}

}  // namespace linserve
