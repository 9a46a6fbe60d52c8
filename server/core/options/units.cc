#include "core/options/units.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <span>

namespace linserve {
namespace {

struct NamedUnit {
  std::string_view name;
  double size;
};

constexpr auto kSizeUnits = std::to_array<NamedUnit>({{"B", 1},
                                                      {"kB", 1e3},
                                                      {"KB", 1e3},
                                                      {"MB", 1e6},
                                                      {"GB", 1e9},
                                                      {"TB", 1e12},
                                                      {"KiB", 1 << 10},
                                                      {"MiB", 1 << 20},
                                                      {"GiB", 1 << 30},
                                                      {"TiB", int64_t{1} << 40},
                                                      // Kubernetes writes them so.
                                                      {"Ki", 1 << 10},
                                                      {"Mi", 1 << 20},
                                                      {"Gi", 1 << 30},
                                                      {"Ti", int64_t{1} << 40}});

constexpr auto kTimeUnits = std::to_array<NamedUnit>({{"ns", 1},
                                                      {"us", 1e3},
                                                      {"ms", 1e6},
                                                      {"s", 1e9},
                                                      {"m", 60e9},
                                                      {"min", 60e9},
                                                      {"h", 3600e9},
                                                      {"d", 86400e9}});

// Parses a number, at most one space, and a unit.
std::optional<double> ParseWithUnit(std::string_view text, std::span<const NamedUnit> units) {
  double number = 0;
  const char* end = text.data() + text.size();
  const auto parsed = std::from_chars(text.data(), end, number, std::chars_format::fixed);
  if (parsed.ec != std::errc()) return std::nullopt;
  text.remove_prefix(static_cast<size_t>(parsed.ptr - text.data()));
  if (text.starts_with(' ')) text.remove_prefix(1);
  const auto unit = std::find_if(units.begin(), units.end(),
                                 [&](const NamedUnit& known) { return known.name == text; });
  if (unit == units.end()) return std::nullopt;
  return number * unit->size;
}

}  // namespace

std::optional<double> ParseSize(std::string_view text) { return ParseWithUnit(text, kSizeUnits); }

std::optional<double> ParseTime(std::string_view text) { return ParseWithUnit(text, kTimeUnits); }

}  // namespace linserve
