#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace linserve {

// Finds which of the names takes the fewest changes of a letter (Levenshtein) to become from
// `name`: it is what a misspelt one was probably meant to be. Empty if each takes more than
// `most_changes`.
std::string NearestName(const std::string& name, const std::vector<std::string>& names,
                        size_t most_changes);

}  // namespace linserve
