#include "engine/warmup.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <new>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/sequence/result_bytes.h"
#include "core/system/memory.h"

namespace linserve {
namespace {

// Returns the length nearest to `length` that the letter may have.
int64_t AllowedLength(const Signature& signature, const Item& item, char letter, int64_t length) {
  const int64_t longest = LongestFor(signature, item, letter);
  int64_t allowed = longest > 0 ? std::min(length, longest) : length;
  for (const LengthLimit& limit : signature.limits) {
    if (limit.letter == letter) allowed = std::max(allowed, limit.shortest);
  }
  return allowed;
}

// Makes the tensors of an item.
using MakeTensor = Tensor (*)(DType, Shape);

Tensor Zeros(DType dtype, Shape shape) { return Tensor::Allocate(dtype, std::move(shape)).first; }

Tensor WithoutMemory(DType dtype, Shape shape) {
  return Tensor(dtype, std::move(shape), nullptr, nullptr);
}

// Makes an item whose lettered axes are `length` long, without optional inputs.
Item ItemOf(const Signature& signature, int64_t length, MakeTensor make_tensor) {
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
    item.inputs[input.name] = make_tensor(dtype, std::move(shape));
  }
  return item;
}

// The most rows to try. Longer sequences are computed in slices of the same size, only more of
// them; with a million rows that would hold up the start for most of a minute. A batch may be as
// large as a configuration likes.
constexpr int64_t kMostTried = 65536;

// Returns the length of a sequence of so many rows. Several lengths of one input (of an image)
// multiply.
int64_t LengthWith(int64_t rows, const Signature& signature) {
  int64_t letters = 1;
  for (const InputSpec& input : signature.inputs) {
    if (input.optional) continue;
    letters = std::max<int64_t>(
        letters, std::count_if(input.axes.begin(), input.axes.end(),
                               [](const Axis& axis) { return axis.letter != '\0'; }));
  }
  return std::llround(std::pow(static_cast<double>(rows), 1.0 / static_cast<double>(letters)));
}

// A pass is given up after this time, as attention that is quadratic in the length may take minutes
// for the longest sequence.
constexpr std::chrono::seconds kLongestPass{5};

// Computes one batch of `count` sequences of this length. Returns how many of its layers are
// computed: fewer than all where it was given up.
absl::StatusOr<int64_t> RunOnce(Model& model, const Padder& padder, const Clock& clock,
                                int64_t count, int64_t length) {
  const Item item = ItemOf(model.info().signature, length, &Zeros);
  const std::vector<const Item*> items(static_cast<size_t>(count), &item);
  const TimePoint end = clock.Now() + kLongestPass;
  const auto in_time = [&](int64_t /*rows*/ = 0) { return clock.Now() < end; };
  auto forward = model.Start(padder.Pad(items));
  if (!forward.ok()) return forward.status();
  int64_t layers = 0;
  for (; in_time(); ++layers) {
    const auto done = (*forward)->Advance(in_time);
    if (absl::IsCancelled(done.status())) return layers;
    if (!done.ok()) return done.status();
    if (!*done) continue;
    absl::Status status = (*forward)->TakeResults(in_time).status();
    if (!status.ok() && !absl::IsCancelled(status)) return status;
    return model.info().layers;
  }
  return layers;
}

absl::StatusOr<int64_t> TryOnce(Model& model, const Padder& padder, const Clock& clock,
                                int64_t count, int64_t length) {
  try {
    return RunOnce(model, padder, clock, count, length);
  } catch (const std::bad_alloc&) {
    return absl::ResourceExhaustedError("not enough memory");
  }
}

// Returns OK if there is memory for a sequence of this length, its results, and rows as wide as the
// results to compute them in. The memory is asked for, and not touched.
absl::Status HasMemoryFor(const Signature& signature, int64_t length) {
  const Item item = ItemOf(signature, length, &WithoutMemory);
  int64_t bytes = 2 * ResultBytes(signature, item);
  for (const auto& [name, input] : item.inputs) bytes += static_cast<int64_t>(input.byte_size());
  const int64_t most = MemoryBytes();
  std::string why;
  try {
    if (bytes <= most) {
      Tensor::AllocateUnfilled(DType::kU8, {bytes});
      return absl::OkStatus();
    }
    why = "the process may use " + FormatBytes(static_cast<double>(most));
  } catch (const std::bad_alloc&) {
    why = "there is not as much left";
  }
  return absl::ResourceExhaustedError(
      "the model takes sequences of length " + std::to_string(length) +
      ", and to compute one takes about " + FormatBytes(static_cast<double>(bytes)) +
      " of memory, where " + why + ": give it more, or serve a shorter model");
}

}  // namespace

absl::Status WarmUp(Model& model, const Padder& padder, const BatchPolicy& policy,
                    const Clock& clock, SpeedEstimate& speed) {
  const Signature& signature = model.info().signature;
  int64_t longest = 0;
  for (const LengthLimit& limit : signature.limits) longest = std::max(longest, limit.longest);
  if (longest == 0) longest = LengthWith(policy.max_tokens, signature);
  const int64_t limit = longest;
  longest = std::min(longest, LengthWith(kMostTried, signature));
  if (longest < limit) {
    absl::Status status = HasMemoryFor(signature, limit);
    if (!status.ok()) return status;
  }
  const int64_t rows = std::min(policy.max_tokens, kMostTried);
  const int64_t batched = std::min(longest, LengthWith(rows, signature));
  const int64_t each = PackedRows(signature, ItemOf(signature, batched, &WithoutMemory));
  const int64_t most = std::clamp<int64_t>(rows / each, 1, policy.max_sequences);
  std::set<std::pair<int64_t, int64_t>> batches = {{1, 1}, {1, longest}, {most, batched}};
  if (model.asynchronous()) {
    // A device's libraries load what they compute with when they first meet rows of a size.
    for (int64_t fewer = most / 2; fewer > 1; fewer /= 2) batches.emplace(fewer, batched);
  }
  int64_t tokens = 0;
  std::chrono::nanoseconds took{0};
  for (const auto& [wanted, length] : batches) {
    int64_t count = wanted;
    TimePoint start = clock.Now();
    auto layers = TryOnce(model, padder, clock, count, length);
    // The batch is halved here because one that does not fit is computed in halves later, too.
    while (absl::IsResourceExhausted(layers.status()) && count > 1) {
      count /= 2;
      start = clock.Now();
      layers = TryOnce(model, padder, clock, count, length);
    }
    if (!layers.ok()) {
      return absl::Status(
          layers.status().code(),
          "warm-up with " + (count == 1 ? "a sequence" : std::to_string(count) + " sequences") +
              " of length " + std::to_string(length) +
              " failed: " + std::string(layers.status().message()) +
              (length == limit && count == 1 ? "; the model takes no longer ones, and should "
                                               "not be served if it cannot compute these"
                                             : ""));
    }
    // What a part of the layers took is as if so many fewer rows had passed all.
    tokens = count * PackedRows(signature, ItemOf(signature, length, &WithoutMemory)) * *layers /
             model.info().layers;
    took = clock.Now() - start;
  }
  if (tokens > 0) speed.Observe(tokens, took);
  return absl::OkStatus();
}

}  // namespace linserve
