#pragma once

#include <cstdint>
#include <random>
#include <string>
#include <variant>
#include <vector>

#include "absl/status/statusor.h"

namespace linserve {

// Draws the lengths of a load's sequences.
class LengthDistribution {
 public:
  // Parses "fixed:128", "uniform:8,512" (both ends included), "lognormal:96,0.8,8,512" (median,
  // sigma of the logarithm, and the ends, to which what lies beyond is moved) or "file:PATH" (one
  // length a line, drawn with equal chances). INVALID_ARGUMENT says what is wrong and what was
  // expected.
  static absl::StatusOr<LengthDistribution> Parse(const std::string& text);
  static LengthDistribution Fixed(int64_t length);

  int64_t Draw(std::mt19937_64& random) const;

  int64_t longest() const;

  // Returns the text that the distribution was parsed from.
  const std::string& text() const { return text_; }

 private:
  struct Uniform {
    int64_t first;
    int64_t last;
  };
  struct LogNormal {
    double median;
    double sigma;
    int64_t first;
    int64_t last;
  };
  struct Listed {
    std::vector<int64_t> lengths;
  };
  using Kind = std::variant<Uniform, LogNormal, Listed>;

  static absl::StatusOr<Kind> ParseUniform(const std::string& text, const std::string& arguments);
  static absl::StatusOr<Kind> ParseLogNormal(const std::string& text, const std::string& arguments);
  static absl::StatusOr<Kind> ReadFile(const std::string& path);

  LengthDistribution(std::string text, Kind kind);

  std::string text_;
  Kind kind_;
};

}  // namespace linserve
