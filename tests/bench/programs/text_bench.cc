// This program measures how long texts take to become token ids, and how much memory they need
// meanwhile: ordinary ones, and those that are hard for some way to choose pieces. Time and memory
// must be in proportion to a text's bytes, so that one part's bytes_per_second and held/byte are
// about the same at all lengths.
//
//   text_bench MODEL [Google Benchmark's options]
//
// MODEL is a tokenizer.model, such as deploy/models/sentence-encoder/1/tokenizer.model, or a
// tokenizer.json.
#include <benchmark/benchmark.h>
#include <malloc.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <new>
#include <string>
#include <utility>

#include "text/huggingface/json_tokenizer.h"
#include "text/sentencepiece/piece_tokenizer.h"
#include "text/text_encoding.h"

namespace {

size_t held = 0;  // bytes that are allocated now
size_t most_held = 0;

}  // namespace

// These count what is allocated. The program has one thread. They are not inlined, because the
// compiler would take malloc() and a delete for a mismatch.
[[gnu::noinline]] void* operator new(size_t bytes) {
  void* const block = std::malloc(bytes);
  if (block == nullptr) throw std::bad_alloc();
  held += malloc_usable_size(block);
  most_held = std::max(most_held, held);
  return block;
}
[[gnu::noinline]] void operator delete(void* block) noexcept {
  held -= malloc_usable_size(block);
  std::free(block);
}
[[gnu::noinline]] void operator delete(void* block, size_t /*bytes*/) noexcept {
  operator delete(block);
}

namespace linserve {
namespace {

void Encode(benchmark::State& state, const Tokenizer& tokenizer, const std::string& part) {
  const auto bytes = static_cast<size_t>(state.range(0));
  std::string text;
  while (text.size() < bytes) text += part;
  size_t peak = 0;
  size_t ids = 0;
  for (auto _ : state) {
    const size_t before = most_held = held;
    TextEncoding encoding(tokenizer, text, Truncation::kNone, 0);
    while (!encoding.done()) {
      size_t budget = 32 << 10;
      if (!encoding.Advance(budget).ok()) return state.SkipWithError("not UTF-8");
    }
    ids = encoding.ids().size();
    peak = most_held - before;
  }
  const auto per_byte = [&text](double count) { return count / static_cast<double>(text.size()); };
  state.counters["ids/byte"] = per_byte(static_cast<double>(ids));
  state.counters["held/byte"] = per_byte(static_cast<double>(peak));
  state.SetBytesProcessed(static_cast<int64_t>(state.iterations()) *
                          static_cast<int64_t>(text.size()));
}

void Register(const Tokenizer& tokenizer) {
  const std::pair<const char*, std::string> parts[] = {
      {"words", "the server of texts answers "},
      {"a", "a"},
      {"ab", "ab"},
      {"digits", "0123456789"},
      {"spaces", " "},
      {"space_symbols", "\xE2\x96\x81"},
      {"U+FDFA", "\xEF\xB7\xBA"},
      {"marks", "\xCC\x81"},
      {"jamo", "\xE1\x84\x80\xE1\x85\xA1\xE1\x86\xA8"},
      {"emoji", "\xF0\x9F\x91\xA9\xE2\x80\x8D\xF0\x9F\x92\xBB"},
      {"Chinese", "\xE4\xBD\xA0\xE5\xA5\xBD"},
  };
  for (const auto& [name, part] : parts) {
    benchmark::RegisterBenchmark(
        name,
        [&tokenizer, text = part](benchmark::State& state) { Encode(state, tokenizer, text); })
        ->RangeMultiplier(4)
        ->Range(64 << 10, 1 << 20)
        ->Unit(benchmark::kMillisecond);
  }
}

}  // namespace
}  // namespace linserve

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  const std::string path = argc > 1 ? argv[1] : "";
  const auto tokenizer = path.ends_with(".json") ? linserve::LoadTokenizerJson(path)
                                                 : linserve::LoadSentencePiece(path);
  if (!tokenizer.ok()) {
    std::fprintf(stderr, "text_bench: %s\n", tokenizer.status().ToString().c_str());
    return 1;
  }
  linserve::Register(**tokenizer);
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
