#include "core/files/safetensors_header.h"

#include <cstdint>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "core/strings/quote.h"

namespace linserve {
namespace {

constexpr size_t kMostTensors = size_t{1} << 17;  // as many as a network may have
constexpr size_t kMostMetadata = 4096;
constexpr size_t kMostAxes = 64;  // as many as PyTorch and NumPy have
constexpr char kForm[] = "{name: {dtype, shape, data_offsets}}";

// Takes the events of the JSON parser and stops it at the first that a header cannot have. A tree
// would lose repeated keys and would let nesting and memory grow with what a hostile file says.
class SafetensorsHeaderReader : public nlohmann::json_sax<nlohmann::json> {
 public:
  SafetensorsHeader Take() { return std::move(header_); }
  const std::string& fault() const { return fault_; }

  bool start_object(size_t) override {
    if (place_ == Place::kStart) return Enter(Place::kNames);
    if (place_ != Place::kNames) return Misplaced("an object");
    if (name_ == "__metadata__") return Enter(Place::kMetadata);
    header_.tensors.push_back({name_, {}, {}, {}});
    return Enter(Place::kFields);
  }

  bool key(std::string& key) override {
    if (place_ == Place::kNames) {
      name_ = key;
      fields_.clear();
      if (names_.size() == kMostTensors) {
        return Fail("it is one more than the " + std::to_string(kMostTensors) +
                    " tensors that a file may have");
      }
      return names_.insert(key).second || Fail("the name stands there twice, expected once");
    }
    field_ = key;
    if (fields_.size() == kMostMetadata) {
      return Fail("more than " + std::to_string(kMostMetadata) + " keys, expected at most as many");
    }
    if (!fields_.insert(key).second) return Fail("the key stands there twice, expected once");
    if (place_ == Place::kMetadata) return true;
    return key == "dtype" || key == "shape" || key == "data_offsets" ||
           Fail("unknown key, expected dtype, shape or data_offsets");
  }

  bool end_object() override {
    field_.clear();
    return Enter(place_ == Place::kNames ? Place::kEnd : Place::kNames);
  }

  bool start_array(size_t) override {
    if (place_ != Place::kFields || field_ == "dtype") return Misplaced("an array");
    (field_ == "shape" ? entry().shape : entry().data_offsets).emplace();
    return Enter(Place::kNumbers);
  }

  bool end_array() override { return Enter(Place::kFields); }

  bool string(std::string& text) override {
    if (place_ == Place::kMetadata) {
      header_.metadata[field_] = text;
      return true;
    }
    if (place_ != Place::kFields || field_ != "dtype") return Misplaced("text");
    entry().dtype = DTypeFromName(text);
    return entry().dtype.has_value() ||
           Fail("unknown dtype " + Quoted(text) +
                ", expected BOOL, U8, I8, I16, I32, I64, F16, BF16, F32 or F64");
  }

  bool number_unsigned(uint64_t value) override {
    if (place_ != Place::kNumbers) return Misplaced("a number");
    std::vector<int64_t>& numbers = *(field_ == "shape" ? entry().shape : entry().data_offsets);
    if (value > INT64_MAX) {
      return Fail("it holds " + std::to_string(value) + ", expected less than 2^63");
    }
    numbers.push_back(static_cast<int64_t>(value));
    return numbers.size() <= kMostAxes || Fail("more than 64 numbers, expected at most 64");
  }

  bool number_integer(int64_t value) override {
    return place_ == Place::kNumbers
               ? Fail("it holds " + std::to_string(value) + ", expected 0 or more")
               : Misplaced("a number");
  }
  bool number_float(double, const std::string&) override {
    return place_ == Place::kNumbers
               ? Fail("it holds a fraction or more than 2^64, expected integers")
               : Misplaced("a number");
  }
  bool null() override { return Misplaced("null"); }
  bool boolean(bool) override { return Misplaced("true or false"); }
  bool binary(nlohmann::json::binary_t&) override { return Misplaced("binary data"); }

  bool parse_error(size_t position, const std::string&, const nlohmann::json::exception&) override {
    fault_ = "the header is not valid JSON at its byte " + std::to_string(position) +
             ", expected " + kForm;
    return false;
  }

 private:
  // Says where in the header the parser stands; the format has no deeper places.
  enum class Place : uint8_t { kStart, kNames, kFields, kNumbers, kMetadata, kEnd };

  bool Enter(Place place) {
    place_ = place;
    return true;
  }

  SafetensorsEntry& entry() { return header_.tensors.back(); }

  bool Fail(const std::string& what) {
    fault_ = "tensor " + Quoted(name_);
    if (!field_.empty()) fault_ += ", " + Quoted(field_);
    fault_ += ": " + what;
    return false;
  }

  bool Misplaced(const std::string& what) {
    if (place_ == Place::kStart) {
      fault_ = "the header is " + what + ", expected an object " + kForm;
      return false;
    }
    return Fail("it holds " + what + ", expected " + ExpectedHere());
  }

  std::string ExpectedHere() const {
    if (place_ == Place::kNames) return "an object {dtype, shape, data_offsets}";
    if (place_ == Place::kMetadata) return "text";
    if (place_ == Place::kNumbers) return "integers";
    return field_ == "dtype" ? "text" : "an array of integers";
  }

  SafetensorsHeader header_;
  Place place_ = Place::kStart;
  std::string name_;
  std::string field_;
  std::set<std::string> names_;
  std::set<std::string> fields_;  // fields of the present object
  std::string fault_;
};

}  // namespace

absl::StatusOr<SafetensorsHeader> ParseSafetensorsHeader(std::string_view text) {
  SafetensorsHeaderReader reader;
  if (!nlohmann::json::sax_parse(text.begin(), text.end(), &reader)) {
    return absl::InvalidArgumentError(reader.fault());
  }
  return reader.Take();
}

}  // namespace linserve
