#include "models/transformers/full_length_pass.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "attention/rows/aten.h"
#include "attention/rows/spans.h"

namespace linserve::transformers {
namespace {

// So many rows are computed at once, but one sequence at least.
constexpr int64_t kRowsAtOnce = 4096;

}  // namespace

FullLengthPass::FullLengthPass(TensorBatch batch, const FullLength& length, BeginFull begin)
    : batch_(std::move(batch)),
      layout_(ComputedLayout(batch_.axes.at('n'), batch_.padding)),
      length_(length),
      begin_(std::move(begin)) {
  Begin();
}

void FullLengthPass::Begin() {
  first_ += count_;
  count_ = std::min(std::max<int64_t>(1, kRowsAtOnce / length_.rows), layout_.sequences() - first_);
  TensorBatch full;
  full.size = count_;
  full.axes['n'] = {LayOut(std::vector<int64_t>(static_cast<size_t>(count_), length_.rows))};
  full.inputs["x"] = Padded(batch_["x"], length_.token);
  if (batch_.Has("token_type_ids")) {
    full.inputs["token_type_ids"] = Padded(batch_["token_type_ids"], 0);
  }
  const at::Tensor mask = batch_.Find("attention_mask");
  full.inputs["attention_mask"] =
      Padded(mask.defined() ? mask : at::ones_like(batch_["x"], at::kBool), false);
  pass_ = begin_(full);
}

at::Tensor FullLengthPass::Padded(const at::Tensor& input, const at::Scalar& filling) const {
  at::Tensor padded = at::full({count_ * length_.rows}, filling, input.options());
  for (int64_t i = 0; i < count_; ++i) {
    const auto sequence = static_cast<size_t>(first_ + i);
    padded.narrow(0, i * length_.rows, layout_.lengths[sequence])
        .copy_(input.narrow(0, layout_.starts[sequence], layout_.lengths[sequence]));
  }
  return padded;
}

bool FullLengthPass::Step() {
  if (pass_->Step()) return true;
  Take();
  if (first_ + count_ == layout_.sequences()) return false;
  Begin();
  return true;
}

void FullLengthPass::Take() {
  const at::Tensor rows = pass_->Output("last_hidden_state", 0, count_ * length_.rows);
  if (!result_.defined()) {
    result_ = NewRows(layout_, batch_["x"].size(0), rows.size(1), rows.options());
  }
  for (int64_t i = 0; i < count_; ++i) {
    const auto sequence = static_cast<size_t>(first_ + i);
    result_.narrow(0, layout_.starts[sequence], layout_.lengths[sequence])
        .copy_(rows.narrow(0, i * length_.rows, layout_.lengths[sequence]));
  }
}

at::Tensor FullLengthPass::Output(const std::string& /*name*/, int64_t begin, int64_t end) {
  return result_.narrow(0, begin, end - begin);
}

}  // namespace linserve::transformers
