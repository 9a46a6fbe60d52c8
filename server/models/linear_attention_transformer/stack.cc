#include "models/linear_attention_transformer/stack.h"

namespace linserve::linear_attention_transformer {

Stack StackOf(const Options& options) {
  Stack stack(options.reversible);
  for (int64_t step = 0; step < options.depth; ++step) {
    stack.Add(options, Layer::Kind::kMain, step);
    if (options.attend_axially) stack.Add(options, Layer::Kind::kAxial, step);
    if (options.receives_context) stack.Add(options, Layer::Kind::kContext, step);
  }
  return stack;
}

}  // namespace linserve::linear_attention_transformer
