#include "models/network/sequences.h"

#include "attention/rows/spans.h"

namespace linserve {

Sequences Sequences::Of(const TensorBatch& batch, const std::string& mask, bool with_context) {
  Sequences sequences;
  sequences.own = {ComputedLayout(batch.axes.at('n'), batch.padding), batch.Find(mask)};
  // Only the first chunk of a session brings it.
  if (with_context && batch.Find("context").defined()) {
    sequences.context = batch["context"];
    sequences.context_layout = {ComputedLayout(batch.axes.at('m'), batch.padding),
                                batch.Find("context_mask")};
  }
  sequences.memory = batch.memory;
  return sequences;
}

void AddMask(Signature& signature, const std::string& name) {
  signature.inputs.push_back(
      {.name = name, .kind = InputKind::kMask, .axes = {Axis::Ragged('n')}, .optional = true});
}

void AddContext(Signature& signature, int64_t dim) {
  const Axis length = Axis::Ragged('m');
  signature.inputs.push_back(
      {.name = "context", .axes = {length, Axis::Fixed(dim)}, .opens = true});
  signature.inputs.push_back({.name = "context_mask",
                              .kind = InputKind::kMask,
                              .axes = {length},
                              .optional = true,
                              .opens = true});
}

}  // namespace linserve
