#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "attention/rows/placed_layout.h"
#include "core/sequence/signature.h"
#include "models/network/network.h"

namespace linserve {

// Says where sequences lie in a tensor of rows, and which rows of them are there.
struct MaskedLayout {
  PlacedLayout layout;
  at::Tensor mask;  // BOOL [rows]; undefined: all are true
  // Which sequences it pads, where a mask is there for nothing else; empty: it is the caller's.
  std::vector<bool> padded{};
};

// Holds what the layers of a stack read beside the rows that they add to.
struct Sequences {
  MaskedLayout own;
  at::Tensor context;  // [context rows, dim], of networks that attend to one
  MaskedLayout context_layout;
  at::Tensor rotary;  // table of positions; undefined: none
  // It is null unless the sequences come chunk by chunk: then `rotary` has a row for each of the
  // rows.
  std::shared_ptr<SessionMemory> memory;

  // Returns it of a batch whose inputs AddMask() and AddContext() name, but for `rotary`.
  static Sequences Of(const TensorBatch& batch, const std::string& mask, bool with_context);
};

// Adds an optional mask of the rows of axis n.
void AddMask(Signature& signature, const std::string& name);
// Adds context [m, dim], and its optional mask. Of a session only the first chunk brings them.
void AddContext(Signature& signature, int64_t dim);

}  // namespace linserve
