#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "client/library/calls.h"
#include "core/workload/lengths.h"

namespace linserve {

struct LoadInputOptions {
  OutputOptions options;
  Priority priority = Priority::kNormal;
  int64_t version = 0;           // version of the model; 0: the latest at each moment
  size_t requests = 256;         // used in turn
  size_t sequences = 1;          // in one request
  size_t max_bytes = 256 << 20;  // bytes of all requests: fewer are made if they are large
  uint64_t seed = 1;
};

// Makes requests of random inputs that `model` takes: tokens uniform in its vocabulary, floats
// normal, masks all true, lengths drawn for each lettered axis; optional inputs are left out.
// Returns INVALID_ARGUMENT if a length could be more than the model takes.
absl::StatusOr<std::vector<EmbedCall>> MakeLoadCalls(const ModelDescription& model,
                                                     const LengthDistribution& lengths,
                                                     const LoadInputOptions& options);

}  // namespace linserve
