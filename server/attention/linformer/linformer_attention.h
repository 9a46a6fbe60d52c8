#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "attention/rows/spans.h"
#include "attention/rows/visible.h"

namespace linserve {

// Projects rows along the sequence, as Linformer does, for each sequence of a batch:
//   result[b, s, :] = sum over t < m_b of projection[t, s] · rows[start_b + t, :]
// rows [rows, width], projection [seq_len, slots] -> [batch, slots, width]. A sequence shorter
// than seq_len meets the first m_b rows of the projection, which equals padding it with zero rows.
// REQUIRES: every length (with padding: the padded length) at most seq_len.
// With padding, rows past a sequence's length are overwritten with zeros.
// O(rows · slots · width). Source: Wang et al. 2020 (arXiv:2006.04768), equation 7.
at::Tensor ProjectLength(const at::Tensor& rows, const at::Tensor& projection,
                         const PlacedLayout& layout);

// Returns a projection [seq_len, slots] as ProjectLength() is best given it: on a device its rows
// begin at multiples of 16 bytes, whatever the number of slots is.
at::Tensor WithAlignedRows(const at::Tensor& projection);

// Computes the multi-head attention of packed or padded queries over the projected keys of their
// own sequence:
//   softmax(q · keysᵀ / sqrt(dim_head) + mask) · values
// queries [rows, heads · dim_head], keys and values [batch, slots, kv_heads · dim_head] with
// kv_heads = heads or 1 (one head serves all) -> [rows, heads · dim_head].
// `mask`, if defined, is [batch, heads, length, slots] of sequences of one length, -inf where a
// query must not look; a query that may look nowhere gets zeros.
// O(rows · slots · heads · dim_head), scratch bounded for any length.
at::Tensor AttendToSlots(const at::Tensor& queries, const at::Tensor& keys,
                         const at::Tensor& values, int64_t heads, const PlacedLayout& layout,
                         const at::Tensor& mask = {});

// Returns the weights that AttendToSlots() gives the slots, averaged over the heads: [rows, slots],
// in the type of the queries. Arguments, cost and bounds are the same.
at::Tensor SlotWeights(const at::Tensor& queries, const at::Tensor& keys, int64_t heads,
                       const PlacedLayout& layout, const at::Tensor& mask = {});

// Computes Linformer attention by its formula, with the projections as arguments:
//   softmax(query · (k_projection · key)ᵀ / sqrt(d)) · (v_projection · value)
// query [..., n, d], key [..., m, d], value [..., m, e], projections [r, m] -> [..., n, e]. Keys
// that are not visible are zero before they are projected; without any the rows are zeros. Causal:
// slot j is visible to queries i >= j, which hides slots and not positions.
// O(m · r · (d + e) + n · r · (d + e)).
at::Tensor LinformerAttention(const at::Tensor& query, const at::Tensor& key,
                              const at::Tensor& value, const at::Tensor& k_projection,
                              const at::Tensor& v_projection, const Visible& visible);

}  // namespace linserve
