#include <algorithm>

#include "attention/aten.h"
#include "attention/positions.h"
#include "models/encoder_modules.h"

// EncoderAttention of long sequences, part by part.
namespace linserve {
namespace {

// Whose queries, keys and values the caches hold.
constexpr int64_t kRowsOfPart = 1024;

}  // namespace

bool EncoderAttention::WorksInParts(const EncoderContext& context) const {
  if (options_.linformer() || !IsLinear(*options_.method) || context.memory != nullptr) {
    return false;
  }
  if (context.layout.table) return false;  // a device has no such caches
  const std::vector<int64_t>& lengths = context.layout.lengths;
  return *std::max_element(lengths.begin(), lengths.end()) > kRowsOfPart;
}

void EncoderAttention::ForParts(const at::Tensor& rows, int64_t sequence, const LayerNorm& norm,
                                const EncoderContext& context,
                                const std::function<void(const Part&)>& function) {
  const auto i = static_cast<size_t>(sequence);
  for (int64_t offset = 0; offset < context.layout.lengths[i]; offset += kRowsOfPart) {
    const int64_t row = context.layout.starts[i] + offset;
    const int64_t count = std::min(kRowsOfPart, context.layout.lengths[i] - offset);
    Part part{rows.narrow(0, row, count), {}, offset, {}};
    part.normed = norm(part.rows);
    if (context.mask.defined()) part.mask = context.mask.narrow(0, row, count).unsqueeze(0);
    function(part);
  }
}

at::Tensor EncoderAttention::Heads(const Linear& projection, const Part& part,
                                   const at::Tensor& rotation) const {
  at::Tensor rows = projection(part.normed);
  if (rotation.defined()) {
    const int64_t count = rows.size(0);
    Rotate(rows, OneSequence(count), options_.heads, rotation.narrow(0, part.offset, count));
  }
  return rows.unflatten(-1, {options_.heads, options_.dim_head}).transpose(0, 1);
}

void EncoderAttention::AddInParts(at::Tensor& rows, const LayerNorm& norm,
                                  const EncoderContext& context,
                                  const std::function<void(const at::Tensor& part)>& then) const {
  const auto add = [&](const Part& part, const at::Tensor& attended) {
    to_out_.AddTo(part.rows, attended.transpose(0, 1).flatten(1));
    then(part.rows);
  };
  for (int64_t sequence = 0; sequence < context.layout.sequences(); ++sequence) {
    RunningAttention running(*options_.method);
    if (options_.causal) {
      ForParts(rows, sequence, norm, context, [&](const Part& part) {
        add(part, running.Continue(Heads(to_q_, part, context.rotation),
                                   Heads(to_k_, part, context.rotation), Heads(to_v_, part, {}),
                                   part.mask));
      });
      continue;
    }
    ForParts(rows, sequence, norm, context, [&](const Part& part) {
      running.AddKeys(Heads(to_k_, part, context.rotation), Heads(to_v_, part, {}), part.mask);
    });
    ForParts(rows, sequence, norm, context, [&](const Part& part) {
      add(part, running.Attend(Heads(to_q_, part, context.rotation)));
    });
  }
}

}  // namespace linserve
