#pragma once

#include <array>
#include <optional>
#include <string_view>

#include "core/sequence/item.h"

namespace linserve {

// Pooling itself is computed by models/forward/pass_results.

// Names the values of Pooling in their order, as command lines, configurations and answers do.
inline constexpr std::array<std::string_view, 5> kPoolingNames = {"none", "mean", "cls", "last",
                                                                  "max"};

std::string_view Name(Pooling pooling);
std::optional<Pooling> PoolingFromName(std::string_view name);

}  // namespace linserve
