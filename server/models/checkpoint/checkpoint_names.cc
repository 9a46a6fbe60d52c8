#include "models/checkpoint/checkpoint_names.h"

#include <algorithm>
#include <array>
#include <optional>
#include <set>
#include <utility>
#include <vector>

namespace linserve {
namespace {

constexpr std::array<std::string_view, 4> kWrappers = {
    "_orig_mod", "_forward_module", "_checkpoint_wrapped_module", "_fsdp_wrapped_module"};
// The names of a file may all end as one parameter's does. No wrappers nest so deep.
constexpr size_t kMostPrefixes = 64;

std::string WithoutWrappers(const std::string& name) {
  std::string clean;
  for (size_t begin = 0; begin <= name.size();) {
    const size_t end = std::min(name.find('.', begin), name.size());
    const std::string_view part = std::string_view(name).substr(begin, end - begin);
    if (std::find(kWrappers.begin(), kWrappers.end(), part) == kWrappers.end()) {
      if (begin > 0 && !clean.empty()) clean += '.';
      clean += part;
    }
    begin = end + 1;
  }
  return clean;
}

// Returns where a name has what is renamed, at the beginning of one of its parts; npos: nowhere.
size_t PlaceIn(const std::string& name, const std::string& part) {
  for (size_t at = name.find(part); at != std::string::npos; at = name.find(part, at + 1)) {
    if (at == 0 || name[at - 1] == '.') return at;
  }
  return std::string::npos;
}

// Returns the tensors that one of a file stands for, by the network's names.
std::vector<std::pair<std::string, Tensor>> Renamed(std::string name, const Tensor& tensor,
                                                    const CheckpointNames& names) {
  std::vector<std::pair<std::string, Tensor>> tensors = {{std::move(name), tensor}};
  for (const auto& [from, to] : names.renamed) {
    std::vector<std::pair<std::string, Tensor>> next;
    for (auto& [old, whole] : tensors) {
      const size_t at = PlaceIn(old, from);
      const auto parts = static_cast<int64_t>(to.size());
      const int64_t rows = whole.shape().empty() ? 1 : whole.shape()[0];
      if (at == std::string::npos || rows % parts != 0) {
        next.emplace_back(std::move(old), whole);
        continue;
      }
      for (int64_t i = 0; i < parts; ++i) {
        std::string part = old;
        part.replace(at, from.size(), to[static_cast<size_t>(i)]);
        next.emplace_back(
            std::move(part),
            parts == 1 ? whole : whole.Rows(i * (rows / parts), (i + 1) * (rows / parts)));
      }
    }
    tensors = std::move(next);
  }
  return tensors;
}

// Returns the parameter that says most by its name; null if the network has none.
const Parameter* LongestNamed(const ParameterList& parameters) {
  const Parameter* longest = nullptr;
  for (const Parameter& parameter : parameters) {
    if (parameter.kind == ParameterKind::kBuffer) continue;
    if (longest == nullptr || parameter.name().size() > longest->name().size()) {
      longest = &parameter;
    }
  }
  return longest;
}

}  // namespace

bool MatchesGlob(std::string_view name, std::string_view glob) {
  size_t at = 0;
  size_t star = std::string_view::npos;  // the last '*', and where what it stands for ends
  size_t end = 0;
  size_t next = 0;  // of the glob
  while (at < name.size()) {
    if (next < glob.size() && glob[next] == '*') {
      star = next++;
      end = at;
    } else if (next < glob.size() && (glob[next] == '?' || glob[next] == name[at])) {
      ++next;
      ++at;
    } else if (star != std::string_view::npos) {
      next = star + 1;
      at = ++end;
    } else {
      return false;
    }
  }
  return glob.find_first_not_of('*', next) == std::string_view::npos;
}

NamedTensors::NamedTensors(TensorMap file, const std::map<std::string, std::string>& metadata,
                           const CheckpointNames& names) {
  const auto ignored = [&](const std::string& name) {
    return std::any_of(names.ignore.begin(), names.ignore.end(),
                       [&](const std::string& glob) { return MatchesGlob(name, glob); });
  };
  for (const auto& [name, kept] : metadata) {
    const auto tensor = file.find(kept);
    if (tensor != file.end()) left_out_.emplace(WithoutWrappers(name), tensor->second);
  }
  for (auto& [name, tensor] : file) {
    std::string clean = WithoutWrappers(name);
    if (ignored(name) || ignored(clean)) continue;
    if (std::any_of(names.apart.begin(), names.apart.end(),
                    [&](const std::string& begin) { return clean.starts_with(begin); })) {
      apart_.emplace(std::move(clean), tensor);
      continue;
    }
    for (auto& [own, part] : Renamed(std::move(clean), tensor, names)) {
      // Names that would fall together stay as they are, so that the listing shows both.
      if (!tensors_.emplace(std::move(own), part).second) tensors_.emplace(name, tensor);
    }
  }
}

TensorMap NamedTensors::Below(const std::string& prefix) const {
  TensorMap below = apart_;
  for (auto tensor = tensors_.lower_bound(prefix); tensor != tensors_.end(); ++tensor) {
    if (!tensor->first.starts_with(prefix)) break;
    below.emplace(tensor->first.substr(prefix.size()), tensor->second);
  }
  return below;
}

std::vector<std::string> NamedTensors::Beside(const std::string& prefix) const {
  std::vector<std::string> beside;
  for (const auto& [name, tensor] : tensors_) {
    if (!name.starts_with(prefix)) beside.push_back(name);
  }
  return beside;
}

const Tensor* NamedTensors::LeftOut(const std::string& name) const {
  const auto tensor = left_out_.find(name);
  return tensor == left_out_.end() ? nullptr : &tensor->second;
}

std::vector<std::string> NamedTensors::Prefixes(const ParameterList& parameters) const {
  std::vector<std::string> prefixes;
  const Parameter* sought = LongestNamed(parameters);
  if (sought == nullptr) return prefixes;
  const auto add = [&](const std::string& name) {
    for (const std::string& own : sought->names) {
      if (!name.ends_with("." + own)) continue;
      prefixes.push_back(name.substr(0, name.size() - own.size()));
    }
  };
  for (const auto& [name, tensor] : tensors_) add(name);
  for (const auto& [name, tensor] : left_out_) add(name);
  std::sort(prefixes.begin(), prefixes.end(), [](const std::string& a, const std::string& b) {
    return a.size() != b.size() ? a.size() < b.size() : a < b;
  });
  prefixes.erase(std::unique(prefixes.begin(), prefixes.end()), prefixes.end());
  prefixes.resize(std::min(prefixes.size(), kMostPrefixes));
  return prefixes;
}

}  // namespace linserve
