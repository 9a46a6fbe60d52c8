#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace linserve {

// Says how queries are filled up with tokens that have rows of their own.
struct QueryExpansion {
  int64_t length = 0;     // so many tokens a query has
  bool at_least = false;  // or more, if it is longer by itself
  bool attended = false;  // other tokens see them
  std::string token{};    // what fills it; "": the tokenizer's mask or, without one, its end
};

// Says how a late-interaction model reads texts, as its folder has it: a query in another way than
// a document. The rows of both are compared with each other.
struct LateInteraction {
  int64_t query_tokens = 0;     // that a query may have; 0: as many as any text
  int64_t document_tokens = 0;  // that a document may have
  std::optional<QueryExpansion> expansion{};
  std::vector<std::string> skipped{};  // tokens whose rows do not count
  bool skips_in_queries = false;
  bool skips_in_documents = true;
  bool mean = false;  // a score is divided by the number of the query's rows
  // What stands before texts and was one token each in training, if the tokenizer knows it.
  std::vector<std::string> prefixes{};
};

}  // namespace linserve
