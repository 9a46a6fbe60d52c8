// This program measures our kernels for other devices than the CPU, at sizes that no cache holds.
// It reports the time, and the share of it that the device's memory and matrix units need at the
// least, as both are measured here by a copy and a product. Beside each kernel it measures
// LibTorch's operators for the same, and where sequences are of one length, the library's one
// product for all of them.
//
//   kernel_bench [--device cuda:0] [--rows 65536] [Google Benchmark's options]
//   kernel_bench --plan [--rows 65536]
//
// --plan needs no device: it prints the bytes that each kernel asks for beside those that it must.
#include <ATen/ATen.h>
#include <benchmark/benchmark.h>
#include <c10/core/InferenceMode.h>
#include <c10/core/StreamGuard.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "attention/device/device_plugin.h"
#include "attention/linear/causal_linear_attention.h"
#include "attention/linear/kernel_attention.h"
#include "attention/linear/linear_attention.h"
#include "attention/linformer/linformer_attention.h"
#include "attention/rows/layout_table.h"
#include "attention/rows/spans.h"
#include "core/system/own_libraries.h"
#include "kernel_plan.h"

namespace linserve {
namespace {

constexpr int64_t kHeads = 8;
constexpr int64_t kWidth = 64;  // width of a head
constexpr int64_t kSlots = 128;

// Returns the result; the program ends at the first failure.
template <typename T>
T Checked(absl::StatusOr<T> result) {
  if (result.ok()) return *std::move(result);
  std::fprintf(stderr, "kernel_bench: %s\n", result.status().ToString().c_str());
  std::exit(1);
}

struct Device {
  const DevicePlugin* plugin;
  c10::Device device;
  c10::Stream stream;
  double bytes_per_second = 0;
  double flops_per_second = 0;

  at::TensorOptions options() const { return at::device(device).dtype(at::kBFloat16); }
};

std::optional<Device> used;
int64_t rows_in_all = 65536;

// Returns the seconds that one call takes among several.
double SecondsOf(const std::function<void()>& work) {
  constexpr int kCalls = 10;
  work();
  used->stream.synchronize();
  double best = INFINITY;
  for (int round = 0; round < 3; ++round) {
    const auto start = std::chrono::steady_clock::now();
    for (int i = 0; i < kCalls; ++i) work();
    used->stream.synchronize();
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
    best = std::min(best, took.count() / kCalls);
  }
  return best;
}

void Open(const std::string& name) {
  const size_t colon = name.find(':');
  const int64_t index = colon == std::string::npos ? 0 : std::stoll(name.substr(colon + 1));
  const auto* plugin =
      Checked(OpenDevicePlugin(name.substr(0, colon), Checked(LibraryDirectory())));
  if (index >= Checked(plugin->count())) {
    std::fprintf(stderr, "kernel_bench: there is no device %s\n", name.c_str());
    std::exit(1);
  }
  used = Device{plugin, c10::Device(plugin->type, static_cast<c10::DeviceIndex>(index)),
                plugin->take_stream(index)};
}

at::Tensor Random(at::IntArrayRef shape) { return at::randn(shape).to(used->options()); }

void MeasureDevice() {
  const int64_t elements = 8 * rows_in_all * kHeads * kWidth;
  const at::Tensor from = at::zeros({elements}, used->options());
  const at::Tensor to = at::empty_like(from);
  used->bytes_per_second =
      2 * static_cast<double>(from.nbytes()) / SecondsOf([&] { to.copy_(from); });
  const int64_t side = std::min<int64_t>(8192, rows_in_all);
  // A product of zeros takes less power, and so less time, than one of other numbers.
  const at::Tensor square = Random({side, side});
  const auto edge = static_cast<double>(side);
  used->flops_per_second = 2 * edge * edge * edge / SecondsOf([&] { at::mm(square, square); });
  std::fprintf(stderr, "%s: a copy moves %.0f GB/s, a product computes %.0f TFLOP/s\n",
               used->plugin->describe(used->device.index()).c_str(), used->bytes_per_second / 1e9,
               used->flops_per_second / 1e12);
}

// Says what a call must move and compute.
struct Work {
  double bytes;
  double flops;
};

void Measure(benchmark::State& state, const Work& work, const std::function<void()>& call) {
  double seconds = 0;
  for ([[maybe_unused]] auto iteration : state) {
    seconds = SecondsOf(call);
    state.SetIterationTime(seconds);
  }
  const double least =
      std::max(work.bytes / used->bytes_per_second, work.flops / used->flops_per_second);
  std::array<char, 96> text{};
  std::snprintf(text.data(), text.size(), "%.0f GB/s, %.1f TFLOP/s, %.0f %% of the roofline",
                work.bytes / seconds / 1e9, work.flops / seconds / 1e12, 100 * least / seconds);
  state.SetLabel(text.data());
}

// Lays out packed sequences of so many rows each.
PlacedLayout LayoutOf(int64_t length, bool with_table) {
  PlacedLayout layout;
  for (; layout.rows + length <= rows_in_all; layout.rows += length) {
    layout.starts.push_back(layout.rows);
    layout.lengths.push_back(length);
  }
  if (!with_table) return layout;
  const at::Tensor numbers = at::empty({TableSize(layout)}, at::kInt);
  WriteTable(layout, numbers.mutable_data_ptr<int32_t>());
  layout.table = std::make_shared<LayoutTable>(TableOf(layout, numbers.to(used->device)));
  return layout;
}

// Names who computes: our kernel, LibTorch's operators as attention/ has them, or the one operator
// of a library's for sequences of one length.
enum class By : uint8_t { kKernel, kOperators, kLibrary };

void Project(benchmark::State& state, By by) {
  const int64_t length = state.range(0);
  const PlacedLayout layout = LayoutOf(length, by == By::kKernel);
  const at::Tensor rows = Random({layout.rows, kHeads * kWidth});
  const at::Tensor projection = Random({length, kSlots});
  const auto values = static_cast<double>(rows.numel());
  const double slots = static_cast<double>(kSlots * layout.sequences() * kHeads * kWidth);
  Measure(state,
          {2 * (values + slots) + static_cast<double>(projection.nbytes()), 2 * values * kSlots},
          [&] {
            if (by != By::kLibrary) return void(ProjectLength(rows, projection, layout));
            at::matmul(projection.t(), rows.view({layout.sequences(), length, rows.size(1)}));
          });
}

void AttendToSome(benchmark::State& state, By by) {
  const PlacedLayout layout = LayoutOf(state.range(0), by == By::kKernel);
  const at::Tensor queries = Random({layout.rows, kHeads * kWidth});
  const at::Tensor keys = Random({layout.sequences(), kSlots, kHeads * kWidth});
  const at::Tensor values = Random(keys.sizes());
  const auto numbers = static_cast<double>(queries.numel());
  Measure(state, {4 * numbers + 2 * static_cast<double>(keys.nbytes()), 4 * numbers * kSlots}, [&] {
    if (by != By::kLibrary) return void(AttendToSlots(queries, keys, values, kHeads, layout));
    const at::Tensor each = queries.view({layout.sequences(), -1, kHeads * kWidth});
    at::scaled_dot_product_attention(SplitHeads(each, kHeads), SplitHeads(keys, kHeads),
                                     SplitHeads(values, kHeads));
  });
}

// The library's is LibTorch's product of all sequences of one length, which has the same kernel as
// for sequences of any lengths.
void AttendAmongRows(benchmark::State& state, int64_t width, bool distances, By by) {
  const PlacedLayout layout = LayoutOf(state.range(0), by == By::kKernel);
  const at::Tensor all = Random({layout.rows, 3 * kHeads * width});
  const std::vector<at::Tensor> parts = all.chunk(3, 1);
  at::Tensor added;
  if (distances) {
    added = at::randn({kHeads, 2 * (state.range(0) + kDistancesBeyond) - 1},
                      used->options().dtype(at::kFloat));
  }
  const auto numbers = static_cast<double>(layout.rows * kHeads * width);
  Measure(state, {8 * numbers, 4 * numbers * static_cast<double>(state.range(0))}, [&] {
    if (by == By::kKernel) {
      return void(used->plugin->kernels.softmax_attention(
          {.queries = parts[0],
           .keys = parts[1],
           .values = parts[2],
           .heads = kHeads,
           .layout = *layout.table,
           .scale = 1 / std::sqrt(static_cast<double>(width)),
           .distances = added}));
    }
    const auto heads = [&](const at::Tensor& rows) {
      return SplitHeads(rows.view({layout.sequences(), -1, kHeads * width}), kHeads);
    };
    at::scaled_dot_product_attention(heads(parts[0]), heads(parts[1]), heads(parts[2]));
  });
}

// Adds positions to rows of the width of all heads, turns them, norms them, or pools them.
void ComputeRows(benchmark::State& state, const std::string& what) {
  const DeviceKernels& kernels = used->plugin->kernels;
  const PlacedLayout layout = LayoutOf(state.range(0), /*with_table=*/true);
  const at::Tensor rows = Random({layout.rows, kHeads * kWidth});
  const auto bytes = static_cast<double>(rows.nbytes());
  const at::TensorOptions floats = used->options().dtype(at::kFloat);
  if (what == "add_positions") {
    const at::Tensor table = at::randn({state.range(0), kHeads * kWidth}, floats);
    return Measure(state, {2 * bytes, 0},
                   [&] { kernels.add_positions(rows, table, layout.table->positions); });
  }
  if (what == "rotate") {
    const at::Tensor table = at::randn({state.range(0), kWidth}, floats);
    return Measure(state, {2 * bytes, 0},
                   [&] { kernels.rotate(rows, kHeads, table, layout.table->positions); });
  }
  if (what == "norm") {
    const at::Tensor weight = Random({kHeads * kWidth});
    const RowNorm norm{.weight = weight, .bias = weight, .lacking = weight, .epsilon = 1e-5};
    return Measure(state, {2 * bytes, 0}, [&] { kernels.norm(rows, norm); });
  }
  const RowsToPool which{.starts = layout.table->starts,
                         .counts = layout.table->lengths,
                         .chosen = {},
                         .largest = false};
  Measure(state, {bytes, 0}, [&] { kernels.pool(rows, which); });
}

struct Form {
  bool elu;
  bool causal;
};

void ByOperators(const Form& form, const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                 const at::Tensor& out) {
  if (form.elu) {
    out.copy_(KernelAttention(q, k, v, {.causal = form.causal}, /*normalize=*/true));
  } else if (form.causal) {
    CausalState nothing;
    CausalLinearAttention(q, k, v, {}, 1, nothing, out);
  } else {
    LinearAttention(q, k, v, {}, out);
  }
}

void AttendLinearly(benchmark::State& state, const Form& form, bool ours) {
  const PlacedLayout layout = LayoutOf(state.range(0), /*with_table=*/true);
  const at::Tensor queries = Random({layout.rows, kHeads * kWidth});
  const at::Tensor keys = Random(queries.sizes());
  const at::Tensor values = Random(queries.sizes());
  const at::Tensor out = at::empty_like(queries);
  const auto heads = [&](const at::Tensor& rows) {
    return SplitHeads(View(rows, Spans(layout).front()), kHeads);
  };
  std::optional<double> floor;
  if (form.elu) floor = KernelForm(/*normalize=*/true).floor;
  if (!form.elu && form.causal) floor = kCausalFloor;
  const auto numbers = static_cast<double>(queries.numel());
  Measure(state, {4 * 2 * numbers, (form.causal ? 8 : 4) * numbers * kWidth}, [&] {
    if (!ours) return ByOperators(form, heads(queries), heads(keys), heads(values), heads(out));
    const bool taken = used->plugin->kernels.linear_attention({.queries = queries,
                                                               .keys = keys,
                                                               .values = values,
                                                               .mask = {},
                                                               .heads = kHeads,
                                                               .layout = *layout.table,
                                                               .key_layout = *layout.table,
                                                               .elu = form.elu,
                                                               .causal = form.causal,
                                                               .bucket = 1,
                                                               .floor = floor},
                                                              out);
    if (!taken) state.SkipWithError("the device's kernel does not take these");
  });
}

void Register() {
  const int64_t longest = std::min<int64_t>(8192, rows_in_all);
  std::vector<int64_t> lengths = {longest / 16, longest};
  const auto add = [&](const std::string& name, const std::vector<By>& all, const auto& function) {
    for (const By by : all) {
      const char* who = by == By::kKernel      ? "/kernel"
                        : by == By::kOperators ? "/operators"
                                               : "/library";
      auto* benchmark = benchmark::RegisterBenchmark(
          (name + who).c_str(), [=](benchmark::State& state) { function(state, by); });
      for (const int64_t length : lengths) benchmark->Arg(length);
      benchmark->ArgName("length");
      benchmark->UseManualTime()->Unit(benchmark::kMicrosecond)->Iterations(1);
    }
  };
  const std::vector<By> ragged = {By::kKernel, By::kOperators};
  const std::vector<By> all = {By::kKernel, By::kOperators, By::kLibrary};
  add("project_length", all, Project);
  add("attend_to_slots", all, AttendToSome);
  lengths = {64, 256};  // longer ones may be left to the library
  for (const int64_t width : {int64_t{32}, kWidth}) {
    for (const bool distances : {false, true}) {
      add("softmax_attention/" + std::to_string(width) + (distances ? "/distances" : ""),
          distances ? std::vector<By>{By::kKernel} : std::vector<By>{By::kKernel, By::kLibrary},
          [=](benchmark::State& state, By by) { AttendAmongRows(state, width, distances, by); });
    }
  }
  lengths = {longest / 16, longest};
  for (const char* what : {"add_positions", "rotate", "norm", "pool"}) {
    add(what, {By::kKernel}, [=](benchmark::State& state, By) { ComputeRows(state, what); });
  }
  for (const bool elu : {false, true}) {
    for (const bool causal : {false, true}) {
      const std::string features = elu ? "elu" : "softmax";
      add("linear_attention/" + features + (causal ? "/causal" : ""), ragged,
          [=](benchmark::State& state, By by) {
            AttendLinearly(state, {elu, causal}, by == By::kKernel);
          });
    }
  }
}

int Run(int argc, char** argv) {
  std::string device = "cuda:0";
  bool plan = false;
  // These arguments are not Google Benchmark's.
  int left = 1;
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    if (argument == "--device" && i + 1 < argc) {
      device = argv[++i];
    } else if (argument == "--rows" && i + 1 < argc) {
      rows_in_all = std::max<int64_t>(1024, std::atoll(argv[++i]));
    } else if (argument == "--plan") {
      plan = true;
    } else {
      argv[left++] = argv[i];
    }
  }
  if (plan) {
    const int64_t longest = std::min<int64_t>(8192, rows_in_all);
    for (const int64_t length : {longest / 16, longest}) {
      PrintPlans(rows_in_all, length, kHeads, kWidth, kSlots);
    }
    return 0;
  }
  benchmark::Initialize(&left, argv);
  if (benchmark::ReportUnrecognizedArguments(left, argv)) return 2;
  Open(device);
  const c10::InferenceMode no_autograd;
  const c10::StreamGuard guard(used->stream);
  MeasureDevice();
  Register();
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}

}  // namespace
}  // namespace linserve

int main(int argc, char** argv) { return linserve::Run(argc, argv); }
