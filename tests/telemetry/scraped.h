#pragma once

#include <limits>
#include <map>
#include <ostream>
#include <set>
#include <sstream>
#include <string>

namespace linserve {

// Holds a scrape in the Prometheus text format, taken apart.
struct Scraped {
  struct Family {
    std::string type;
    std::set<std::string> labels;  // names, without a histogram's "le"

    bool operator==(const Family&) const = default;
  };

  std::map<std::string, Family> families;  // by metric name, without _bucket, _sum, _count
  std::map<std::string, double> samples;   // by series, as it is written

  explicit Scraped(const std::string& text) {
    std::istringstream lines(text);
    std::string family;
    for (std::string line; std::getline(lines, line);) {
      if (line.starts_with("# TYPE ")) {
        std::istringstream words(line.substr(7));
        words >> family;
        words >> families[family].type;
      } else if (!line.starts_with("#")) {
        AddSample(line, families.at(family));
      }
    }
  }

  // Returns the value of a series; if there is none it is not a number, which equals nothing.
  double operator[](const std::string& series) const {
    const auto found = samples.find(series);
    return found == samples.end() ? std::numeric_limits<double>::quiet_NaN() : found->second;
  }

 private:
  void AddSample(const std::string& line, Family& family) {
    const size_t end = line.rfind(' ');
    const std::string series = line.substr(0, end);
    samples[series] = std::stod(line.substr(end + 1));
    for (size_t at = series.find('{'); at != std::string::npos; at = series.find(',', at)) {
      const size_t equals = series.find('=', ++at);
      const std::string label = series.substr(at, equals - at);
      if (label != "le") family.labels.insert(label);
    }
  }
};

inline void PrintTo(const Scraped::Family& family, std::ostream* out) {
  *out << family.type << " {";
  for (const std::string& label : family.labels) *out << " " << label;
  *out << " }";
}

}  // namespace linserve
