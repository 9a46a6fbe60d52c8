#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/sequence/item.h"

namespace linserve {

// Describes one axis of an input or output: it has a fixed size, or a letter that stands for a
// length that varies from sequence to sequence. Axes with one letter have the same length in a
// sequence.
struct Axis {
  char letter = '\0';  // '\0': the axis has a fixed size
  int64_t size = 0;    // size of a fixed axis

  static Axis Fixed(int64_t size) { return {'\0', size}; }
  static Axis Ragged(char letter) { return {letter, 0}; }
  bool operator==(const Axis&) const = default;
};

// Writes the axes as "[n, 64]".
std::string ToString(const std::vector<Axis>& axes);

enum class InputKind : uint8_t {
  kFloat,  // any float type; NaN and Inf are refused unless the signature allows them
  kToken,  // any integer type, 0 <= id < vocabulary
  kMask,   // BOOL, or integers 0 and 1
  // Holds what attention adds to its scores, -inf where it must not look; or is BOOL, true where it
  // must not look.
  kAttentionMask,
};

std::string_view Name(InputKind kind);
std::optional<InputKind> InputKindFromName(std::string_view name);

// Says where the Python package has its batch axis in a tensor of a whole batch: files of such
// tensors are split and joined by it.
enum class BatchAxis : uint8_t {
  kFirst,
  kSecond,  // length first, as in torch.nn.MultiheadAttention
  kNone,    // one tensor for all sequences
  kFolded,  // the first axis holds batch times the signature's size; or, a rank lower, as kNone
};

std::string_view Name(BatchAxis axis);  // Returns "first", "second", "none" or "folded".
std::optional<BatchAxis> BatchAxisFromName(std::string_view name);

struct InputSpec {
  std::string name;
  InputKind kind = InputKind::kFloat;
  std::vector<Axis> axes;
  bool optional = false;
  int64_t vocabulary = 0;  // number of tokens, if the kind is kToken
  BatchAxis batch_axis = BatchAxis::kFirst;
  bool broadcast = false;  // a tensor without the first axis stands for all its entries
  bool folds = false;      // further axes may follow, which are read as one with the last
  bool opens = false;      // a session's first chunk brings it, and no other
  std::string stand_in{};  // the input taken where this one is missing; must fit this one, too
  bool hides = false;      // true in this mask is a row that is not there, as in PyTorch's own
};

struct OutputSpec {
  std::string name;
  std::vector<Axis> axes;
  BatchAxis batch_axis = BatchAxis::kFirst;
  bool logits = false;  // each row scores, for each token of ChunkInput(), that it comes next
  // The input mask that says which rows are there. Nothing is pooled of others, nor made of them.
  // It says nothing of the rows of a sequence with the input `unmasked_with`, whose rows they are.
  std::string mask{};
  std::string unmasked_with{};
  bool leaves_out = false;  // rows that the mask hides are in no result, pooled or not
  bool of_nothing = false;  // it is zeros where the mask hides all rows

  // Says whether pooling makes one row of several. A vector is what its pooling gives.
  bool HasRows() const { return !axes.empty() && axes[0].letter != '\0'; }
  bool IsVector() const { return axes.size() == 1 && !HasRows(); }
};

// Limits how long (and how short) a lettered axis may be. With `unless_input` the limit holds only
// for sequences without that (optional) input.
struct LengthLimit {
  char letter = 'n';
  int64_t longest = 0;
  std::string unless_input;
  int64_t shortest = 1;
};

// No count of rows is larger, whatever lengths an item claims: so many of them can still be added
// up.
inline constexpr int64_t kMostRows = int64_t{1} << 40;

// Lists the tensors that a model takes and gives, each without a batch axis.
struct Signature {
  std::vector<InputSpec> inputs;
  std::vector<OutputSpec> outputs;  // the first one is the default
  std::vector<LengthLimit> limits;
  bool allow_nonfinite = false;
  // Says that the model mixes the sequences of a call: those of a request are computed together,
  // and never with another request's.
  bool request_is_unit = false;

  const InputSpec* FindInput(const std::string& name) const;
  const OutputSpec* FindOutput(const std::string& name) const;
};

// Returns OK if a request may ask for so many outputs, by its list: each output and the scale of
// its rows (core/tensor/row_scale.h) once, and the tokens of the Open Inference Protocol. Call it
// before anything is made of the list; Validate() says which name is wrong.
absl::Status CheckOutputCount(const Signature& signature, int64_t asked);

// Returns OK if a model of this signature can compute `item`; otherwise INVALID_ARGUMENT names the
// field, what it holds and what was expected. Whatever could choke a device is checked here: names,
// types, shapes, lengths, token ids, NaN and Inf, bytes of masks, that one leaves a row to pool,
// the outputs, each of them asked for once, and the output dtype (a float one or I8). Shapes may be
// anything; the caller has checked that the bytes are as many as CheckedByteSize() says, wherever
// that has a value.
absl::Status Validate(const Signature& signature, const Item& item);

// Reshapes inputs with further axes to the rank that the signature says, where it can. Call it
// before Validate().
void FoldAxes(const Signature& signature, Item& item);

// Returns the length of axis `letter` in a valid item; 0 if none of its inputs has that axis.
int64_t LengthOf(const Signature& signature, const Item& item, char letter);

// Returns the longest that axis `letter` may be in an item with these inputs; 0 if there is no
// limit.
int64_t LongestFor(const Signature& signature, const Item& item, char letter);

// Returns the letters of the axes along which the item is laid out in a batch, one after another
// with its neighbours: those that are the first axis of one of its inputs. Each stands there once,
// in the signature's order.
std::string LaidOutLetters(const Signature& signature, const Item& item);

// Returns the letters of all axes that are not laid out. Tensors that have them can only be
// stacked, so the items of a batch must agree on these lengths and are never padded along them.
std::string RigidLetters(const Signature& signature, const Item& item);

// Returns whether the length of this laid-out letter is among what the item costs: masks cost
// nothing.
bool CountsAsRows(const Signature& signature, const Item& item, char letter);

// Returns the item's tokens: the sum of its lengths over the letters that count as rows; without
// any (an image) the product of its other lengths. At least 1, at most kMostRows.
int64_t PackedRows(const Signature& signature, const Item& item);

// Returns the key of an item. Items whose keys are equal may share a batch: the same inputs are
// present, the same outputs are asked for, the rigid lengths are equal, and all of them or none are
// chunks of sessions.
std::string BatchKey(const Signature& signature, const Item& item);

}  // namespace linserve
