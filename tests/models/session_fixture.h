#pragma once

#include <memory>
#include <string>
#include <vector>

#include "models/linear_attention_transformer/fixture.h"

namespace linserve {

// Feeds sequences to a model chunk by chunk.
class SessionFixture : public ModelFixture {
 protected:
  using Session = std::shared_ptr<SessionState>;

  static Session New(Model& model);

  // Returns rows [begin, end) of each input, as a chunk of the session.
  static Item Chunk(const Item& whole, int64_t begin, int64_t end, const Session& session);

  // Returns lengths of at least 1 that sum up to `length`: all ones, the whole, or any.
  std::vector<int64_t> Chunking(int64_t length);

  // Returns the rows of the output `y`, chunk by chunk and then joined: [length, ...].
  static Tensor Feed(Model& model, const Item& whole, const std::vector<int64_t>& chunks,
                     const Session& session);

  static int64_t LengthOfX(const Item& item) { return item.inputs.at("x").shape()[0]; }
};

// Joins tensors [rows, width] one after another.
Tensor Joined(const std::vector<Tensor>& parts);

}  // namespace linserve
