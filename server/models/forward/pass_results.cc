#include "models/forward/pass_results.h"

#include <algorithm>
#include <limits>

#include "attention/rows/aten.h"
#include "core/tensor/row_scale.h"
#include "models/network/tensor_bridge.h"

namespace linserve {
namespace {

// So many elements of an output are computed at once: 64 MiB in F32.
constexpr int64_t kElementsAtOnce = int64_t{16} << 20;
constexpr int64_t kPooledRows = 1024;

using NamedTensors = std::map<std::string, at::Tensor>;

// Normalises and converts in the order that loses least: the norm is taken in F32. I8 comes with
// its scale.
NamedTensors Finish(const std::string& name, const at::Tensor& rows, const OutputOptions& options) {
  at::Tensor result = rows;
  if (options.normalize) {
    result = rows.to(at::kFloat);
    result = result / result.norm(2, {-1}, /*keepdim=*/true).clamp_min(1e-12);
  }
  if (options.dtype != DType::kI8) return {{name, result.to(ToScalarType(options.dtype))}};
  // At least the smallest normal number: rows of zeros have no largest magnitude.
  const at::Tensor scale = (result.abs().amax({-1}, /*keepdim=*/true).to(at::kFloat) / 127)
                               .clamp_min_(std::numeric_limits<float>::min());
  // The scale of a row with a NaN or an infinity says so; its steps are zeros.
  const at::Tensor steps = (result / scale).round().nan_to_num_(0);
  return {{name, steps.to(at::kChar)}, {ScaleOf(name), scale}};
}

// Says whether rows like `first`, of which there are so many, exist already as they are asked for.
bool IsFinished(const at::Tensor& first, int64_t rows, const OutputOptions& options) {
  return first.storage().nbytes() >= first.nbytes() * static_cast<size_t>(rows) &&
         !options.normalize && first.scalar_type() == ToScalarType(options.dtype);
}

// Holds sequences of a batch that want the same done to their rows.
struct Group {
  OutputOptions options;
  std::vector<size_t> members;
};

std::vector<Group> GroupByOptions(const std::vector<OutputOptions>& options) {
  std::vector<Group> groups;
  for (size_t i = 0; i < options.size(); ++i) {
    if (groups.empty() || groups.back().options != options[i]) {
      groups.push_back({options[i], {}});
    }
    groups.back().members.push_back(i);
  }
  return groups;
}

class Collector {
 public:
  Collector(Pass& pass, const Signature& signature, const Placement& placement,
            const std::map<char, PlacedLayout>& axes, const std::vector<OutputOptions>& options,
            const std::function<void()>& look_up)
      : pass_(pass),
        signature_(signature),
        placement_(placement),
        axes_(axes),
        options_(options),
        look_up_(look_up) {}

  std::vector<TensorMap> Results() {
    std::vector<TensorMap> results(options_.size());
    for (const Group& group : GroupByOptions(options_)) {
      std::vector<std::string> names = group.options.outputs;
      if (names.empty()) names = {signature_.outputs[0].name};
      for (const std::string& name : names) Collect(group, name, results);
    }
    return results;
  }

 private:
  // Says where an output's sequences lie: along `axis`, or one row of the first axis each.
  struct Place {
    int64_t axis = 0;
    const PlacedLayout* layout = nullptr;  // nullptr: stacked

    int64_t start(size_t i) const {
      return layout != nullptr ? layout->starts[i] : static_cast<int64_t>(i);
    }
    int64_t length(size_t i) const { return layout != nullptr ? layout->lengths[i] : 1; }
  };

  Place PlaceOf(const OutputSpec& output) const {
    for (size_t axis = 0; axis < output.axes.size(); ++axis) {
      const auto layout = axes_.find(output.axes[axis].letter);
      if (layout != axes_.end()) return {static_cast<int64_t>(axis), &layout->second};
    }
    return {};
  }

  void Collect(const Group& group, const std::string& name, std::vector<TensorMap>& results) {
    look_up_();
    const Place place = PlaceOf(*signature_.FindOutput(name));
    if (group.options.pooling == Pooling::kNone) {
      CollectRows(group, name, place, results);
    } else {
      CollectPooled(group, name, place, results);
    }
  }

  // Computes a whole batch at once where that takes little memory, else so many rows at a time into
  // the sequences' own tensors: of logits no more exist in the type of the computation.
  void CollectRows(const Group& group, const std::string& name, const Place& place,
                   std::vector<TensorMap>& results) {
    const auto count = static_cast<int64_t>(options_.size());
    const int64_t all = place.layout != nullptr ? place.layout->rows : count;
    const at::Tensor first = pass_.Output(name, 0, 1);
    const int64_t most =
        std::max<int64_t>(1, kElementsAtOnce / std::max<int64_t>(first.numel(), 1));
    const bool at_once = all <= most || IsFinished(first, all, group.options);
    if (at_once) {
      for (const auto& [part, rows] : Finish(name, pass_.Output(name, 0, all), group.options)) {
        const at::Tensor host = placement_.ToHost(rows);
        for (size_t i : group.members) results[i][part] = FromAten(Cropped(host, place, i));
      }
      return;
    }
    for (size_t i : group.members) {
      NamedTensors whole;
      for (int64_t row = 0; row < place.length(i); row += most) {
        look_up_();
        const int64_t begin = place.start(i) + row;
        const int64_t end = begin + std::min(most, place.length(i) - row);
        for (const auto& [part, rows] :
             Finish(name, pass_.Output(name, begin, end), group.options)) {
          at::Tensor& target = whole[part];
          if (!target.defined()) target = OfLength(rows, place, i);
          placement_.CopyToHost(rows, target.narrow(place.axis, row, end - begin));
        }
      }
      for (const auto& [part, rows] : whole) {
        results[i][part] = FromAten(place.layout != nullptr ? rows : rows.squeeze(0));
      }
    }
  }

  // Makes room for a sequence of such rows on the host.
  at::Tensor OfLength(const at::Tensor& rows, const Place& place, size_t i) const {
    std::vector<int64_t> shape = rows.sizes().vec();
    shape[static_cast<size_t>(place.axis)] = place.length(i);
    return placement_.HostTensor(shape, rows.scalar_type());
  }

  static at::Tensor Cropped(const at::Tensor& rows, const Place& place, size_t i) {
    const at::Tensor cropped = rows.narrow(place.axis, place.start(i), place.length(i));
    return place.layout != nullptr ? cropped : cropped.squeeze(0);
  }

  void CollectPooled(const Group& group, const std::string& name, const Place& place,
                     std::vector<TensorMap>& results) {
    std::vector<at::Tensor> pooled;
    for (size_t i : group.members) {
      pooled.push_back(
          Pool(name, place.start(i), place.start(i) + place.length(i), group.options.pooling));
    }
    for (const auto& [part, vectors] : Finish(name, at::stack(pooled), group.options)) {
      const at::Tensor host = placement_.ToHost(vectors);
      for (size_t at = 0; at < group.members.size(); ++at) {
        results[group.members[at]][part] = FromAten(host.select(0, static_cast<int64_t>(at)));
      }
    }
  }

  // Makes one vector of rows [begin, end) of an output, in F32 so that means of many rows lose
  // nothing.
  at::Tensor Pool(const std::string& name, int64_t begin, int64_t end, Pooling pooling) {
    if (pooling == Pooling::kCls) return pass_.Output(name, begin, begin + 1).select(0, 0);
    if (pooling == Pooling::kLast) return pass_.Output(name, end - 1, end).select(0, 0);
    at::Tensor pooled;
    for (int64_t row = begin; row < end; row += kPooledRows) {
      look_up_();
      const at::Tensor rows = pass_.Output(name, row, std::min(end, row + kPooledRows));
      if (pooling == Pooling::kMax) {
        const at::Tensor most = rows.amax(0);
        pooled = pooled.defined() ? at::maximum(pooled, most) : most;
      } else {
        const at::Tensor sum = rows.sum(0, /*keepdim=*/false, at::kFloat);
        pooled = pooled.defined() ? pooled + sum : sum;
      }
    }
    return pooling == Pooling::kMax ? pooled : pooled / static_cast<double>(end - begin);
  }

  Pass& pass_;
  const Signature& signature_;
  const Placement& placement_;
  const std::map<char, PlacedLayout>& axes_;
  const std::vector<OutputOptions>& options_;
  const std::function<void()>& look_up_;
};

}  // namespace

std::vector<TensorMap> ResultsOf(Pass& pass, const Signature& signature, const Placement& placement,
                                 const std::map<char, PlacedLayout>& axes,
                                 const std::vector<OutputOptions>& options,
                                 const std::function<void()>& look_up) {
  return Collector(pass, signature, placement, axes, options, look_up).Results();
}

}  // namespace linserve
