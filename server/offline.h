#pragma once

#include <functional>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/engine.h"

namespace linserve {

// Runs all items through the engine, without a server; `progress` is told how many are done. The
// first failure is the result.
absl::StatusOr<std::vector<TensorMap>> RunAll(
    Engine& engine, std::vector<Item> items,
    const std::function<void(size_t done, size_t all)>& progress);

}  // namespace linserve
