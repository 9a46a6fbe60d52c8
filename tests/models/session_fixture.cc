#include "models/session_fixture.h"

#include <algorithm>

namespace linserve {

SessionFixture::Session SessionFixture::New(Model& model) {
  auto session = model.info().sessions->New();
  EXPECT_TRUE(session.ok()) << session.status();
  return session.ok() ? *session : nullptr;
}

Item SessionFixture::Chunk(const Item& whole, int64_t begin, int64_t end, const Session& session) {
  Item chunk{.inputs = {}, .options = whole.options, .chunk = {}, .session = session};
  for (const auto& [name, tensor] : whole.inputs) chunk.inputs[name] = tensor.Rows(begin, end);
  return chunk;
}

std::vector<int64_t> SessionFixture::Chunking(int64_t length) {
  const int64_t kind = Any(0, 3);
  if (kind == 0) return std::vector<int64_t>(static_cast<size_t>(length), 1);
  std::vector<int64_t> chunks;
  for (int64_t row = 0; row < length; row += chunks.back()) {
    const int64_t most = kind == 1 ? length : 7;
    chunks.push_back(std::min(Any(1, most), length - row));
  }
  return chunks;
}

Tensor SessionFixture::Feed(Model& model, const Item& whole, const std::vector<int64_t>& chunks,
                            const Session& session) {
  std::vector<Tensor> parts;
  int64_t row = 0;
  for (const int64_t length : chunks) {
    parts.push_back(
        Compute(model, {Chunk(whole, row, row + length, session)}).at(0).begin()->second);
    row += length;
  }
  return Joined(parts);
}

Tensor Joined(const std::vector<Tensor>& parts) {
  std::vector<float> values;
  Shape shape = parts.at(0).shape();
  shape[0] = 0;
  for (const Tensor& part : parts) {
    values.insert(values.end(), part.data<float>(), part.data<float>() + part.elements());
    shape[0] += part.shape()[0];
  }
  return Tensor::FromFloats(shape, values);
}

}  // namespace linserve
