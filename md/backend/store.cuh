// The plain output of a force kernel: stores the result of the law in row i of an array, a vector in an (n, DIM) array, a
// number in an (n,) array.

__device__ __forceinline__ void put(real* data, int n, int i, const Vec& value) { store(data, n, i, value); }

template <class Number, class Value>
__device__ __forceinline__ void put(Number* data, int n, int i, Value value) {
    data[i] = (Number)value;
}

template <class Value>
__device__ __forceinline__ void finish(const Out& out, const Grid& grid, int n, int i, const Vec& ri, const Vec& vi,
                                       const Value& value) {
    put(out.data, n, i, value);
}
