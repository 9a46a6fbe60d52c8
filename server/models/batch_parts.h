#pragma once

#include <cstdint>
#include <vector>

#include "core/signature.h"
#include "models/network.h"

namespace linserve {

// Consecutive sequences [first, first + count) of a batch.
struct SequenceRange {
  int64_t first = 0;
  int64_t count = 0;

  bool operator==(const SequenceRange&) const = default;
};

// How sequences of these costs (in rows) are best shared out among threads: in ranges that a thread
// each computes on its own, more of them than threads, so that who is done takes another; or as one
// range, with all threads inside each product, where few long sequences would leave threads idle.
// O(sequences).
std::vector<SequenceRange> ShareOut(const std::vector<int64_t>& costs, int64_t threads);

// Rows of each sequence of the batch, padding included, over all of its axes; 1 for sequences
// without any.
std::vector<int64_t> Costs(const TensorBatch& batch);

// Some sequences of a batch as a batch of their own, whose tensors view the whole batch's.
TensorBatch PartOf(const TensorBatch& batch, const Signature& signature,
                   const SequenceRange& range);

}  // namespace linserve
