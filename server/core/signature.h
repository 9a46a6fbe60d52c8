#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/item.h"

namespace linserve {

// One axis of an input or output: of fixed size, or a letter that stands for a length that
// varies from sequence to sequence. Axes of the same letter have the same length in a sequence.
struct Axis {
  char letter = '\0';  // '\0': fixed
  int64_t size = 0;    // of a fixed axis

  static Axis Fixed(int64_t size) { return {'\0', size}; }
  static Axis Ragged(char letter) { return {letter, 0}; }
  bool operator==(const Axis&) const = default;
};

// "[n, 64]"
std::string ToString(const std::vector<Axis>& axes);

enum class InputKind : uint8_t {
  kFloat,  // any float type; NaN and Inf are refused unless the signature allows them
  kToken,  // any integer type, 0 <= id < vocabulary
  kMask,   // BOOL
};

struct InputSpec {
  std::string name;
  InputKind kind = InputKind::kFloat;
  std::vector<Axis> axes;
  bool optional = false;
  int64_t vocabulary = 0;  // of kToken
};

struct OutputSpec {
  std::string name;
  std::vector<Axis> axes;
};

// The longest that a lettered axis may be. With `unless_input` the limit holds only for sequences
// without that (optional) input.
struct LengthLimit {
  char letter = 'n';
  int64_t longest = 0;
  std::string unless_input;
};

// The tensors that a model takes and gives, each without a batch axis.
struct Signature {
  std::vector<InputSpec> inputs;
  std::vector<OutputSpec> outputs;  // the first one is the default
  std::vector<LengthLimit> limits;
  bool allow_nonfinite = false;

  const InputSpec* FindInput(const std::string& name) const;
  const OutputSpec* FindOutput(const std::string& name) const;
};

// OK if a model of this signature can compute `item`; INVALID_ARGUMENT that names the field, what
// it holds and what was expected otherwise. Whatever could choke a device is checked here: names,
// types, shapes, lengths, token ids, NaN and Inf, bytes of masks, the outputs and the output dtype
// (a float one). Shapes may be anything; the caller has checked that the bytes are as many as
// CheckedByteSize() says, wherever that has a value.
absl::Status Validate(const Signature& signature, const Item& item);

// Length of axis `letter` in a valid item; 0 if none of its inputs has that axis.
int64_t LengthOf(const Signature& signature, const Item& item, char letter);

// The longest that axis `letter` may be in an item with these inputs; 0 if there is no limit.
int64_t LongestFor(const Signature& signature, const Item& item, char letter);

// Rows that the item brings to a packed batch: the sum of its lengths over all letters.
int64_t PackedRows(const Signature& signature, const Item& item);

// Items whose keys are equal may share a batch: the same inputs present, the same outputs asked.
std::string BatchKey(const Signature& signature, const Item& item);

}  // namespace linserve
