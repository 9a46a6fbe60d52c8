#pragma once

#include <cstdint>
#include <vector>

#include "core/sequence/signature.h"
#include "models/network/network.h"

namespace linserve {

// Is the share of a batch that one thread computes: sequences [first, first + count).
struct BatchPart {
  int64_t first = 0;
  int64_t count = 0;

  bool operator==(const BatchPart&) const = default;
};

// Says how sequences of these costs (in rows) are best shared out among threads: in parts that a
// thread each computes on its own, more of them than threads, so that who is done takes another; or
// as one part, with all threads inside each product, where few long sequences would leave threads
// idle. O(sequences).
std::vector<BatchPart> ShareOut(const std::vector<int64_t>& costs, int64_t threads);

// Counts the rows of each sequence of the batch, padding included, over all of its axes; 1 for
// sequences without any.
std::vector<int64_t> Costs(const TensorBatch& batch);

// Returns some sequences of a batch as a batch of their own, whose tensors view the whole batch's.
TensorBatch PartOf(const TensorBatch& batch, const Signature& signature,
                   const BatchPart& sequences);

}  // namespace linserve
