// This program measures each attention function over the length n: nanoseconds a token, and the
// share that it reaches of the rate at which this machine multiplies two 2048 x 2048 matrices, one
// thread each.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstdio>

#include "attention/linear/causal_linear_attention.h"
#include "attention/linear/efficient_attention.h"
#include "attention/linear/kernel_attention.h"
#include "attention/linear/linear_attention.h"
#include "attention/linear/taylor_attention.h"
#include "attention/linformer/linformer_attention.h"
#include "attention/linformer/softmax_attention.h"
#include "attention/local/local_attention.h"
#include "attention/rows/aten.h"
#include "models/network/attention_method.h"

namespace linserve {
namespace {

constexpr int64_t kHeads = 8;
constexpr int64_t kWidth = 32;  // width of a head
constexpr int64_t kSlots = 128;
constexpr int64_t kWindow = 128;

// Returns the FLOP a second that a product of matrices reaches, the best of several.
double ProductRate() {
  static const double rate = [] {
    const at::Tensor a = at::randn({2048, 2048});
    double best = 0;
    for (int i = 0; i < 5; ++i) {
      const auto start = std::chrono::steady_clock::now();
      benchmark::DoNotOptimize(at::mm(a, a));
      const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
      best = std::max(best, 2.0 * 2048 * 2048 * 2048 / took.count());
    }
    return best;
  }();
  return rate;
}

at::Tensor Rows(int64_t length) { return at::randn({1, kHeads, length, kWidth}); }

// Measures `function` and reports its time a row; `flops` is for the whole length.
template <typename Function>
void Measure(benchmark::State& state, double flops, const Function& attend) {
  const c10::InferenceMode no_autograd;
  at::set_num_threads(1);
  const double rate = ProductRate();
  const auto start = std::chrono::steady_clock::now();
  for ([[maybe_unused]] auto iteration : state) attend();
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
  const double seconds = took.count() / static_cast<double>(state.iterations());
  std::array<char, 80> text{};
  std::snprintf(text.data(), text.size(), "%.0f ns a token, %.0f %% of the product rate",
                1e9 * seconds / static_cast<double>(state.range(0)), 100 * flops / seconds / rate);
  state.SetLabel(text.data());
}

void Method(benchmark::State& state, AttentionMethod method, bool causal) {
  const int64_t n = state.range(0);
  const at::Tensor query = Rows(n);
  const at::Tensor key = Rows(n);
  const at::Tensor value = Rows(n);
  const AttentionSizes sizes{
      .queries = n, .keys = n, .width = kWidth, .value_width = kWidth, .causal = causal};
  Measure(state, kHeads * AttentionFlops(method, sizes),
          [&] { benchmark::DoNotOptimize(Attend(method, query, key, value, {.causal = causal})); });
}

void Linear(benchmark::State& state, bool causal) {
  const int64_t n = state.range(0);
  const at::Tensor query = Rows(n);
  const at::Tensor key = Rows(n);
  const at::Tensor value = Rows(n);
  const at::Tensor out = at::empty_like(value);
  Measure(state, 4.0 * kHeads * kWidth * kWidth * static_cast<double>(n), [&] {
    if (!causal) return LinearAttention(query, key, value, {}, out);
    CausalState running;
    CausalLinearAttention(query, key, value, {}, 1, running, out);
  });
}

void Linformer(benchmark::State& state) {
  const int64_t n = state.range(0);
  const PlacedLayout layout{{.starts = {0}, .lengths = {n}, .rows = n, .padded_length = 0}};
  const at::Tensor rows = at::randn({n, kHeads * kWidth});
  // The projection is scaled as a trained one is: larger scores would be exponentials too small for
  // F32's full speed.
  const at::Tensor projection = at::randn({n, kSlots}).div_(std::sqrt(static_cast<double>(n)));
  Measure(state, 8.0 * kSlots * kHeads * kWidth * static_cast<double>(n), [&] {
    const at::Tensor keys = ProjectLength(rows, projection, layout);
    const at::Tensor values = ProjectLength(rows, projection, layout);
    benchmark::DoNotOptimize(AttendToSlots(rows, keys, values, kHeads, layout));
  });
}

void Local(benchmark::State& state) {
  const int64_t n = state.range(0);
  const at::Tensor query = Rows(n);
  const at::Tensor key = Rows(n);
  const at::Tensor value = Rows(n);
  const at::Tensor out = at::empty_like(value);
  Measure(state, 4.0 * kHeads * kWidth * LocalAttentionPairs(n, kWindow, false),
          [&] { LocalAttention(query, key, value, {}, kWindow, /*causal=*/false, out); });
}

void Lengths(benchmark::internal::Benchmark* benchmark) {
  benchmark->Arg(128)->Arg(1024)->Arg(8192)->Arg(65536)->Unit(benchmark::kMillisecond);
}

// Sets lengths that are short, since longer ones take minutes where the cost is quadratic.
void ShortLengths(benchmark::internal::Benchmark* benchmark) {
  benchmark->Arg(128)->Arg(1024)->Arg(8192)->Unit(benchmark::kMillisecond);
}

BENCHMARK_CAPTURE(Method, softmax, AttentionMethod::kSoftmax, false)->Apply(ShortLengths);
BENCHMARK_CAPTURE(Method, efficient, AttentionMethod::kEfficient, false)->Apply(Lengths);
BENCHMARK_CAPTURE(Method, elu, AttentionMethod::kKernelNormalized, false)->Apply(Lengths);
BENCHMARK_CAPTURE(Method, elu_causal, AttentionMethod::kKernelNormalized, true)->Apply(Lengths);
BENCHMARK_CAPTURE(Method, taylor, AttentionMethod::kTaylor, false)->Apply(Lengths);
BENCHMARK_CAPTURE(Method, taylor_causal, AttentionMethod::kTaylor, true)->Apply(Lengths);
BENCHMARK_CAPTURE(Linear, linear, false)->Apply(Lengths);
BENCHMARK_CAPTURE(Linear, linear_causal, true)->Apply(Lengths);
BENCHMARK(Linformer)->Apply(Lengths);
BENCHMARK(Local)->Apply(Lengths);

}  // namespace
}  // namespace linserve

BENCHMARK_MAIN();
