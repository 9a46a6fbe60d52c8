#include "models/performer_pytorch/stack.h"

namespace linserve::performer_pytorch {

Stack StackOf(const Options& options) {
  Stack stack(options.reversible);
  for (int64_t step = 0; step < options.depth; ++step) {
    stack.Add(options, Layer::Kind::kSelf, step);
    if (options.cross_attend) stack.Add(options, Layer::Kind::kContext, step);
  }
  return stack;
}

void Declare(Stack& stack, const Scope& scope) {
  stack.Declare(scope / "net");
  stack.Declare(scope / "proj_updater" / "instance");
  // It counts in training. The second place is that of scBERT's code and of older versions.
  for (const Scope& owner : {scope / "proj_updater", scope}) {
    owner.Ignore("calls_since_last_redraw");
  }
}

}  // namespace linserve::performer_pytorch
