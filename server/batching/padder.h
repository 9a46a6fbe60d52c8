#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/sequence/batch.h"
#include "core/sequence/signature.h"

namespace linserve {

// Makes one batch of ragged sequences, and knows what it costs. It is a value without state of its
// own beyond the options, and thread-safe. Crop() of core/sequence/batch.h is its inverse. Chunks
// of sessions are always packed: padding would come between them.
class Padder {
 public:
  // `buckets` are the lengths that kBucket pads to, ascending; empty: 16, 24, 32, 48, 64, 96, ...
  // Lengths past the last bucket are padded to the model's longest. Without a longest, kFixed and
  // kZeros pad to the default buckets.
  Padder(Signature signature, Padding padding, std::vector<int64_t> buckets = {});

  // Lays the items out as one batch. Tensors that only some of the package's calls give are padded
  // with zeros, masks with false. The inputs lie in memory of `allocate`; where that is empty,
  // those of a single item may be its own. REQUIRES: at least one item, all valid by Validate() and
  // of equal Key().
  Batch Pad(const std::vector<const Item*>& items, const TensorAllocator& allocate = {}) const;

  // Returns the key of an item. Items of equal keys may share a batch; unless it is packed, their
  // padded lengths are equal, too, so that none is padded, or with kZeros computed, by the length
  // of its neighbours.
  std::string Key(const Item& item) const;

  // Returns the rows that the item adds to a batch of its key.
  int64_t Cost(const Item& item) const;

  Padding padding() const { return padding_; }

 private:
  Padding PaddingOf(const Item& item) const;
  // Returns the padded length of axis `letter` if the item were alone in its batch.
  int64_t PaddedLength(const Item& item, char letter) const;
  AxisLayout Layout(char letter, const std::vector<const Item*>& items) const;

  Signature signature_;
  Padding padding_;
  std::vector<int64_t> buckets_;
};

}  // namespace linserve
