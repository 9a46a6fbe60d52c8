#include "models/linformer_pytorch/inputs.h"

#include <algorithm>

#include "attention/rows/aten.h"

namespace linserve::linformer_pytorch {
namespace {

// Says which rows of `layout` the mask hides: BOOL [rows, 1]; undefined without the mask.
at::Tensor HiddenRows(const TensorBatch& batch, const char* name, char letter,
                      const PlacedLayout& layout) {
  if (!batch.Has(name)) return {};
  const at::Tensor& mask = batch[name];
  const PlacedLayout& own = batch.axes.at(letter);
  at::Tensor hidden = at::ones({layout.rows, 1}, mask.options());
  for (size_t i = 0; i < layout.starts.size(); ++i) {
    const int64_t count = std::min(own.lengths[i], layout.lengths[i]);
    hidden.narrow(0, layout.starts[i], count)
        .copy_(mask.narrow(0, own.starts[i], count).logical_not().unsqueeze(1));
  }
  return hidden;
}

}  // namespace

void ConditionInputs::AddTo(Signature& signature) const {
  if (decoder_) {
    signature.inputs.push_back(
        {.name = "embeddings",
         .axes = {Axis::Ragged(embeddings_letter()), Axis::Fixed(channels_)}});
  }
  const auto add_mask = [&](const char* name, char letter) {
    signature.inputs.push_back(
        {.name = name, .kind = InputKind::kMask, .axes = {Axis::Ragged(letter)}, .optional = true});
  };
  add_mask("input_mask", mask_letter());
  add_mask("embeddings_mask", embeddings_mask_letter());
  signature.limits.push_back({'n', input_size_, ""});
  if (!padder_) return;
  if (decoder_) signature.limits.push_back({embeddings_letter(), input_size_, ""});
  signature.limits.push_back({mask_letter(), input_size_, ""});
  signature.limits.push_back({embeddings_mask_letter(), input_size_, ""});
}

void ConditionInputs::AddTo(NetworkNotes& notes) const {
  if (!padder_) return;
  notes.facts.emplace_back(
      "Padder",
      "pads x only: the masks' lengths p and q may be less than n; --padding zeros gives "
      "its numbers for short sequences");
}

StackContext ConditionInputs::From(const TensorBatch& batch) const {
  StackContext context;
  context.layout = ComputedLayout(batch.axes.at('n'), batch.padding);
  context.hidden_rows = HiddenRows(batch, "input_mask", mask_letter(), context.layout);
  context.hidden_queries =
      HiddenRows(batch, "embeddings_mask", embeddings_mask_letter(), context.layout);
  if (!decoder_) return context;
  context.embeddings = batch["embeddings"];
  context.embeddings_layout = ComputedLayout(batch.axes.at(embeddings_letter()), batch.padding);
  context.hidden_embeddings =
      HiddenRows(batch, "input_mask", mask_letter(), context.embeddings_layout);
  if (padder_ && !batch.Has("input_mask") && batch.padding != Padding::kZeros) {
    // Padding is hidden as by an input_mask for x, and that hides embeddings past its end, too.
    for (size_t i = 0; i < context.layout.lengths.size(); ++i) {
      int64_t& length = context.embeddings_layout.lengths[i];
      length = std::min(length, context.layout.lengths[i]);
    }
  }
  return context;
}

}  // namespace linserve::linformer_pytorch
