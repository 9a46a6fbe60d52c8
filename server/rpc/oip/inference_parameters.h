#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "core/sequence/item.h"
#include "core/sequence/priority.h"
#include "inference/grpc_service.pb.h"
#include "text/tokenizer.h"

namespace linserve {

// Says where a session stands: in a request before its chunk, in the answer after it.
inline constexpr char kSequencePosition[] = "sequence_position";

// Holds what the parameters and requested outputs of a ModelInferRequest ask for.
struct InferOptions {
  OutputOptions output;
  std::optional<std::chrono::microseconds> timeout;
  Priority priority = Priority::kNormal;
  int64_t chunk_rows = 0;                       // rows of an answer; 0: all of them in one
  std::optional<Truncation> truncation;         // nullopt: the model's default
  std::string prompt_name{};                    // "": the model's default one
  std::shared_ptr<const SessionChunk> chunk{};  // its place in a session; null: none
};

using InferParameters = google::protobuf::Map<std::string, inference::InferParameter>;

// Reads a bool, if it is among the parameters.
absl::Status ReadFlag(const InferParameters& parameters, const std::string& name, bool& flag);

// Reads the parameters pooling ("none", "mean", "cls", "last", "max"), normalize (bool), dtype
// ("FP32", "FP16", "BF16", "INT8"), priority (see PriorityFromLevel), timeout (microseconds),
// chunk_rows (1 or more), of texts truncation ("none", "left", "right") and prompt_name, and, for a
// session, sequence_id (a number that is not 0, or a text), sequence_start, sequence_end (bool) and
// sequence_position (rows before this chunk). Other parameters are the caller's own and mean
// nothing here. `fallback` is the model's pooling, and `normalized` says whether it normalizes what
// is pooled where nothing is said. Returns INVALID_ARGUMENT, or UNIMPLEMENTED for what Triton has
// and linserve has not: classification, shared memory.
absl::StatusOr<InferOptions> ReadInferOptions(const inference::ModelInferRequest& message,
                                              Pooling fallback, bool normalized = false);

}  // namespace linserve
