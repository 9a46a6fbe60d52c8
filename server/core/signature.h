#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
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
  // What attention adds to its scores, -inf where it must not look; or BOOL, true where it must
  // not.
  kAttentionMask,
};

std::string_view Name(InputKind kind);
std::optional<InputKind> InputKindFromName(std::string_view name);

// Where the Python package has its batch axis in a tensor of a whole batch: files of such tensors
// are split and joined by it.
enum class BatchAxis : uint8_t {
  kFirst,
  kSecond,  // length first, as in torch.nn.MultiheadAttention
  kNone,    // one tensor for all sequences
  kFolded,  // the first axis holds batch times what the signature says; or, a rank lower, kNone
};

std::string_view Name(BatchAxis axis);  // "first", "second", "none", "folded"
std::optional<BatchAxis> BatchAxisFromName(std::string_view name);

struct InputSpec {
  std::string name;
  InputKind kind = InputKind::kFloat;
  std::vector<Axis> axes;
  bool optional = false;
  int64_t vocabulary = 0;  // of kToken
  BatchAxis batch_axis = BatchAxis::kFirst;
  bool broadcast = false;  // a tensor without the first axis stands for all its entries
  bool folds = false;      // further axes may follow, which are read as one with the last
  bool opens = false;      // a session's first chunk brings it, and no other
  std::string stand_in{};  // the input taken where this one is missing; must fit this one, too
};

struct OutputSpec {
  std::string name;
  std::vector<Axis> axes;
  BatchAxis batch_axis = BatchAxis::kFirst;
  bool logits = false;  // rows score, for each token of ChunkInput(), that it comes next
};

// The longest (and shortest) that a lettered axis may be. With `unless_input` the limit holds only
// for sequences without that (optional) input.
struct LengthLimit {
  char letter = 'n';
  int64_t longest = 0;
  std::string unless_input;
  int64_t shortest = 1;
};

// The tensors that a model takes and gives, each without a batch axis.
struct Signature {
  std::vector<InputSpec> inputs;
  std::vector<OutputSpec> outputs;  // the first one is the default
  std::vector<LengthLimit> limits;
  bool allow_nonfinite = false;
  // The model mixes the sequences of a call: those of a request are computed together, and never
  // with another request's.
  bool request_is_unit = false;

  const InputSpec* FindInput(const std::string& name) const;
  const OutputSpec* FindOutput(const std::string& name) const;
};

// OK if a model of this signature can compute `item`; INVALID_ARGUMENT that names the field, what
// it holds and what was expected otherwise. Whatever could choke a device is checked here: names,
// types, shapes, lengths, token ids, NaN and Inf, bytes of masks, the outputs and the output dtype
// (a float one or I8). Shapes may be anything; the caller has checked that the bytes are as many as
// CheckedByteSize() says, wherever that has a value.
absl::Status Validate(const Signature& signature, const Item& item);

// Makes inputs with further axes of the rank that the signature says, where it can. Call it before
// Validate().
void FoldAxes(const Signature& signature, Item& item);

// Length of axis `letter` in a valid item; 0 if none of its inputs has that axis.
int64_t LengthOf(const Signature& signature, const Item& item, char letter);

// The longest that axis `letter` may be in an item with these inputs; 0 if there is no limit.
int64_t LongestFor(const Signature& signature, const Item& item, char letter);

// Letters of the axes along which the item is laid out in a batch, one after another with its
// neighbours: those that are the first axis of one of its inputs. Each once, in signature's order.
std::string LaidOutLetters(const Signature& signature, const Item& item);

// Letters of all other axes: tensors that have them can only be stacked, so that the items of a
// batch must agree on these lengths, and are never padded along them.
std::string RigidLetters(const Signature& signature, const Item& item);

// Whether the length of this laid-out letter is among what the item costs: masks cost nothing.
bool CountsAsRows(const Signature& signature, const Item& item, char letter);

// The item's tokens: the sum of its lengths over the letters that count as rows; without any (an
// image) the product of its other lengths. At least 1.
int64_t PackedRows(const Signature& signature, const Item& item);

// Items whose keys are equal may share a batch: the same inputs present, the same outputs asked,
// the same rigid lengths, all of them chunks of sessions or none.
std::string BatchKey(const Signature& signature, const Item& item);

}  // namespace linserve
