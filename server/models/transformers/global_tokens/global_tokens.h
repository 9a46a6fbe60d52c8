#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>
#include <vector>

#include "attention/rows/placed_layout.h"

namespace linserve::transformers {

// Says which tokens see all others and are seen by all, where other rows see a window alone.
struct GlobalRule {
  bool asked = false;  // those that an input names (Longformer)
  bool first = false;  // the first one, where there is no such input
  int64_t block = 0;   // those of the first and of the last block of so many rows (BigBird)
  int64_t weight = 1;  // keys of that first block count so many times to rows with a window
  int64_t whole = 0;   // sequences of up to so many rows have no windows

  bool defined() const { return asked || block > 0; }
};

// Holds the global tokens of a batch. Masked ones are none. Its tensors are on the batch's device.
struct GlobalTokens {
  std::vector<int64_t> bounds = {0};  // [sequences + 1]: those of each sequence in these tensors
  at::Tensor places;                  // I64 [tokens]: rows of their sequences
  at::Tensor rows;                    // I64 [tokens]: rows of the batch
  at::Tensor scores;                  // F32 [tokens]: what is added to products with them as keys
  at::Tensor of_keys;       // F32 [rows]: hides what windows do not show, which is what is
                            // masked, or is global and seen besides
  std::vector<bool> whole;  // [sequences]: it has no windows

  bool all_whole() const;
  int64_t CountOf(size_t sequence) const { return bounds[sequence + 1] - bounds[sequence]; }
  // Returns a part of one of the tensors of tokens, that of a sequence.
  at::Tensor Of(const at::Tensor& tokens, size_t sequence) const {
    return tokens.narrow(0, bounds[sequence], CountOf(sequence));
  }
};

// Finds them in a batch of `rows` rows. `visible` and `asked` are BOOL [rows], or undefined.
// Products are scaled by `scale`. Returns nullopt where all that rows see is their windows.
std::optional<GlobalTokens> FindGlobalTokens(const GlobalRule& rule, const PlacedLayout& layout,
                                             const at::Tensor& ids, const at::Tensor& visible,
                                             const at::Tensor& asked, double scale);

}  // namespace linserve::transformers
