#include "engine/warmup.h"

#include <algorithm>
#include <set>
#include <string>
#include <utility>

namespace linserve {
namespace {

// The nearest to `length` that the letter may be long.
int64_t AllowedLength(const Signature& signature, const Item& item, char letter, int64_t length) {
  const int64_t longest = LongestFor(signature, item, letter);
  int64_t allowed = longest > 0 ? std::min(length, longest) : length;
  for (const LengthLimit& limit : signature.limits) {
    if (limit.letter == letter) allowed = std::max(allowed, limit.shortest);
  }
  return allowed;
}

// A valid item of zeros whose lettered axes are `length` long, without optional inputs.
Item ZeroItem(const Signature& signature, int64_t length) {
  Item item;
  for (const InputSpec& input : signature.inputs) {
    if (input.optional) continue;
    Shape shape;
    for (const Axis& axis : input.axes) {
      const bool fixed = axis.letter == '\0';
      shape.push_back(fixed ? axis.size : AllowedLength(signature, item, axis.letter, length));
    }
    const DType dtype = input.kind == InputKind::kToken  ? DType::kI64
                        : input.kind == InputKind::kMask ? DType::kBool
                                                         : DType::kF32;
    item.inputs[input.name] = Tensor::Allocate(dtype, std::move(shape)).first;
  }
  return item;
}

absl::Status RunOnce(Model& model, const Padder& padder, const Item& item) {
  auto forward = model.Start(padder.Pad({&item}));
  if (!forward.ok()) return forward.status();
  while (true) {
    auto done = (*forward)->Advance(1);
    if (!done.ok()) return done.status();
    if (*done) return (*forward)->TakeResults().status();
  }
}

}  // namespace

absl::Status WarmUp(Model& model, const Padder& padder, int64_t max_tokens) {
  const Signature& signature = model.info().signature;
  int64_t longest = 0;
  for (const LengthLimit& limit : signature.limits) longest = std::max(longest, limit.longest);
  if (longest == 0) longest = max_tokens;
  for (int64_t length : std::set<int64_t>{1, std::min(longest, max_tokens), longest}) {
    absl::Status status = RunOnce(model, padder, ZeroItem(signature, length));
    if (!status.ok()) {
      return absl::Status(status.code(),
                          "warm-up with a sequence of length " + std::to_string(length) +
                              " failed: " + std::string(status.message()) +
                              (length == longest ? "; the model takes no longer ones, and should "
                                                   "not be served if it cannot compute these"
                                                 : ""));
    }
  }
  return absl::OkStatus();
}

}  // namespace linserve
