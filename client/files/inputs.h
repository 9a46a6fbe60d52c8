#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/library/calls.h"
#include "core/tensor/tensor.h"

namespace linserve {

enum class InputFormat : uint8_t { kText, kIds, kNpy, kSafetensors };

std::optional<InputFormat> InputFormatFromName(std::string_view name);

// Tells the format by the extension: .npy, .safetensors, .jsonl or .json (ids), else text.
InputFormat InputFormatOfPath(const std::string& path);

// Says what a model takes, as far as it matters for cutting a file into sequences.
struct InputLimits {
  int64_t longest = 0;     // tokens of a sequence; 0: no limit
  int64_t vocabulary = 0;  // 0: unknown
  size_t rank = 1;         // axes of `x` in one sequence

  static InputLimits Of(const Signature& signature);
};

struct InputOptions {
  InputLimits limits;
  int64_t token_offset = 0;  // text: added to every byte
  // For texts and ids that are too long; nullopt: the model's option says it of texts, and ids are
  // a fault.
  std::optional<Truncation> truncation{};
  bool texts = false;     // text: for a model with a tokenizer
  bool batched = false;   // safetensors: `input.<argument>` of a whole batch
  Signature signature{};  // the model's, which says how such a batch is laid out
};

// Holds one sequence of a file. A piece of the file that cannot be one still takes its place, with
// the reason as its status.
struct InputSequence {
  std::string id;
  absl::Status status;
  TensorMap inputs;
  std::string text;  // a line of text; it is what is sent if there are no inputs
};

using InputSequences = std::vector<InputSequence>;

// Makes a sequence of each line that is not empty: its text or, where the model has no tokenizer,
// its bytes as token ids. The sequence's id is the line's number in the file, from 1.
InputSequences ParseTextLines(std::string_view content, const InputOptions& options);

// Makes a sequence of each line that is not empty: [id, ...] or {"id": ..., "x": [id, ...]}, or
// where the model has a tokenizer "text" or {"id": ..., "text": "..."}. Without "id", the
// sequence's id is the line's number in the file.
InputSequences ParseIdLines(std::string_view content, const InputOptions& options);

// Makes sequences of one array: it holds one, or many with a leading batch axis. Their ids are
// places from 0.
absl::StatusOr<InputSequences> SplitArray(const Tensor& array, const InputLimits& limits,
                                          const std::string& name);

// Makes a sequence of each tensor, with its name as the id. Batched, the i-th sequence has the i-th
// share of every `input.<argument>` along the axis where the Python package has its batch;
// `input.lengths`, if there, tells the true lengths.
absl::StatusOr<InputSequences> SplitTensors(const TensorMap& tensors, const InputOptions& options,
                                            const std::string& name);

// Reads the bytes of a file, or of standard input for "-".
absl::StatusOr<std::string> ReadWhole(const std::string& path);

// Reads all sequences of a file, or of standard input for "-".
absl::StatusOr<InputSequences> ReadInputs(const std::string& path, InputFormat format,
                                          const InputOptions& options);

}  // namespace linserve
