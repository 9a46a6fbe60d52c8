// This program turns lines into token ids, for tests and benchmarks that compare them with those of
// the package `tokenizers`.
//
//   encode_lines TOKENIZER [--places | --decode | --pairs | --time SECONDS] <LINES
//
// TOKENIZER is a tokenizer.json, a vocab.txt, a vocab.json or a tokenizer.model. Each line of LINES
// is a text as JSON has it, in quotes. For each one it prints the ids with spaces between, or "! "
// and why there are none; with --places each id is followed by :BEGIN:END, or by nothing if it is a
// mark. With --decode a line is a JSON array of ids, and what it prints is a JSON text. With
// --pairs a line is a JSON array of two texts that are read together, how they are truncated
// ("none", "left" or "right") and to how many ids, 0 for any; each id is followed by :TYPE if it
// has one. With --time nothing is printed but the bytes and the ids of one go, and the seconds that
// the quickest of all goes took that fit into SECONDS.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "text/huggingface/json_tokenizer.h"
#include "text/sentencepiece/piece_tokenizer.h"
#include "text/text_encoding.h"

namespace linserve {
namespace {

using nlohmann::json;

absl::StatusOr<std::shared_ptr<const Tokenizer>> Load(const std::string& path) {
  if (path.ends_with("vocab.json")) return LoadVocabularyObject(path);
  if (path.ends_with(".json")) return LoadTokenizerJson(path);
  if (path.ends_with(".txt")) return LoadVocabularyLines(path);
  return LoadSentencePiece(path);
}

void Print(const absl::Status& refused) {
  std::printf("! %s\n", std::string(refused.message()).c_str());
}

void PrintIds(const Tokenizer& tokenizer, const std::string& text) {
  const auto ids = tokenizer.Encode(text);
  if (!ids.ok()) return Print(ids.status());
  for (const int64_t id : *ids) std::printf("%lld ", static_cast<long long>(id));
  std::printf("\n");
}

// Reads all in short turns.
absl::Status Finish(TextEncoding& encoding) {
  while (!encoding.done()) {
    size_t budget = 1000;
    if (absl::Status status = encoding.Advance(budget); !status.ok()) return status;
  }
  return encoding.Finish();
}

void PrintPlaces(const Tokenizer& tokenizer, const std::string& text) {
  TextEncoding encoding(tokenizer, text, /*marks=*/true);
  if (const absl::Status status = Finish(encoding); !status.ok()) return Print(status);
  for (size_t i = 0; i < encoding.ids().size(); ++i) {
    const TokenPlace& place = encoding.places()[i];
    std::printf("%lld", static_cast<long long>(encoding.ids()[i]));
    if (!place.is_mark) std::printf(":%zu:%zu", place.begin, place.end);
    std::printf(" ");
  }
  std::printf("\n");
}

void PrintPair(const Tokenizer& tokenizer, const json& pair) {
  if (!tokenizer.pair()) return Print(absl::InvalidArgumentError("it reads no pairs"));
  const auto first = pair[0].get<std::string>();
  const auto second = pair[1].get<std::string>();
  TextEncoding encoding(tokenizer, first, second,
                        TruncationFromName(pair[2].get<std::string>()).value(),
                        pair[3].get<int64_t>());
  if (const absl::Status status = Finish(encoding); !status.ok()) return Print(status);
  for (size_t i = 0; i < encoding.ids().size(); ++i) {
    std::printf("%lld", static_cast<long long>(encoding.ids()[i]));
    if (!encoding.types().empty()) {
      std::printf(":%lld", static_cast<long long>(encoding.types()[i]));
    }
    std::printf(" ");
  }
  std::printf("\n");
}

void PrintDecoded(const Tokenizer& tokenizer, const json& ids) {
  const auto text = tokenizer.Decode(ids.get<std::vector<int64_t>>());
  if (!text.ok()) return Print(text.status());
  std::printf("%s\n", json(*text).dump().c_str());
}

void PrintTime(const Tokenizer& tokenizer, const std::vector<std::string>& texts, double limit) {
  using Clock = std::chrono::steady_clock;
  const auto begin = Clock::now();
  double best = std::numeric_limits<double>::max();
  size_t ids = 0;
  size_t bytes = 0;
  for (const std::string& text : texts) bytes += text.size();
  do {
    const auto start = Clock::now();
    ids = 0;
    for (const std::string& text : texts) ids += tokenizer.Encode(text)->size();
    best = std::min(best, std::chrono::duration<double>(Clock::now() - start).count());
  } while (std::chrono::duration<double>(Clock::now() - begin).count() < limit);
  std::printf("%zu %zu %.6f\n", bytes, ids, best);
}

int Main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr,
                 "usage: encode_lines TOKENIZER [--places|--decode|--pairs|--time SECONDS] "
                 "<LINES\n");
    return 2;
  }
  const auto loaded = Load(argv[1]);
  if (!loaded.ok()) {
    std::fprintf(stderr, "encode_lines: %s\n", std::string(loaded.status().message()).c_str());
    return 1;
  }
  const std::string mode = argc > 2 ? argv[2] : "";
  std::vector<std::string> texts;
  for (std::string line; std::getline(std::cin, line);) {
    const json value = json::parse(line);
    if (mode == "--decode") {
      PrintDecoded(**loaded, value);
    } else if (mode == "--places") {
      PrintPlaces(**loaded, value.get<std::string>());
    } else if (mode == "--pairs") {
      PrintPair(**loaded, value);
    } else if (mode == "--time") {
      texts.push_back(value.get<std::string>());
    } else {
      PrintIds(**loaded, value.get<std::string>());
    }
  }
  if (mode == "--time") PrintTime(**loaded, texts, argc > 3 ? std::atof(argv[3]) : 1);
  return 0;
}

}  // namespace
}  // namespace linserve

int main(int argc, char** argv) { return linserve::Main(argc, argv); }
