#pragma once

#include <ATen/core/Tensor.h>

#include "attention/rows/placed_layout.h"

namespace linserve {

// These functions do what LinearMultiheadAttention does to keys or values between ProjectLength()
// and AttendToSlots(). Slots are [batch, slots, width]. Source: kuixu/Linear-Multihead-Attention,
// f85ebdd.

// Adds what one more row at the end of each sequence (bias_k, bias_v) would have added:
//   slots[b, s, :] += projection[m_b, s] · row
// row [width], projection [seq_len, slots]. REQUIRES: every length m_b below seq_len.
// O(batch · slots · width).
void AddLastRow(at::Tensor& slots, const at::Tensor& row, const at::Tensor& projection,
                const PlacedLayout& layout);

// Reads the slots as the package does: the contiguous numbers of [batch, width, slots] are taken
// for those of [slots, batch, width], which mixes features, slots and sequences. O(batch · slots ·
// width).
at::Tensor RereadSlots(const at::Tensor& slots);

// Adds a slot of zeros (add_zero_attn): [batch, slots + 1, width].
at::Tensor AppendZeroSlot(const at::Tensor& slots);

// Returns the mask [batch, heads, length, slots] with that slot open to every query.
at::Tensor AppendOpenSlot(const at::Tensor& mask);

}  // namespace linserve
