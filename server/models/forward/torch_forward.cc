#include "models/forward/torch_forward.h"

#include <algorithm>
#include <atomic>
#include <functional>
#include <iterator>
#include <utility>

#include "attention/products/block_product.h"
#include "attention/rows/aten.h"
#include "attention/rows/slices.h"
#include "attention/rows/threads.h"
#include "core/sequence/content.h"
#include "models/forward/batch_parts.h"
#include "models/forward/pass_results.h"
#include "models/placement/guarded.h"

namespace linserve {
namespace {

// Calls `function` with 0 to `count` - 1, side by side on all threads of the pass; a product
// within has one thread then. With `count` 1 the thread is the caller's, and a product has all.
void ForParts(size_t count, const std::function<void(size_t)>& function) {
  if (count == 1) return function(0);
  OnThreads(static_cast<int64_t>(count), [&](LoopTurns& turns) {
    for (int64_t i = 0; turns.Next(i);) function(static_cast<size_t>(i));
  });
}

// Returns how many rows make a slice that takes a CPU a few milliseconds, but has a block for each
// thread.
int64_t SliceRows(const Network& network, int64_t rows) {
  constexpr double kFlopsOfSlice = 2e8;
  const auto fewest = static_cast<double>(kBlockRows * at::get_num_threads());
  const double all = std::max(network.Flops(rows), 1.0);
  const double layers = static_cast<double>(network.Layers());
  return static_cast<int64_t>(
      std::max(fewest, kFlopsOfSlice * layers * static_cast<double>(rows) / all));
}

// Returns on how many threads a pass over so many rows of sessions pays: waking one for each of a
// layer's small products takes longer than a few rows of it do.
int ThreadsFor(const Network& network, bool sessions, int64_t rows) {
  constexpr double kFlopsOfThread = 1e8;  // of a layer
  const int all = at::get_num_threads();
  if (!sessions) return all;
  const double flops = network.Flops(1) * static_cast<double>(rows);
  const double threads = flops / static_cast<double>(network.Layers()) / kFlopsOfThread;
  return static_cast<int>(std::clamp(threads, 1.0, static_cast<double>(all)));
}

// Says that the calling thread computes on the host, for as long as this lives, on at most so many
// threads. The work of a short step is cut for its share of the processors now; that of a long one
// for all, since others may begin and end before it does.
class Computing {
 public:
  Computing(const Placement& placement, int most, bool is_long) {
    if (!placement.on_host()) return;
    computes_.emplace();
    threads_.emplace(is_long ? most : static_cast<int>(ShareOfProcessors(most)));
  }

 private:
  std::optional<ComputingScope> computes_;
  std::optional<ThreadsScope> threads_;
};

// Is thrown through a pass that nobody wants any more.
struct GivenUp {};

}  // namespace

TorchForward::TorchForward(const Network& network, const Signature& signature,
                           const Placement& placement, const TensorBatch& batch,
                           const std::vector<Wanted>& wanted,
                           const std::vector<std::shared_ptr<TorchSession>>& sessions, int64_t rows)
    : signature_(signature),
      placement_(placement),
      slice_rows_(SliceRows(network, rows)),
      long_(rows > slice_rows_),
      threads_(ThreadsFor(network, !sessions.empty(), rows)) {
  const Computing computing(placement_, threads_, long_);
  std::vector<BatchPart> parts = {{0, batch.size}};
  if (!signature.request_is_unit && placement.on_host())
    parts = ShareOut(Costs(batch), at::get_num_threads());
  parts_.resize(parts.size());
  ForParts(parts.size(), [&](size_t i) {
    const auto first = wanted.begin() + parts[i].first;
    Part& part = parts_[i];
    part.wanted.assign(first, first + parts[i].count);
    // A batch that stays whole keeps what the device knows of its layout.
    TensorBatch own = parts.size() == 1 ? batch : PartOf(batch, signature, parts[i]);
    part.axes = own.axes;
    if (!sessions.empty()) {
      const auto begin = sessions.begin() + parts[i].first;
      part.memory = std::make_shared<SessionMemory>(
          std::vector(begin, begin + parts[i].count),
          own.axes.at(ChunkInput(signature).axes[0].letter), placement);
      own.memory = part.memory;
    }
    part.pass = network.Begin(std::move(own));
  });
}

TorchForward::TorchForward(const Signature& signature, const Placement& placement,
                           RecordedPasses::Replayed replayed, std::vector<Wanted> wanted)
    : signature_(signature),
      placement_(placement),
      slice_rows_(1),
      long_(false),
      threads_(at::get_num_threads()) {
  parts_.push_back({std::move(replayed.axes), std::move(wanted), std::move(replayed.pass),
                    /*memory=*/nullptr, /*done=*/true});
}

TorchForward::~TorchForward() {
  if (placement_.lost()) Leak(std::move(parts_));
}

absl::StatusOr<bool> TorchForward::Advance(const Between& between) {
  try {
    return TryAdvance(between);
  } catch (const GivenUp&) {
    return absl::CancelledError("the forward pass was given up");
  }
}

absl::StatusOr<bool> TorchForward::TryAdvance(const Between& between) {
  return Guarded(placement_, [&] {
    const Computing computing(placement_, threads_, long_);
    std::optional<SliceScope> slices;
    if (placement_.on_host() && parts_.size() == 1) {
      slices.emplace(slice_rows_, [&](int64_t rows) {
        if (!between(rows)) throw GivenUp();
      });
    }
    std::atomic<bool> going_on = false;
    ForParts(parts_.size(), [&](size_t i) {
      if (parts_[i].Step()) going_on = true;
    });
    if (!going_on && !placement_.on_host()) {
      results_ = Collect(between);
      for (const Part& part : parts_) {
        if (part.memory != nullptr && part.pass != nullptr) part.memory->Detach();
      }
      finished_.emplace(placement_);
    }
    return !going_on;
  });
}

bool TorchForward::Forget(size_t sequence) {
  for (Part& part : parts_) {
    if (sequence < part.wanted.size()) return part.Forget(sequence);
    sequence -= part.wanted.size();
  }
  return false;
}

bool TorchForward::Part::Forget(size_t sequence) {
  if (memory != nullptr) memory->Forget(sequence);
  if (++forgotten < wanted.size() || done) return false;
  pass.reset();
  return done = true;
}

absl::StatusOr<Forward::Results> TorchForward::TakeResults(const Between& between) {
  try {
    return Guarded(placement_, [&] {
      const Computing computing(placement_, threads_, long_);
      if (finished_) {
        finished_->Wait();
      } else {
        results_ = Collect(between);
      }
      Results results = CheckResults();
      for (Part& part : parts_) {
        if (part.memory != nullptr && part.pass != nullptr) part.memory->Commit();
      }
      return results;
    });
  } catch (const GivenUp&) {
    return absl::CancelledError("the results were given up");
  }
}

// Puts a fault in the place of results that are not finite, and leaves those sessions as they are.
Forward::Results TorchForward::CheckResults() {
  Results results(std::make_move_iterator(results_.begin()),
                  std::make_move_iterator(results_.end()));
  if (signature_.allow_nonfinite) return results;
  auto result = results.begin();
  for (Part& part : parts_) {
    for (size_t i = 0; i < part.wanted.size(); ++i, ++result) {
      absl::Status finite = CheckFinite(**result);
      if (finite.ok()) continue;
      *result = std::move(finite);
      if (part.memory != nullptr) part.memory->Forget(i);
    }
  }
  return results;
}

std::vector<TensorMap> TorchForward::Collect(const Between& between) {
  const auto look_up = [&] {
    // Results of several parts are made side by side, and within the budget of a batch.
    if (placement_.on_host() && parts_.size() == 1 && !between(0)) throw GivenUp();
  };
  std::optional<SliceScope> slices;  // of outputs that are computed only now
  if (placement_.on_host() && parts_.size() == 1) {
    slices.emplace(slice_rows_, [&](int64_t) { look_up(); });
  }
  std::vector<std::vector<TensorMap>> of_parts(parts_.size());
  ForParts(parts_.size(), [&](size_t i) {
    Part& part = parts_[i];
    of_parts[i] = part.pass == nullptr ? std::vector<TensorMap>(part.wanted.size())
                                       : ResultsOf(*part.pass, signature_, placement_, part.axes,
                                                   part.wanted, look_up);
  });
  std::vector<TensorMap> results;
  for (std::vector<TensorMap>& part : of_parts) {
    results.insert(results.end(), std::make_move_iterator(part.begin()),
                   std::make_move_iterator(part.end()));
  }
  return results;
}

}  // namespace linserve
