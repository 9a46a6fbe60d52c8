#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <cstdint>

#include "attention/blocks/block_attention.h"
#include "attention/rows/placed_layout.h"
#include "models/network/self_attention_by_blocks.h"
#include "models/transformers/global_tokens/global_tokens.h"

namespace linserve::transformers {

// These functions compute the attention of rows that see the keys of their windows and those of
// global tokens, in one softmax, and of the global tokens, which see all keys. What is masked is
// seen by none, and attends to nothing: it gets zeros.
// Sources: Beltagy et al. 2020 (arXiv:2004.05150), Zaheer et al. 2020 (arXiv:2007.14062).

// Describes one sequence, block by block on the CPU.
struct SequenceWithGlobals {
  const BlockAttention& windows;
  const BlockAttention& whole;  // differs by having no windows
  const GlobalTokens& tokens;
  size_t sequence;
  int64_t start;          // row of the batch
  const at::Tensor& qkv;  // [rows, >= 3 · dim]
  int64_t dim;            // of queries, of keys and of values
  BlockAttention::Keys keys;
  BlockAttention::Scores scores;  // hide what is masked
  // Holds queries of the batch's global tokens, which then see keys and values behind the others in
  // `qkv`; undefined: they have no such projections of their own.
  const at::Tensor& queries;
};

SelfAttentionByBlocks::Attend AttendWithGlobals(const SequenceWithGlobals& own);

// Describes all sequences as tensors, on any device. Rows are [rows, dim], contiguous.
struct RowsWithGlobals {
  const PlacedLayout& layout;
  const GlobalTokens& tokens;
  int64_t heads;
  int64_t window;  // rows on either side of a run
  int64_t run;
  double scale;
  at::Tensor mask;  // BOOL [rows], or undefined
  at::Tensor queries, keys, values;
  at::Tensor global_queries;  // [tokens, dim]
  at::Tensor global_keys, global_values;
};

// Writes what the rows attend to.
void AttendWithGlobals(const RowsWithGlobals& all, const at::Tensor& attended);

}  // namespace linserve::transformers
