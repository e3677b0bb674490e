#include "base/buffers.hpp"

#include <new>

#if defined(__linux__)
#include <sys/mman.h>
#endif

namespace crfit {

namespace {
constexpr std::size_t kLine = 64, kHugePage = 2 << 20;
}  // namespace

void* allocate(std::size_t bytes) {
  const std::size_t unit = bytes >= 2 * kHugePage ? kHugePage : kLine;
  const std::size_t whole = (bytes + unit - 1) / unit * unit;
  void* memory = std::aligned_alloc(unit, whole);
  if (memory == nullptr) throw std::bad_alloc();
#if defined(__linux__)
  if (unit == kHugePage) madvise(memory, whole, MADV_HUGEPAGE);  // a hint: failure only costs speed
#endif
  return memory;
}

template <class T>
void Buffer<T>::resize(int64_t n) {
  std::free(data_);
  data_ = nullptr;
  size_ = 0;
  if (n == 0) return;
  data_ = static_cast<T*>(allocate(static_cast<std::size_t>(n) * sizeof(T)));
  size_ = n;
}

template class Buffer<double>;
template class Buffer<int32_t>;

Buffer<double> zero_buffer(int64_t n) {
  Buffer<double> buffer;
  buffer.resize(n);
  buffer.fill(0.0);
  return buffer;
}

}  // namespace crfit
