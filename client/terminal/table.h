#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace linserve {

enum class Align : uint8_t { kLeft, kRight };

// Lays out text in columns, each as wide as its widest cell.
class Table {
 public:
  struct Column {
    std::string title;
    Align align = Align::kLeft;
  };

  explicit Table(std::vector<Column> columns);

  // Adds a row. REQUIRES: one cell a column.
  void Add(std::vector<std::string> cells);

  std::string ToText() const;

 private:
  std::vector<Column> columns_;
  std::vector<std::vector<std::string>> rows_;
};

// Writes a number with so many digits after the point.
std::string Number(double value, int digits);

}  // namespace linserve
