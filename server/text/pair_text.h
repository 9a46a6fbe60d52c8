#pragma once

#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "text/tokenizer.h"

namespace linserve {

// Says how two texts that are read together are written into one, as models expect that were
// trained so: "…{prompt}…{query}…{document}…". The prompt may be missing, and stands before the
// query then.
class PairText {
 public:
  // INVALID_ARGUMENT says what the template lacks or has too much of.
  static absl::StatusOr<PairText> Parse(const std::string& text, const Tokenizer& tokenizer);

  // Writes all up to the document's end.
  std::string Write(std::string_view prompt, std::string_view query,
                    std::string_view document) const;
  // Returns the ids of what follows the document, which is never cut. No other marks stand around
  // the text.
  const Marks& marks() const { return marks_; }

 private:
  std::string before_prompt_, before_query_, before_document_;
  Marks marks_;
};

}  // namespace linserve
