#include "base/buffers.hpp"

#include <cstdlib>
#include <new>

#if defined(__linux__)
#include <sys/mman.h>
#elif defined(_WIN32)
#include <malloc.h>
#endif

namespace crfit {

namespace {
constexpr std::size_t kLine = 64, kHugePage = 2 << 20;
}  // namespace

void* allocate(std::size_t bytes) {
  const std::size_t unit = bytes >= 2 * kHugePage ? kHugePage : kLine;
  const std::size_t whole = (bytes + unit - 1) / unit * unit;
#if defined(_WIN32)
  void* memory = _aligned_malloc(whole, unit);
#else
  void* memory = std::aligned_alloc(unit, whole);
#endif
  if (memory == nullptr) throw std::bad_alloc();
#if defined(__linux__)
  if (unit == kHugePage) madvise(memory, whole, MADV_HUGEPAGE);  // a hint: failure only costs speed
#endif
  return memory;
}

void deallocate(void* memory) noexcept {
#if defined(_WIN32)
  _aligned_free(memory);
#else
  std::free(memory);
#endif
}

template <class T>
void Buffer<T>::resize(int64_t n) {
  deallocate(data_);
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
