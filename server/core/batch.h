#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "core/item.h"

namespace linserve {

// How ragged sequences become one batch. All but kZeros give the same rows.
enum class Padding : uint8_t {
  kPacked,  // rows one after another, nothing computed for padding
  kBucket,  // padded to the smallest bucket that holds the longest sequence, and masked
  kFixed,   // padded to the model's seq_len, and masked
  kZeros,   // padded with zeros to seq_len and not masked: what the packages' own Padder computes
};

std::string_view Name(Padding padding);
std::optional<Padding> PaddingFromName(std::string_view name);

// Why a batch was closed.
enum class CloseReason : uint8_t {
  kFull,    // the token or sequence budget was used up
  kDelay,   // some sequence had waited max_delay
  kIdle,    // a worker was free and the policy waits for no company
  kLength,  // what else was waiting is of another shape or length
  kDrain,   // the server is draining
};

std::string_view Name(CloseReason reason);

struct LayoutTable;  // attention/device_plugin.h

// Where the sequences of a batch lie along one laid-out letter. A tensor whose first axis is that
// letter has shape [rows, ...]: sequence i owns rows [starts[i], starts[i] + lengths[i]).
struct AxisLayout {
  std::vector<int64_t> starts;
  std::vector<int64_t> lengths;  // true lengths, at least 1
  int64_t rows = 0;              // padding included
  int64_t padded_length = 0;     // of each sequence; 0 if packed
  // The same where a device reads it; null where there is none.
  std::shared_ptr<const LayoutTable> table{};

  int64_t sequences() const { return static_cast<int64_t>(lengths.size()); }
};

// Sequences that are computed together. An input whose first axis is lettered is [rows, ...], laid
// out by that letter; any other is [batch, ...]. F32 (floats, attention masks: what is added to the
// scores), I64 (tokens) or BOOL (masks).
struct Batch {
  Padding padding = Padding::kPacked;
  TensorMap inputs;
  std::map<char, AxisLayout> axes;     // of the laid-out letters
  int64_t rows = 0;                    // that are computed, padding included; masks have none
  int64_t padding_rows = 0;            // of them, those that hold no sequence's data
  std::vector<OutputOptions> options;  // one a sequence
  // Likewise, of chunks; empty: these are whole sequences.
  std::vector<std::shared_ptr<SessionState>> sessions{};

  size_t size() const { return options.size(); }
};

// The rows of sequence `index` in a tensor laid out by `layout`, sharing its bytes.
Tensor Crop(const AxisLayout& layout, const Tensor& rows, size_t index);

}  // namespace linserve
