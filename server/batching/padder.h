#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/batch.h"
#include "core/signature.h"

namespace linserve {

// Makes one batch of ragged sequences, and knows what it costs. A value without state of its own
// beyond the options: thread-safe. Crop() of core/batch.h is its inverse. Chunks of sessions are
// always packed: padding would come between them.
class Padder {
 public:
  // `buckets`: lengths that kBucket pads to, ascending; empty: 16, 24, 32, 48, 64, 96, ...
  // Lengths past the last bucket are padded to the model's longest. Without a longest, kFixed and
  // kZeros pad to the default buckets.
  Padder(Signature signature, Padding padding, std::vector<int64_t> buckets = {});

  // REQUIRES: at least one item, all valid by Validate() and of equal Key(). Tensors that only some
  // of the package's calls give are padded with zeros, masks with false. The inputs lie in memory
  // of `allocate`; where that is empty, those of a single item may be its own.
  Batch Pad(const std::vector<const Item*>& items, const TensorAllocator& allocate = {}) const;

  // Items of equal keys may share a batch; unless it is packed, their padded lengths are equal,
  // too, so that none is padded, or with kZeros computed, by the length of its neighbours.
  std::string Key(const Item& item) const;

  // Rows that the item adds to a batch of its key.
  int64_t Cost(const Item& item) const;

  Padding padding() const { return padding_; }

 private:
  Padding PaddingOf(const Item& item) const;
  // Of axis `letter` of the item if it were alone in its batch.
  int64_t PaddedLength(const Item& item, char letter) const;
  AxisLayout Layout(char letter, const std::vector<const Item*>& items) const;

  Signature signature_;
  Padding padding_;
  std::vector<int64_t> buckets_;
};

}  // namespace linserve
