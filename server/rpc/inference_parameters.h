#pragma once

#include <chrono>
#include <cstdint>
#include <optional>

#include "absl/status/statusor.h"
#include "core/item.h"
#include "core/priority.h"
#include "inference/grpc_service.pb.h"
#include "text/tokenizer.h"

namespace linserve {

// What the parameters and requested outputs of a ModelInferRequest ask for.
struct InferOptions {
  OutputOptions output;
  std::optional<std::chrono::microseconds> timeout;
  Priority priority = Priority::kNormal;
  int64_t chunk_rows = 0;  // rows of an answer; 0: all of them in one
  Truncation truncation = Truncation::kNone;
};

// The parameters pooling ("none", "mean", "cls", "last", "max"), normalize (bool), dtype ("FP32",
// "FP16", "BF16", "INT8"), priority (see PriorityFromLevel), timeout (microseconds), chunk_rows (1
// or more) and truncation of texts ("none", "left", "right"); others are the caller's own and mean
// nothing here. `fallback` is the model's pooling. INVALID_ARGUMENT, or UNIMPLEMENTED for what
// Triton has and linserve has not: sequences with a state, classification, shared memory.
absl::StatusOr<InferOptions> ReadInferOptions(const inference::ModelInferRequest& message,
                                              Pooling fallback);

}  // namespace linserve
