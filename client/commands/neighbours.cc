#include "client/commands/neighbours.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <string_view>

#include "client/terminal/table.h"
#include "core/strings/utf8.h"

namespace linserve {
namespace {

double Norm(const std::vector<float>& vector) {
  double sum = 0;
  for (float value : vector) sum += static_cast<double>(value) * value;
  return std::sqrt(sum);
}

double Dot(const std::vector<float>& a, const std::vector<float>& b) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) sum += static_cast<double>(a[i]) * b[i];
  return sum;
}

std::string Formatted(const char* format, double value) {
  char text[64];
  std::snprintf(text, sizeof(text), format, value);
  return text;
}

std::string FirstValues(const std::vector<float>& vector) {
  std::string text;
  for (size_t i = 0; i < std::min<size_t>(vector.size(), 4); ++i) {
    text += (i > 0 ? " " : "") + Formatted("%8.4f", vector[i]);
  }
  return text;
}

}  // namespace

absl::Status CheckGivesVectors(const ModelDescription& model, const std::string& what) {
  if (model.labels.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError("model " + model.name + " gives scores and no vectors, which " +
                                    what +
                                    " compares: use a model of embeddings, or ask this one by " +
                                    (model.labels.size() == 1 ? "/rerank" : "/predict"));
}

std::vector<float> ToFloats(const Tensor& tensor) {
  std::vector<float> values(static_cast<size_t>(tensor.elements()));
  ConvertToFloat(tensor.dtype(), tensor.bytes(), tensor.elements(), values.data());
  return values;
}

std::vector<float> Unit(std::vector<float> vector) {
  const double norm = Norm(vector);
  if (!(norm > 0)) return vector;
  for (float& value : vector) value = static_cast<float>(value / norm);
  return vector;
}

std::vector<Neighbour> Nearest(const std::vector<float>& query,
                               const std::vector<std::vector<float>>& vectors, size_t count) {
  std::vector<Neighbour> found;
  found.reserve(vectors.size());
  for (size_t i = 0; i < vectors.size(); ++i) found.push_back({i, Dot(query, vectors[i])});
  count = std::min(count, found.size());
  const auto end = found.begin() + static_cast<std::ptrdiff_t>(count);
  std::partial_sort(found.begin(), end, found.end(),
                    [](const Neighbour& a, const Neighbour& b) { return a.cosine > b.cosine; });
  found.resize(count);
  return found;
}

std::vector<std::optional<Neighbour>> NearestByCosine(
    const std::vector<std::vector<float>>& vectors) {
  std::vector<double> norms;
  for (const auto& vector : vectors) norms.push_back(Norm(vector));
  std::vector<std::optional<Neighbour>> nearest(vectors.size());
  for (size_t i = 0; i < vectors.size(); ++i) {
    for (size_t j = 0; j < vectors.size(); ++j) {
      if (i == j || vectors[i].size() != vectors[j].size()) continue;
      if (!(norms[i] > 0) || !(norms[j] > 0)) continue;
      const double cosine = Dot(vectors[i], vectors[j]) / (norms[i] * norms[j]);
      if (!nearest[i] || cosine > nearest[i]->cosine) nearest[i] = Neighbour{j, cosine};
    }
  }
  return nearest;
}

std::string NeighbourTable(const std::vector<EmbeddedLine>& lines) {
  std::vector<std::vector<float>> vectors;
  for (const EmbeddedLine& line : lines) vectors.push_back(line.vector);
  const auto nearest = NearestByCosine(vectors);
  Table table({{"line", Align::kRight},
               {"text", Align::kLeft},
               {"tokens", Align::kRight},
               {"ms", Align::kRight},
               {"first values", Align::kLeft},
               {"cosine", Align::kRight},
               {"nearest", Align::kLeft}});
  for (size_t i = 0; i < lines.size(); ++i) {
    const EmbeddedLine& line = lines[i];
    const std::string& number = line.id;
    if (!line.status.ok()) {
      table.Add({number, Excerpt(line.text, 32), "", "", "failed", "", ""});
      continue;
    }
    std::string cosine = "-";
    std::string neighbour = "-";
    if (nearest[i]) {
      cosine = Formatted("%.4f", nearest[i]->cosine);
      neighbour = lines[nearest[i]->index].id + ": " + Excerpt(lines[nearest[i]->index].text, 32);
    }
    table.Add({number, Excerpt(line.text, 32), std::to_string(line.tokens),
               Formatted("%.1f", static_cast<double>(line.latency.count()) / 1e6),
               FirstValues(line.vector), cosine, neighbour});
  }
  return table.ToText();
}

std::string Excerpt(const std::string& text, size_t columns) {
  std::string excerpt;
  size_t last_column = 0;  // where the ellipsis would go
  size_t used = 0;
  for (size_t at = 0; at < text.size(); ++used) {
    if (used + 1 == columns) last_column = excerpt.size();
    if (used == columns) {
      excerpt.resize(last_column);
      return excerpt + "…";
    }
    const size_t size = CharacterBytes(std::string_view(text).substr(at));
    const auto lead = static_cast<unsigned char>(text[at]);
    if (size == 0) {
      excerpt += '?';
    } else if (lead < 0x20 || lead == 0x7f) {
      excerpt += ' ';
    } else {
      excerpt.append(text, at, size);
    }
    at += std::max<size_t>(size, 1);
  }
  return excerpt;
}

}  // namespace linserve
