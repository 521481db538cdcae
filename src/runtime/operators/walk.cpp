#include "runtime/operators/walk.h"

#include <algorithm>
#include <cstring>
#include <limits>

namespace talpa::runtime::operators {

Walk::Walk(std::span<const std::int32_t> shape, std::span<const std::uint8_t> order, std::size_t longest_run)
    : shape_(shape), order_(order), longest_run_(longest_run) {}

void Walk::add(const std::uint8_t* data, const Strides& strides) {
    base_[operands_] = reinterpret_cast<std::uintptr_t>(data);
    strides_[operands_] = strides;
    ++operands_;
}

void Walk::merge() {
    for (const std::uint8_t d : order_) {
        const std::int64_t size = shape_[d];
        if (size == 0) done_ = true;
        if (size <= 1) continue;
        bool follows = rank_ > 0;
        for (std::size_t k = 0; follows && k < operands_; ++k) follows = step_[rank_ - 1][k] == strides_[k][d] * size;
        if (follows)
            size_[rank_ - 1] *= size;
        else
            size_[rank_++] = size;
        for (std::size_t k = 0; k < operands_; ++k) step_[rank_ - 1][k] = strides_[k][d];
    }
}

void Walk::advance() {
    for (std::size_t d = rank_ - 1; d-- > 0;) {
        if (++index_[d] < size_[d]) {
            for (std::size_t k = 0; k < operands_; ++k) base_[k] += static_cast<std::uintptr_t>(step_[d][k]);
            return;
        }
        index_[d] = 0;
        for (std::size_t k = 0; k < operands_; ++k)
            base_[k] -= static_cast<std::uintptr_t>(step_[d][k] * (size_[d] - 1));
    }
    done_ = true;
}

bool Walk::next() {
    if (!started_) {
        started_ = true;
        merge();
    }
    if (done_) return false;
    const std::int64_t size = rank_ == 0 ? 1 : size_[rank_ - 1];
    run_ = std::min(longest_run_, static_cast<std::size_t>(size - position_));
    for (std::size_t k = 0; k < operands_; ++k) at_[k] = base_[k] + static_cast<std::uintptr_t>(position_ * step(k));
    position_ += static_cast<std::int64_t>(run_);
    if (position_ == size) {
        position_ = 0;
        if (rank_ == 0)
            done_ = true;
        else
            advance();
    }
    return true;
}

Strides byte_strides(const Tensor& tensor) {
    Strides strides = tensor.strides();
    const auto element = static_cast<std::int64_t>(scalar_size(tensor.type));
    for (std::size_t d = 0; d < tensor.rank; ++d) strides[d] *= element;
    return strides;
}

Strides broadcast_strides(const Tensor& tensor, std::span<const std::int32_t> shape) {
    const Strides own = byte_strides(tensor);
    Strides strides{};
    const std::size_t lead = shape.size() - tensor.rank;
    for (std::size_t d = 0; d < tensor.rank; ++d)
        strides[lead + d] = tensor.sizes[d] == 1 && shape[lead + d] != 1 ? 0 : own[d];
    return strides;
}

void copy_elements(std::span<const std::int32_t> shape, std::span<const std::uint8_t> order, std::size_t element,
                   std::uint8_t* to, const Strides& to_strides, const std::uint8_t* from, const Strides& from_strides) {
    Walk walk(shape, order, std::numeric_limits<std::size_t>::max());
    walk.add(to, to_strides);
    walk.add(from, from_strides);
    const auto dense = static_cast<std::int64_t>(element);
    while (walk.next()) {
        std::uint8_t* out = walk.to(0);
        const std::uint8_t* in = walk.from(1);
        const std::size_t n = walk.count();
        if (n == 1 || (walk.step(0) == dense && walk.step(1) == dense)) {
            std::memmove(out, in, n * element);
            continue;
        }
        for (std::size_t k = 0; k < n; ++k, out += walk.step(0), in += walk.step(1)) {
            switch (element) {  // constant sizes, so that each is one load and one store
                case 1:
                    *out = *in;
                    break;
                case 2:
                    std::memmove(out, in, 2);
                    break;
                case 4:
                    std::memmove(out, in, 4);
                    break;
                default:
                    std::memmove(out, in, element);
            }
        }
    }
}

void convert_elements(std::span<const std::int32_t> shape, std::span<const std::uint8_t> order, const Place& to,
                      const Place& from) {
    if (to.type == from.type)
        return copy_elements(shape, order, scalar_size(to.type), to.data, to.strides, from.data, from.strides);
    const Domain domain = domain_of(from.type);
    Walk walk(shape, order, kChunk);
    walk.add(to.data, to.strides);
    walk.add(from.data, from.strides);
    Chunk chunk;
    while (walk.next()) {
        load(domain, from.type, walk.from(1), walk.step(1), walk.count(), chunk);
        store(domain, chunk, walk.count(), to.type, walk.to(0), walk.step(0));
    }
}

}  // namespace talpa::runtime::operators
