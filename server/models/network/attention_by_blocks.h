#pragma once

#include <ATen/core/Tensor.h>

#include <algorithm>
#include <cstdint>

#include "attention/products/block_product.h"
#include "attention/rows/placed_layout.h"
#include "attention/rows/slices.h"
#include "models/network/layers.h"

namespace linserve {

// Describes attention with linear projections that is computed block by block, so that neither
// queries nor keys ever exist as a whole. What attends is a class such as BlockLinearAttention
// (attention/blocks/). REQUIRES: packed layers.
struct AttentionByBlocks {
  // Describes one sequence: of queries, keys and values at these rows.
  struct Sequence {
    int64_t start, length;                // rows of the target and of x
    int64_t source_start, source_length;  // rows of the source
  };

  Sequence At(size_t i) const {
    return {layout.starts[i], layout.lengths[i], source_layout.starts[i], source_layout.lengths[i]};
  }
  int64_t inner() const { return to_q.outputs; }
  int64_t block() const { return kBlockRows * to_q.inputs; }  // elements

  // Sets `out` to keys of rows of the sequence's source; and to their values beside them.
  void SetKeys(const Sequence& sequence, int64_t row, int64_t count, const RowBlock& out,
               float* scratch) const;
  void SetKeysAndValues(const Sequence& sequence, int64_t row, int64_t count, const RowBlock& out,
                        float* scratch) const;
  void SetQueries(const Sequence& sequence, int64_t row, int64_t count, const RowBlock& out,
                  float* scratch) const;

  // Adds to the target what all rows of the sequence attended to, and applies `then`.
  void AddAttended(const Sequence& sequence, const RowBlock& attended) const;

  void SetKeysOf(const RowBlock& own, const Sequence& sequence, int64_t row, int64_t count,
                 const RowBlock& out) const;

  const Linear &to_q, &to_k, &to_v, &to_out;
  int64_t heads;
  // From this column on, keys of rows that are masked become the lowest number; inner(): none do.
  // Their values become zeros.
  int64_t hides_from;

  const at::Tensor& target;
  const NormedRows& x;  // the target may be the same rows, and so may the source
  const PlacedLayout& layout;
  const NormedRows& source;
  const PlacedLayout& source_layout;
  const at::Tensor& mask;    // BOOL [source rows], or undefined
  const at::Tensor& rotary;  // table of positions, or undefined
  const BlockStep& then;     // follows on each block of the target's rows
};

// Adds to the target what its rows make of all keys of their sequence's source.
template <typename Attention>
void AddByBlocks(const AttentionByBlocks& rows, Attention& attention) {
  RowSlices slices;
  const int64_t inner = rows.inner();
  const int64_t scratch_elements =
      rows.block() + 2 * kBlockRows * inner + attention.ScratchElements();
  for (size_t i = 0; i < rows.layout.starts.size(); ++i) {
    const auto sequence = rows.At(i);
    attention.Begin();
    slices.ForEach(
        sequence.source_length, 2 * inner, rows.block(),
        [&](int64_t row, int64_t count, const RowBlock& out, float* scratch) {
          rows.SetKeysAndValues(sequence, row, count, out, scratch);
        },
        [&](int64_t, int64_t count, const RowBlock& keys) {
          attention.Add(keys, keys.Columns(inner), count);
        });
    attention.Finish();
    ForSlicedBlocks(sequence.length, std::max(scratch_elements, rows.then.scratch_elements),
                    [&](int64_t begin, int64_t count, float* scratch) {
                      const int64_t row = sequence.start + begin;
                      const RowBlock queries{scratch + rows.block(), inner};
                      const RowBlock attended = queries.Rows(kBlockRows);
                      rows.SetQueries(sequence, begin, count, queries, scratch);
                      attention.Attend(queries, count, attended, attended.Rows(kBlockRows).data);
                      rows.to_out.Add(BlockOf(rows.target, row), attended, count);
                      if (rows.then.apply) rows.then.apply(row, count, scratch);
                    });
  }
}

// Adds to the target what its rows make of their own keys and those before them. An attention that
// looks ahead gets all keys of a sequence first.
template <typename Attention>
void AddCausallyByBlocks(const AttentionByBlocks& rows, Attention& attention) {
  RowSlices slices;
  const int64_t inner = rows.inner();
  for (size_t i = 0; i < rows.layout.starts.size(); ++i) {
    const auto sequence = rows.At(i);
    attention.Begin();
    if constexpr (requires { attention.looks_ahead(); }) {
      if (attention.looks_ahead()) {
        slices.ForEach(
            sequence.length, inner, rows.block(),
            [&](int64_t row, int64_t count, const RowBlock& out, float* scratch) {
              rows.SetKeys(sequence, row, count, out, scratch);
            },
            [&](int64_t, int64_t count, const RowBlock& keys) {
              attention.LookAhead(keys, count);
            });
      }
    }
    slices.ForEach(
        sequence.length, 3 * inner, rows.block(),
        [&](int64_t row, int64_t count, const RowBlock& out, float* scratch) {
          rows.SetQueries(sequence, row, count, out, scratch);
          rows.SetKeysAndValues(sequence, row, count, out.Columns(inner), scratch);
        },
        [&](int64_t first, int64_t some, const RowBlock& all) {
          attention.Attend(all, all.Columns(inner), all.Columns(2 * inner), some);
          ForBlocks(some, rows.then.scratch_elements,
                    [&](int64_t begin, int64_t count, float* scratch) {
                      const int64_t row = sequence.start + first + begin;
                      rows.to_out.Add(BlockOf(rows.target, row), all.Rows(begin), count);
                      if (rows.then.apply) rows.then.apply(row, count, scratch);
                    });
          RowsDone(some);
        });
  }
}

// Calls function(row, count) for so many rows that their features fit the caches.
template <typename Function>
void ForRowSlices(int64_t count, const Function& function) {
  constexpr int64_t kRowsAtOnce = 4 * kBlockRows;
  for (int64_t row = 0; row < count; row += kRowsAtOnce) {
    function(row, std::min(kRowsAtOnce, count - row));
  }
}

// Overwrites queries of a whole sequence by what they make of its keys, both of which are there,
// with the values. Rows are [count, width].
template <typename Attention>
void AttendInPlace(Attention& attention, const RowBlock& queries, const RowBlock& keys,
                   const RowBlock& values, int64_t count, int64_t width) {
  attention.Begin();
  ForRowSlices(count, [&](int64_t row, int64_t some) {
    attention.Add(keys.Rows(row), values.Rows(row), some);
  });
  attention.Finish();
  ForBlocks(count, kBlockRows * width + attention.ScratchElements(),
            [&](int64_t begin, int64_t some, float* scratch) {
              const RowBlock attended{scratch, width};
              attention.Attend(queries.Rows(begin), some, attended, attended.Rows(kBlockRows).data);
              for (int64_t i = 0; i < some; ++i) {
                std::copy_n(attended.Rows(i).data, width, queries.Rows(begin + i).data);
              }
            });
}

// Does the same with queries that see their own keys and those before them.
template <typename Attention>
void AttendCausallyInPlace(Attention& attention, const RowBlock& queries, const RowBlock& keys,
                           const RowBlock& values, int64_t count) {
  attention.Begin();
  if constexpr (requires { attention.looks_ahead(); }) {
    if (attention.looks_ahead()) {
      ForRowSlices(count,
                   [&](int64_t row, int64_t some) { attention.LookAhead(keys.Rows(row), some); });
    }
  }
  ForRowSlices(count, [&](int64_t row, int64_t some) {
    attention.Attend(queries.Rows(row), keys.Rows(row), values.Rows(row), some);
  });
}

}  // namespace linserve
