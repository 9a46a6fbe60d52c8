#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <string_view>
#include <vector>

#include "core/sequence/item.h"

namespace linserve {

// Says how ragged sequences become one batch. All values but kZeros give the same rows.
enum class Padding : uint8_t {
  kPacked,  // rows one after another, nothing computed for padding
  kBucket,  // padded to the smallest bucket that holds the longest sequence, and masked
  kFixed,   // padded to the model's seq_len, and masked
  kZeros,   // padded with zeros to seq_len and not masked: what the packages' own Padder computes
};

// Names the values in their order.
inline constexpr std::array kPaddingNames = {"packed", "bucket", "fixed", "zeros"};

std::string_view Name(Padding padding);

// Says why a batch was closed.
enum class CloseReason : uint8_t {
  kFull,    // the token or sequence budget was used up
  kDelay,   // some sequence had waited max_delay
  kIdle,    // a worker was free and the policy waits for no company
  kLength,  // what else was waiting is of another shape or length
  kDrain,   // the server is draining
};

std::string_view Name(CloseReason reason);

// Says where the sequences of a batch lie along one laid-out letter. A tensor whose first axis is
// that letter has shape [rows, ...]: sequence i owns rows [starts[i], starts[i] + lengths[i]).
struct AxisLayout {
  std::vector<int64_t> starts;
  std::vector<int64_t> lengths;  // true lengths, at least 1
  int64_t rows = 0;              // padding included
  int64_t padded_length = 0;     // of each sequence; 0 if packed

  int64_t sequences() const { return static_cast<int64_t>(lengths.size()); }
  // REQUIRES: there is a sequence.
  int64_t longest() const { return *std::max_element(lengths.begin(), lengths.end()); }
  // Returns the most rows that a sequence owns, with its padding.
  int64_t most_rows() const { return std::max(longest(), padded_length); }
};

// Lays out sequences of these lengths one after another, each with `padded_length` rows; 0: packed,
// with its own rows only.
AxisLayout LayOut(std::vector<int64_t> lengths, int64_t padded_length = 0);

// Holds sequences that are computed together. An input whose first axis is lettered is [rows, ...],
// laid out by that letter; any other is [batch, ...]. Inputs are F32 (floats, and attention masks,
// which are added to the scores), I64 (tokens) or BOOL (masks).
struct Batch {
  Padding padding = Padding::kPacked;
  TensorMap inputs;
  std::map<char, AxisLayout> axes;     // the layouts of the laid-out letters
  int64_t rows = 0;                    // rows that are computed, padding included; masks have none
  int64_t padding_rows = 0;            // those rows that hold no sequence's data
  std::vector<OutputOptions> options;  // one a sequence
  // Holds one state a sequence if the sequences are chunks of sessions, and none if they are whole.
  std::vector<std::shared_ptr<SessionState>> sessions{};

  size_t size() const { return options.size(); }
};

// Returns the rows of sequence `index` in a tensor laid out by `layout`, sharing its bytes.
Tensor Crop(const AxisLayout& layout, const Tensor& rows, size_t index);

}  // namespace linserve
