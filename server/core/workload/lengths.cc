#include "core/workload/lengths.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <fstream>
#include <optional>
#include <utility>

#include "absl/strings/str_split.h"

namespace linserve {
namespace {

constexpr const char* kExpected =
    "expected fixed:LENGTH, uniform:FIRST,LAST, lognormal:MEDIAN,SIGMA,FIRST,LAST or file:PATH";

absl::Status Invalid(const std::string& text, const std::string& what) {
  return absl::InvalidArgumentError("lengths '" + text + "': " + what);
}

template <typename Number>
std::optional<Number> ParseNumber(const std::string& text) {
  Number value{};
  const auto end = text.data() + text.size();
  const auto parsed = std::from_chars(text.data(), end, value);
  if (parsed.ec != std::errc() || parsed.ptr != end) return std::nullopt;
  return value;
}

bool IsRange(std::optional<int64_t> first, std::optional<int64_t> last) {
  return first && last && *first >= 1 && *first <= *last;
}

}  // namespace

LengthDistribution::LengthDistribution(std::string text, Kind kind)
    : text_(std::move(text)), kind_(std::move(kind)) {}

LengthDistribution LengthDistribution::Fixed(int64_t length) {
  return {"fixed:" + std::to_string(length), Uniform{length, length}};
}

absl::StatusOr<LengthDistribution> LengthDistribution::Parse(const std::string& text) {
  const size_t colon = text.find(':');
  if (colon == std::string::npos) return Invalid(text, kExpected);
  const std::string name = text.substr(0, colon);
  const std::string arguments = text.substr(colon + 1);
  absl::StatusOr<Kind> kind = Invalid(text, kExpected);
  if (name == "fixed") {
    const auto length = ParseNumber<int64_t>(arguments);
    if (!IsRange(length, length)) return Invalid(text, "expected a length of 1 or more");
    kind = Uniform{*length, *length};
  } else if (name == "uniform") {
    kind = ParseUniform(text, arguments);
  } else if (name == "lognormal") {
    kind = ParseLogNormal(text, arguments);
  } else if (name == "file") {
    kind = ReadFile(arguments);
  }
  if (!kind.ok()) return kind.status();
  return LengthDistribution(text, *std::move(kind));
}

absl::StatusOr<LengthDistribution::Kind> LengthDistribution::ParseUniform(
    const std::string& text, const std::string& arguments) {
  const std::vector<std::string> parts = absl::StrSplit(arguments, ',');
  if (parts.size() != 2) return Invalid(text, "expected uniform:FIRST,LAST");
  const auto first = ParseNumber<int64_t>(parts[0]);
  const auto last = ParseNumber<int64_t>(parts[1]);
  if (!IsRange(first, last)) return Invalid(text, "expected 1 <= FIRST <= LAST");
  return Uniform{*first, *last};
}

absl::StatusOr<LengthDistribution::Kind> LengthDistribution::ParseLogNormal(
    const std::string& text, const std::string& arguments) {
  const std::vector<std::string> parts = absl::StrSplit(arguments, ',');
  if (parts.size() != 4) return Invalid(text, "expected lognormal:MEDIAN,SIGMA,FIRST,LAST");
  const auto median = ParseNumber<double>(parts[0]);
  const auto sigma = ParseNumber<double>(parts[1]);
  const auto first = ParseNumber<int64_t>(parts[2]);
  const auto last = ParseNumber<int64_t>(parts[3]);
  if (!median || !sigma || !(*median > 0) || !(*sigma >= 0) || !std::isfinite(*median + *sigma)) {
    return Invalid(text, "expected MEDIAN > 0 and SIGMA >= 0");
  }
  if (!IsRange(first, last)) return Invalid(text, "expected 1 <= FIRST <= LAST");
  return LogNormal{*median, *sigma, *first, *last};
}

absl::StatusOr<LengthDistribution::Kind> LengthDistribution::ReadFile(const std::string& path) {
  std::ifstream file(path);
  if (!file) return absl::NotFoundError("cannot open the lengths in " + path);
  Listed listed;
  std::string line;
  for (size_t number = 1; std::getline(file, line); ++number) {
    if (!line.empty() && line.back() == '\r') line.pop_back();
    if (line.empty()) continue;
    const auto length = ParseNumber<int64_t>(line);
    if (!IsRange(length, length)) {
      return absl::InvalidArgumentError(path + ", line " + std::to_string(number) + ": '" + line +
                                        "', expected a length of 1 or more");
    }
    listed.lengths.push_back(*length);
  }
  if (listed.lengths.empty()) return absl::InvalidArgumentError(path + " holds no lengths");
  return listed;
}

int64_t LengthDistribution::Draw(std::mt19937_64& random) const {
  if (const auto* uniform = std::get_if<Uniform>(&kind_)) {
    return std::uniform_int_distribution<int64_t>(uniform->first, uniform->last)(random);
  }
  if (const auto* normal = std::get_if<LogNormal>(&kind_)) {
    std::lognormal_distribution<double> distribution(std::log(normal->median), normal->sigma);
    const double length = std::clamp(distribution(random), static_cast<double>(normal->first),
                                     static_cast<double>(normal->last));
    return std::llround(length);
  }
  const auto& lengths = std::get<Listed>(kind_).lengths;
  return lengths[std::uniform_int_distribution<size_t>(0, lengths.size() - 1)(random)];
}

int64_t LengthDistribution::longest() const {
  if (const auto* uniform = std::get_if<Uniform>(&kind_)) return uniform->last;
  if (const auto* normal = std::get_if<LogNormal>(&kind_)) return normal->last;
  const auto& lengths = std::get<Listed>(kind_).lengths;
  return *std::max_element(lengths.begin(), lengths.end());
}

}  // namespace linserve
