// This program computes one token of each of several sessions as one step. It measures the time of
// a step and the tokens a second, over the number of sessions and the position that they have come
// to.
#include <benchmark/benchmark.h>
#include <malloc.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "batching/padder.h"
#include "engine/model.h"
#include "models/init_model.h"
#include "models/model_loader.h"

namespace linserve {
namespace {

struct Benched {
  const char* architecture;
  const char* params;
};

constexpr Benched kElu = {"linserve.Encoder",
                          R"({"dim": 512, "depth": 6, "heads": 8, "num_tokens": 1000,
                              "causal": true, "attention": "elu", "positions": "rotary"})"};
constexpr Benched kLat = {"linear_attention_transformer.LinearAttentionTransformerLM",
                          R"({"dim": 512, "depth": 6, "heads": 8, "num_tokens": 1000,
                              "causal": true, "max_seq_len": 131072, "use_rotary_emb": true,
                              "blindspot_size": 2, "shift_tokens": true})"};
constexpr Benched kLatLocal = {"linear_attention_transformer.LinearAttentionTransformerLM",
                               R"({"dim": 512, "depth": 6, "heads": 8, "num_tokens": 1000,
                                   "causal": true, "max_seq_len": 131072, "use_rotary_emb": true,
                                   "n_local_attn_heads": 4, "local_attn_window_size": 128})"};

Item Chunk(int64_t length, std::shared_ptr<SessionState> session) {
  Item item;
  item.inputs["x"] =
      Tensor::FromInts({length}, std::vector<int64_t>(static_cast<size_t>(length), 7));
  item.session = std::move(session);
  return item;
}

// Returns the result; the program ends at the first failure.
template <typename T>
T Checked(absl::StatusOr<T> result) {
  if (result.ok()) return *std::move(result);
  std::fprintf(stderr, "%s\n", result.status().ToString().c_str());
  std::exit(1);
}

void Compute(Model& model, const std::vector<Item>& items) {
  std::vector<const Item*> pointers;
  for (const Item& item : items) pointers.push_back(&item);
  const Padder padder(model.info().signature, Padding::kPacked);
  const auto forward = Checked(model.Start(padder.Pad(pointers)));
  while (!Checked(forward->Advance())) {
  }
  benchmark::DoNotOptimize(Checked(forward->TakeResults()));
}

std::unique_ptr<Model> Make(const Benched& benched, const std::string& dtype) {
  const auto directory = std::filesystem::temp_directory_path() / "linserve_session_bench";
  std::filesystem::remove_all(directory);
  const absl::Status made = InitModel(benched.architecture, benched.params, 1, directory.string());
  if (!made.ok()) std::fprintf(stderr, "%s\n", made.ToString().c_str());
  return Checked(LoadModel(directory.string(), {.dtype = dtype, .threads = 1}));
}

// Makes a session that has read so many rows.
std::shared_ptr<SessionState> SessionAt(Model& model, int64_t position) {
  constexpr int64_t kRowsOfChunk = 2000;
  auto session = Checked(model.info().sessions->New());
  while (session->position() < position) {
    Compute(model, {Chunk(std::min(kRowsOfChunk, position - session->position()), session)});
  }
  return session;
}

void Step(benchmark::State& state, const Benched& benched, const char* dtype) {
  const auto model = Make(benched, dtype);
  const std::string saved = Checked(model->Save(*SessionAt(*model, 100)));
  std::vector<Item> items;
  for (int64_t i = 0; i < state.range(0); ++i) {
    items.push_back(Chunk(1, Checked(model->info().sessions->Restore(saved))));
  }
  for (int i = 0; i < 3; ++i) Compute(*model, items);
  for ([[maybe_unused]] auto iteration : state) Compute(*model, items);
  state.SetItemsProcessed(state.iterations() * state.range(0));
  state.counters["session_bytes"] = static_cast<double>(model->info().session_bytes);
}

double Milliseconds(Model& model, const std::vector<Item>& items) {
  const auto start = std::chrono::steady_clock::now();
  Compute(model, items);
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start)
      .count();
}

double Median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

// Computes a token of a session near the beginning and one of a session far from it, in turns.
void Position(benchmark::State& state, const Benched& benched, const char* dtype) {
  const auto model = Make(benched, dtype);
  const std::vector<Item> near = {Chunk(1, SessionAt(*model, 100))};
  const std::vector<Item> far = {Chunk(1, SessionAt(*model, state.range(0)))};
  std::vector<double> near_times;
  std::vector<double> far_times;
  for ([[maybe_unused]] auto iteration : state) {
    near_times.push_back(Milliseconds(*model, near));
    far_times.push_back(Milliseconds(*model, far));
  }
  state.counters["at_100_ms"] = Median(near_times);
  state.counters["far_ms"] = Median(far_times);
  state.counters["far_over_100"] = Median(far_times) / Median(near_times);
}

void Sizes(benchmark::internal::Benchmark* benchmark) {
  benchmark->ArgName("sessions")->Unit(benchmark::kMillisecond)->UseRealTime();
  for (const int64_t sessions : {1, 8, 64}) benchmark->Arg(sessions);
}

void Positions(benchmark::internal::Benchmark* benchmark) {
  benchmark->ArgName("position")->Unit(benchmark::kMillisecond)->UseRealTime();
  benchmark->Arg(100'000)->Iterations(300);
}

BENCHMARK_CAPTURE(Step, elu, kElu, "f32")->Apply(Sizes);
BENCHMARK_CAPTURE(Step, elu_bf16, kElu, "bf16")->Apply(Sizes);
BENCHMARK_CAPTURE(Step, lat, kLat, "f32")->Apply(Sizes);
BENCHMARK_CAPTURE(Step, lat_local, kLatLocal, "f32")->Apply(Sizes);
BENCHMARK_CAPTURE(Position, elu, kElu, "f32")->Apply(Positions);
BENCHMARK_CAPTURE(Position, lat, kLat, "f32")->Apply(Positions);
BENCHMARK_CAPTURE(Position, lat_local, kLatLocal, "f32")->Apply(Positions);

}  // namespace
}  // namespace linserve

int main(int argc, char** argv) {
  // linserve sets this, too: memory that is used again costs no page faults.
  constexpr int kLargest = 1 << 30;
  mallopt(M_MMAP_THRESHOLD, kLargest);
  mallopt(M_TRIM_THRESHOLD, kLargest);
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
}
