#pragma once

#include <gtest/gtest.h>
#include <time.h>

#include <string>
#include <utility>
#include <vector>

#include "text/tokenizer.h"

namespace linserve {

inline std::string Repeated(const std::string& part, size_t bytes) {
  std::string text;
  text.reserve(bytes + part.size());
  while (text.size() < bytes) text += part;
  return text;
}

// Lists what texts are made of that are hard for some tokenizer: no place to cut, all unknown, much
// that is made of little, marks that are to be sorted, what is joined, removed or looked for.
inline const std::vector<std::pair<std::string, std::string>>& HardParts() {
  static const std::vector<std::pair<std::string, std::string>> parts = {
      {"one letter", "a"},
      {"two letters", "ab"},
      {"a word", "the"},
      {"words", "the server of texts "},
      {"digits", "0123456789"},
      {"spaces", " "},
      {"lines", "\n"},
      {"punctuation", "."},
      {"apostrophes", "'"},
      {"symbols of spaces", "\xE2\x96\x81"},
      {"U+FDFA", "\xEF\xB7\xBA"},
      {"marks", "\xCC\x81"},
      {"marks in the wrong order", "e\xCC\x81\xCC\xA7"},
      {"jamo", "\xE1\x84\x80\xE1\x85\xA1\xE1\x86\xA8"},
      {"emoji", "\xF0\x9F\x91\xA9\xE2\x80\x8D\xF0\x9F\x92\xBB"},
      {"joiners", "\xE2\x80\x8D"},
      {"flags", "\xF0\x9F\x87\xA9"},
      {"Chinese", "\xE4\xBD\xA0\xE5\xA5\xBD"},
      {"zero bytes", std::string(1, '\0')},
      {"dropped characters", "\xC2\xAD"},
      {"a symbol", "<sep>"},
      {"control pieces", "<s>"},
      {"added tokens", "[MASK]"},
      {"beginnings of added tokens", "[MAS"},
      {"spaces before an added token", "   [MASK]"},
      {"not one word", "<|word|>a"},
  };
  return parts;
}

// Returns the seconds of this thread, because other processes run beside the tests.
inline double SecondsFor(const Tokenizer& tokenizer, const std::string& text) {
  const auto now = [] {
    timespec time{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
  };
  const double begin = now();
  const auto ids = tokenizer.Encode(text);
  EXPECT_TRUE(ids.ok()) << ids.status();
  return now() - begin;
}

}  // namespace linserve
