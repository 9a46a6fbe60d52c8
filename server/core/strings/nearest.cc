#include "core/strings/nearest.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace linserve {
namespace {

size_t EditDistance(const std::string& a, const std::string& b) {
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), 0);
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = std::exchange(row[0], i);
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t substituted = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = std::exchange(row[j], std::min({row[j] + 1, row[j - 1] + 1, substituted}));
    }
  }
  return row.back();
}

}  // namespace

std::string NearestName(const std::string& name, const std::vector<std::string>& names,
                        size_t most_changes) {
  std::string nearest;
  size_t least = most_changes;
  for (const std::string& candidate : names) {
    const size_t changes = EditDistance(candidate, name);
    if (changes > least || (changes == least && !nearest.empty())) continue;
    least = changes;
    nearest = candidate;
  }
  return nearest;
}

}  // namespace linserve
