#include "client/files/passages.h"

#include <algorithm>
#include <utility>

namespace linserve {
namespace {

constexpr size_t kHeading = 40;  // bytes: a paragraph no longer than that goes with the next one

struct Word {
  size_t line = 0;
  std::string_view text;
};

bool EndsSentence(std::string_view word) {
  return word.ends_with('.') || word.ends_with('!') || word.ends_with('?') || word.ends_with(':');
}

// Adds the words of one line.
void AddWords(std::string_view line, size_t number, std::vector<Word>& words) {
  constexpr std::string_view kBlank = " \t\r\f\v";
  while (true) {
    line.remove_prefix(std::min(line.find_first_not_of(kBlank), line.size()));
    if (line.empty()) return;
    const std::string_view word = line.substr(0, line.find_first_of(kBlank));
    words.push_back({number, word});
    line.remove_prefix(word.size());
  }
}

std::vector<std::vector<Word>> Paragraphs(std::string_view text) {
  std::vector<std::vector<Word>> paragraphs(1);
  for (size_t number = 1; !text.empty(); ++number) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    const size_t before = paragraphs.back().size();
    AddWords(line, number, paragraphs.back());
    if (paragraphs.back().size() == before && before > 0) paragraphs.emplace_back();
  }
  if (paragraphs.back().empty()) paragraphs.pop_back();
  return paragraphs;
}

// Returns how many of the words from `begin` on make a passage: all that fit, up to the last
// sentence that ends among them.
size_t Fitting(const std::vector<Word>& words, size_t begin, size_t longest) {
  size_t bytes = 0;
  size_t sentence = 0;
  for (size_t i = begin; i < words.size(); ++i) {
    bytes += words[i].text.size() + 1;
    if (bytes > longest && i > begin) return sentence > 0 ? sentence : i - begin;
    if (EndsSentence(words[i].text)) sentence = i - begin + 1;
  }
  return words.size() - begin;
}

}  // namespace

std::vector<Passage> CutIntoPassages(std::string_view text, size_t longest) {
  std::vector<Passage> passages;
  bool heading = false;  // the last passage is one
  for (const std::vector<Word>& words : Paragraphs(text)) {
    for (size_t begin = 0; begin < words.size();) {
      const size_t count = Fitting(words, begin, longest);
      if (!heading) passages.push_back({words[begin].line, {}});
      std::string& passage = passages.back().text;
      for (size_t i = begin; i < begin + count; ++i) {
        passage += (passage.empty() ? "" : " ") + std::string(words[i].text);
      }
      begin += count;
      heading = begin == words.size() && passage.size() <= kHeading;
    }
  }
  return passages;
}

}  // namespace linserve
