#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "core/item.h"
#include "core/priority.h"
#include "core/signature.h"
#include "core/tensor.h"
#include "core/truncation.h"

namespace linserve {

// What is spoken with the server: linserve.v1.EmbeddingService, or inference.GRPCInferenceService,
// the Open Inference Protocol, as other servers do, too.
enum class Protocol : uint8_t { kLinserve, kOip };

// One sequence of a call; its id is echoed in its result.
struct NamedSequence {
  std::string id;
  TensorMap inputs;
  std::optional<std::string> text{};  // in place of the input `x`, for models with a tokenizer
};

// One request of one or many sequences.
struct EmbedCall {
  std::string model;    // empty: the only model that the server has
  int64_t version = 0;  // 0: the latest
  OutputOptions options;
  uint32_t rows_per_chunk = 0;  // 0: the server's choice
  Priority priority = Priority::kNormal;
  std::vector<NamedSequence> sequences{};
  std::string request_id{};                   // EmbedStream: empty lets the stream choose one
  Truncation truncation = Truncation::kNone;  // of texts
};

// What became of one sequence. `outputs` is empty unless `status` is OK.
struct SequenceResult {
  size_t index = 0;  // its place in EmbedCall::sequences
  std::string id;
  absl::Status status;
  TensorMap outputs;
  int64_t tokens = 0;  // the sequence's true length
  Timing timing;
};

// The end of one request: its status as a whole and, if that is OK, a result for each of its
// sequences in the order of EmbedCall::sequences.
using EmbedCallback = std::function<void(absl::Status, std::vector<SequenceResult>)>;

// A model as the server describes it.
struct ModelDescription {
  std::string name;
  int64_t version = 0;
  std::string architecture;
  std::string state;  // "LOADING", "READY", "DRAINING"
  Signature signature;
  int64_t parameters = 0;
  std::string dtype;
  std::string padding;
  bool text = false;  // it has a tokenizer
};

enum class HealthState : uint8_t { kUnknown, kServing, kNotServing, kServiceUnknown };

// "UNKNOWN", "SERVING", "NOT_SERVING", "SERVICE_UNKNOWN"
const char* Name(HealthState state);

}  // namespace linserve
