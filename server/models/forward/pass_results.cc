#include "models/forward/pass_results.h"

#include <algorithm>
#include <numeric>

#include "attention/device/device_plugin.h"
#include "attention/rows/aten.h"
#include "models/forward/result_rows.h"
#include "models/placement/tensor_bridge.h"

namespace linserve {
namespace {

// So many elements of an output are computed at once: 64 MiB in F32.
constexpr int64_t kElementsAtOnce = int64_t{16} << 20;
constexpr int64_t kPooledRows = 1024;

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

std::vector<Group> GroupByOptions(const std::vector<Wanted>& wanted) {
  std::vector<Group> groups;
  for (size_t i = 0; i < wanted.size(); ++i) {
    if (groups.empty() || groups.back().options != wanted[i].options) {
      groups.push_back({wanted[i].options, {}});
    }
    groups.back().members.push_back(i);
  }
  return groups;
}

class Collector {
 public:
  Collector(Pass& pass, const Signature& signature, const Placement& placement,
            const std::map<char, PlacedLayout>& axes, const std::vector<Wanted>& wanted,
            const std::function<void()>& look_up)
      : pass_(pass),
        signature_(signature),
        placement_(placement),
        axes_(axes),
        wanted_(wanted),
        look_up_(look_up) {}

  std::vector<TensorMap> Results() {
    std::vector<TensorMap> results(wanted_.size());
    for (const Group& group : GroupByOptions(wanted_)) {
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
    const OutputSpec& output = *signature_.FindOutput(name);
    const Place place = PlaceOf(output);
    // A vector is what its pooling gives.
    if (group.options.pooling == Pooling::kNone || output.IsVector()) {
      CollectRows(group, output, place, results);
    } else {
      CollectPooled(group, name, place, results);
    }
  }

  // Holds the rows [begin, end) of an output.
  struct Range {
    int64_t begin;
    int64_t end;

    int64_t rows() const { return end - begin; }
  };

  // Returns where a group's sequences lie, which are neighbours.
  static Range RangeOf(const Group& group, const Place& place) {
    const size_t last = group.members.back();
    return {place.start(group.members.front()), place.start(last) + place.length(last)};
  }

  // Computes a whole group at once where that takes little memory, else so many rows at a time into
  // the sequences' own tensors: of logits no more exist in the type of the computation.
  void CollectRows(const Group& group, const OutputSpec& output, const Place& place,
                   std::vector<TensorMap>& results) {
    const std::string& name = output.name;
    const Range all = RangeOf(group, place);
    const at::Tensor first = pass_.Output(name, all.begin, all.begin + 1);
    const int64_t most =
        std::max<int64_t>(1, kElementsAtOnce / std::max<int64_t>(first.numel(), 1));
    if (all.rows() <= most || IsFinished(first, all.rows(), group.options)) {
      for (const auto& [part, rows] :
           Finish(name, pass_.Output(name, all.begin, all.end), group.options)) {
        const at::Tensor host = placement_.ToHost(rows);
        for (size_t i : group.members) {
          results[i][part] =
              FromAtenApart(Given(Cropped(host, all.begin, place, i), output, place, i));
        }
      }
      return;
    }
    for (size_t i : group.members) {
      ResultParts whole;
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
        results[i][part] =
            FromAten(Given(place.layout != nullptr ? rows : rows.squeeze(0), output, place, i));
      }
    }
  }

  // Makes room for a sequence of such rows on the host.
  at::Tensor OfLength(const at::Tensor& rows, const Place& place, size_t i) const {
    std::vector<int64_t> shape = rows.sizes().vec();
    shape[static_cast<size_t>(place.axis)] = place.length(i);
    return placement_.HostTensor(shape, rows.scalar_type());
  }

  // Returns a sequence's part of rows, the first one of which is the output's row `begin`.
  static at::Tensor Cropped(const at::Tensor& rows, int64_t begin, const Place& place, size_t i) {
    const at::Tensor cropped = rows.narrow(place.axis, place.start(i) - begin, place.length(i));
    return place.layout != nullptr ? cropped : cropped.squeeze(0);
  }

  // Returns the rows of a sequence that are in its result.
  at::Tensor Given(const at::Tensor& rows, const OutputSpec& output, const Place& place,
                   size_t i) const {
    if (!output.leaves_out || !wanted_[i].masks.contains(output.name)) return rows;
    return rows.index_select(0, at::tensor(RowsOf(output.name, place, i), at::kLong));
  }

  void CollectPooled(const Group& group, const std::string& name, const Place& place,
                     std::vector<TensorMap>& results) {
    at::Tensor pooled = PoolOnDevice(group, name, place);
    if (!pooled.defined()) {
      std::vector<at::Tensor> each;
      for (size_t i : group.members) {
        const Pooling pooling = group.options.pooling;
        each.push_back(Pool(name, place.start(i), PooledRows(name, place, i, pooling), pooling));
      }
      pooled = each.size() == 1 ? each[0].unsqueeze(0) : at::stack(each);
    }
    for (const auto& [part, vectors] : Finish(name, pooled, group.options)) {
      const at::Tensor all = placement_.ToHost(vectors);
      for (int64_t row = 0; const size_t member : group.members) {
        results[member][part] = FromAtenApart(all.select(0, row++));
      }
    }
  }

  // Pools all sequences of the group by one kernel of the device: F32 [members, width]. An
  // undefined tensor says that there is none, or that their rows would take too much memory.
  at::Tensor PoolOnDevice(const Group& group, const std::string& name, const Place& place) {
    constexpr int64_t kMostElements = int64_t{1} << 27;
    if (placement_.on_host() || place.layout == nullptr || place.axis != 0) return {};
    const Range all = RangeOf(group, place);
    const at::Tensor first = pass_.Output(name, all.begin, all.begin + 1);
    const auto kernel = KernelsFor(first).pool;
    if (kernel == nullptr || all.rows() * first.numel() > kMostElements) return {};
    const bool some = std::any_of(group.members.begin(), group.members.end(),
                                  [&](size_t i) { return wanted_[i].masks.contains(name); });
    std::vector<int64_t> starts;
    std::vector<int64_t> counts;
    std::vector<int64_t> chosen;
    for (const size_t i : group.members) {
      const std::vector<int64_t> rows = PooledRows(name, place, i, group.options.pooling);
      const int64_t start = place.start(i) - all.begin;
      counts.push_back(std::ssize(rows));
      starts.push_back(some ? std::ssize(chosen) : start + rows.front());
      if (!some) continue;
      for (const int64_t row : rows) chosen.push_back(start + row);
    }
    const std::vector<at::Tensor> numbers = ToDevice({starts, counts, chosen});
    return kernel(pass_.Output(name, all.begin, all.end),
                  {.starts = numbers[0],
                   .counts = numbers[1],
                   .chosen = some ? numbers[2] : at::Tensor(),
                   .largest = group.options.pooling == Pooling::kMax});
  }

  // Brings lists of numbers to the device by one copy, as I32.
  std::vector<at::Tensor> ToDevice(const std::vector<std::vector<int64_t>>& lists) const {
    std::vector<int64_t> sizes;
    for (const auto& list : lists) sizes.push_back(std::ssize(list));
    const at::Tensor host =
        placement_.HostTensor({std::reduce(sizes.begin(), sizes.end())}, at::kInt);
    auto* next = host.mutable_data_ptr<int32_t>();
    for (const auto& list : lists) next = std::copy(list.begin(), list.end(), next);
    return placement_.ToDevice(host).split_with_sizes(sizes);
  }

  // Returns the rows of a sequence that its vector is made of, counted from its first one.
  std::vector<int64_t> PooledRows(const std::string& name, const Place& place, size_t i,
                                  Pooling pooling) const {
    std::vector<int64_t> rows = RowsOf(name, place, i);
    if (pooling == Pooling::kCls) rows.resize(1);
    if (pooling == Pooling::kLast) rows = {rows.back()};
    return rows;
  }

  // Returns the rows of a sequence that are there, counted from its first one.
  std::vector<int64_t> RowsOf(const std::string& name, const Place& place, size_t i) const {
    const auto mask = wanted_[i].masks.find(name);
    if (mask != wanted_[i].masks.end()) return mask->second.Rows(place.length(i));
    std::vector<int64_t> rows(static_cast<size_t>(place.length(i)));
    std::iota(rows.begin(), rows.end(), 0);
    return rows;
  }

  // Makes one vector of the rows of an output that lie so far behind `begin`, in F32 so that means
  // of many rows lose nothing.
  at::Tensor Pool(const std::string& name, int64_t begin, const std::vector<int64_t>& rows,
                  Pooling pooling) {
    at::Tensor pooled;
    for (auto row = rows.begin(); row != rows.end();) {
      look_up_();
      const auto end = std::lower_bound(row, rows.end(), *row + kPooledRows);
      const at::Tensor some = OutputRows(name, begin, {row, end});
      row = end;
      if (pooling == Pooling::kMean) {
        if (!pooled.defined()) {
          pooled = at::zeros(some.sizes().slice(1), some.options().dtype(at::kFloat));
        }
        AddUp(some, pooled);
      } else {
        const at::Tensor most = some.amax(0);
        pooled = pooled.defined() ? at::maximum(pooled, most) : most;
      }
    }
    if (pooling == Pooling::kMean) Divide(pooled, std::ssize(rows));
    return pooled;
  }

  // Returns some rows of an output, ascending and counted from `begin`.
  at::Tensor OutputRows(const std::string& name, int64_t begin, std::vector<int64_t> rows) {
    const int64_t first = rows.front();
    at::Tensor all = pass_.Output(name, begin + first, begin + rows.back() + 1);
    if (std::ssize(rows) == rows.back() + 1 - first) return all;
    const at::Tensor chosen = placement_.HostTensor({std::ssize(rows)}, at::kLong);
    std::transform(rows.begin(), rows.end(), chosen.mutable_data_ptr<int64_t>(),
                   [first](int64_t row) { return row - first; });
    return all.index_select(0, placement_.ToDevice(chosen));
  }

  Pass& pass_;
  const Signature& signature_;
  const Placement& placement_;
  const std::map<char, PlacedLayout>& axes_;
  const std::vector<Wanted>& wanted_;
  const std::function<void()>& look_up_;
};

}  // namespace

std::vector<Wanted> WantedOf(const Signature& signature, const Batch& batch) {
  std::vector<Wanted> wanted;
  for (const OutputOptions& options : batch.options) wanted.push_back({options});
  for (const OutputSpec& output : signature.outputs) {
    if (!output.HasRows()) continue;
    const auto mask = RowMask::Of(signature, output, batch.inputs);
    if (!mask) continue;
    const AxisLayout& layout = batch.axes.at(mask->spec->axes[0].letter);
    for (size_t i = 0; i < wanted.size(); ++i) {
      wanted[i].masks.emplace(output.name, RowMask{mask->spec, Crop(layout, mask->places, i)});
    }
  }
  return wanted;
}

std::vector<TensorMap> ResultsOf(Pass& pass, const Signature& signature, const Placement& placement,
                                 const std::map<char, PlacedLayout>& axes,
                                 const std::vector<Wanted>& wanted,
                                 const std::function<void()>& look_up) {
  return Collector(pass, signature, placement, axes, wanted, look_up).Results();
}

}  // namespace linserve
