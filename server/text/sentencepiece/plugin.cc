#include <sentencepiece_processor.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "text/sentencepiece/functions.h"

namespace linserve {
namespace {

using sentencepiece::SentencePieceProcessor;

const SentencePieceProcessor& ProcessorOf(const void* model) {
  return *static_cast<const SentencePieceProcessor*>(model);
}

void* Load(const char* path) {
  auto processor = std::make_unique<SentencePieceProcessor>();
  return processor->Load(path).ok() ? processor.release() : nullptr;
}

void Unload(void* model) { delete static_cast<SentencePieceProcessor*>(model); }

int64_t Size(const void* model) { return ProcessorOf(model).GetPieceSize(); }
int Bos(const void* model) { return ProcessorOf(model).bos_id(); }
int Eos(const void* model) { return ProcessorOf(model).eos_id(); }

bool Encode(const void* model, const char* text, size_t bytes, PieceFunctions::Append append,
            void* sink) {
  std::vector<int> ids;
  if (!ProcessorOf(model).Encode(std::string_view(text, bytes), &ids).ok()) return false;
  append(sink, ids.data(), ids.size());
  return true;
}

bool Decode(const void* model, const int* ids, size_t count, PieceFunctions::AppendText append,
            void* sink) {
  std::string text;
  if (!ProcessorOf(model).Decode(std::vector<int>(ids, ids + count), &text).ok()) return false;
  append(sink, text.data(), text.size());
  return true;
}

}  // namespace

extern "C" __attribute__((visibility("default"))) const PieceFunctions* linserve_piece_functions() {
  static constexpr PieceFunctions kFunctions{Load, Unload, Size, Bos, Eos, Encode, Decode};
  return &kFunctions;
}

}  // namespace linserve
