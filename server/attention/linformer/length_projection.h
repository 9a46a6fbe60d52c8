#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace linserve {

// These are the ways in which linformer-pytorch 0.19.3 makes a few slots of many rows. All of them
// add to sums [count, heads, slots, width], F32 whatever the rows' type, what rows [count, length,
// heads · width] give: rows `first` to first + length of `count` sequences. So a long sequence may
// come slice by slice, and a short one meets only those columns of the matrices that are its own.

// sums[b, h, s, :] += sum over t of matrices[h, s, first + t] · rows[b, t, head h]
// matrices [heads or 1, slots, input_size]: one may serve all heads.
// O(count · length · slots · heads · width). Source: Wang et al. 2020 (arXiv:2006.04768), eq. 7.
void AddProjected(const at::Tensor& rows, const at::Tensor& matrices, int64_t first,
                  at::Tensor& sums);

// Adds a convolution over time whose stride is its kernel's length, so that slot s sees rows
// s·stride to (s+1)·stride, all features of its head; rows past the last slot's are left out:
// sums[b, h, s, :] += sum over t < stride of rows[b, s·stride + t - first, head h] · kernels[h, t]
// kernels [heads or 1, stride · width, width], by time and then by feature. REQUIRES: `first` is a
// multiple of the stride. O(count · length · heads · width²). Source: the package's method
// "convolution".
void AddConvolved(const at::Tensor& rows, const at::Tensor& kernels, int64_t first,
                  at::Tensor& sums);

}  // namespace linserve
