#pragma once

#include <cstddef>
#include <cstdint>

namespace linserve {

// The SentencePiece library (https://github.com/google/sentencepiece), which Debian builds with a
// protobuf of its own inside: 1,287 of its symbols are also those of the protobuf that gRPC needs,
// in another layout. Only a library of ours is linked to it, and that is opened so that the symbols
// of the two never meet. Free of absl: SentencePiece's header declares an absl::string_view of its
// own.
struct PieceFunctions {
  // Takes `count` ids into what `sink` points to.
  using Append = void (*)(void* sink, const int* ids, size_t count);
  // Likewise a text.
  using AppendText = void (*)(void* sink, const char* text, size_t bytes);

  void* (*load)(const char* path);  // null if the file is no SentencePiece model
  void (*unload)(void* model);
  int64_t (*size)(const void* model);  // pieces
  // The ids of the marks of a text's beginning and end; -1: the model has none.
  int (*bos)(const void* model);
  int (*eos)(const void* model);
  // False if the library fails. May be called from several threads at once.
  bool (*encode)(const void* model, const char* text, size_t bytes, Append append, void* sink);
  // The text of `count` ids, which all are below size(). Likewise.
  bool (*decode)(const void* model, const int* ids, size_t count, AppendText append, void* sink);
};

// What the library gives them by.
inline constexpr const char* kPieceFunctionsEntry = "linserve_piece_functions";
using PieceFunctionsEntry = const PieceFunctions* (*)();

}  // namespace linserve
