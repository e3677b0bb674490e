// Memory for kernels: aligned, uninitialised, in huge pages if large.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace crfit {

// Uninitialised memory on a cache-line boundary; give it back to deallocate. Large blocks use huge pages: rows are read
// in random order, and page-table misses would dominate.
void* allocate(std::size_t bytes);
void deallocate(void* memory) noexcept;

template <class T>
class Buffer {
 public:
  Buffer() = default;
  Buffer(Buffer&& other) noexcept : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}
  Buffer& operator=(Buffer&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    return *this;
  }
  ~Buffer() { deallocate(data_); }

  void resize(int64_t n);  // contents are lost
  void fill(T value) {
    for (int64_t i = 0; i < size_; ++i) data_[i] = value;
  }
  T* data() { return data_; }
  const T* data() const { return data_; }
  int64_t size() const { return size_; }
  T& operator[](int64_t i) { return data_[i]; }
  const T& operator[](int64_t i) const { return data_[i]; }

 private:
  T* data_ = nullptr;
  int64_t size_ = 0;
};

Buffer<double> zero_buffer(int64_t n);

// The same memory for vectors that grow.
template <class T>
struct Allocator {
  using value_type = T;
  Allocator() = default;
  template <class U>
  Allocator(const Allocator<U>&) {}
  T* allocate(std::size_t n) { return static_cast<T*>(crfit::allocate(n * sizeof(T))); }
  void deallocate(T* memory, std::size_t) { crfit::deallocate(memory); }
  bool operator==(const Allocator&) const { return true; }
};
template <class T>
using Vector = std::vector<T, Allocator<T>>;

}  // namespace crfit
