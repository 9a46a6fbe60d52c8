#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/calls.h"
#include "core/tensor.h"

namespace linserve {

enum class InputFormat : uint8_t { kText, kIds, kNpy, kSafetensors };

std::optional<InputFormat> InputFormatFromName(std::string_view name);

// From the extension: .npy, .safetensors, .jsonl or .json (ids), else text.
InputFormat InputFormatOfPath(const std::string& path);

// What a model takes, as far as it matters for cutting a file into sequences.
struct InputLimits {
  int64_t longest = 0;     // tokens of a sequence; 0: no limit
  int64_t vocabulary = 0;  // 0: unknown
  size_t rank = 1;         // of `x` in one sequence

  static InputLimits Of(const Signature& signature);
};

struct InputOptions {
  InputLimits limits;
  int64_t token_offset = 0;                   // text: added to every byte
  Truncation truncation = Truncation::kNone;  // of what is too long
  bool texts = false;                         // text: for a model with a tokenizer
  bool batched = false;                       // safetensors: `input.<argument>` of a whole batch
  Signature signature{};                      // of the model: how such a batch is laid out
};

// One sequence of a file. A part of the file that cannot be one still takes its place, with the
// reason as its status.
struct InputSequence {
  std::string id;
  absl::Status status;
  TensorMap inputs;
  std::string text;  // of a line of text; without inputs, it is what is sent
};

using InputSequences = std::vector<InputSequence>;

// Each line that is not empty is a sequence: its text or, where the model has no tokenizer, its
// bytes as token ids. Its id is its number in the file, from 1.
InputSequences ParseTextLines(std::string_view content, const InputOptions& options);

// Each line that is not empty is [id, ...] or {"id": ..., "x": [id, ...]}; without "id", its id is
// its number in the file.
InputSequences ParseIdLines(std::string_view content, const InputOptions& options);

// One array of one sequence, or of many with a leading batch axis; ids are places from 0.
absl::StatusOr<InputSequences> SplitArray(const Tensor& array, const InputLimits& limits,
                                          const std::string& name);

// Each tensor is a sequence, its name the id. Batched: the i-th sequence has the i-th part of every
// `input.<argument>` along the axis where the Python package has its batch; `input.lengths`, if
// there, tells the true lengths.
absl::StatusOr<InputSequences> SplitTensors(const TensorMap& tensors, const InputOptions& options,
                                            const std::string& name);

// The bytes of a file, or of standard input for "-".
absl::StatusOr<std::string> ReadWhole(const std::string& path);

// All sequences of a file, or of standard input for "-".
absl::StatusOr<InputSequences> ReadInputs(const std::string& path, InputFormat format,
                                          const InputOptions& options);

}  // namespace linserve
