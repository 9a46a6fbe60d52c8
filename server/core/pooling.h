#pragma once

#include <array>
#include <optional>
#include <string_view>

#include "core/item.h"

namespace linserve {

// The names of Pooling's values, in their order: on command lines, in configurations, in answers.
inline constexpr std::array<std::string_view, 5> kPoolingNames = {"none", "mean", "cls", "last",
                                                                  "max"};

std::string_view Name(Pooling pooling);
std::optional<Pooling> PoolingFromName(std::string_view name);

}  // namespace linserve
