#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <map>
#include <string>

#include "core/sequence/item.h"

namespace linserve {

// These functions make results of a pass's outputs. On the CPU they are loops of our own: for a
// short sequence, calls of LibTorch take as long as a layer.

using ResultParts = std::map<std::string, at::Tensor>;

// sum [...] += the sum of rows [rows, ...], in F32.
void AddUp(const at::Tensor& rows, const at::Tensor& sum);

// sum /= count
void Divide(const at::Tensor& sum, int64_t count);

// Normalises and converts rows [..., width] as asked for. Those in I8 come with their scales.
ResultParts Finish(const std::string& name, const at::Tensor& rows, const OutputOptions& options);

}  // namespace linserve
