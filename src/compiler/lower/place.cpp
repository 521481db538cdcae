#include "compiler/lower/place.h"

#include <algorithm>

namespace talpa::compiler {

std::vector<std::int64_t> dense_strides(const Shape& shape) {
    std::vector<std::int64_t> strides(shape.size());
    std::int64_t step = 1;
    for (std::size_t i = shape.size(); i-- > 0;) {
        strides[i] = step;
        step *= shape[i];
    }
    return strides;
}

bool is_dense(const Place& place, const Shape& shape) {
    const std::vector<std::int64_t> dense = dense_strides(shape);
    for (std::size_t i = 0; i < shape.size(); ++i)
        if (shape[i] != 1 && place.strides[i] != dense[i]) return false;
    return true;
}

std::optional<Place> reshape(const Place& place, const Shape& from, const Shape& to) {
    // Runs of dimensions that lie as one, innermost first.
    struct Run {
        std::int64_t size, stride;
    };
    std::vector<Run> runs;
    for (std::size_t i = from.size(); i-- > 0;) {
        if (from[i] == 1) continue;
        if (!runs.empty() && place.strides[i] == runs.back().size * runs.back().stride)
            runs.back().size *= from[i];
        else
            runs.push_back({from[i], place.strides[i]});
    }
    Place result{place.tensor, place.offset, std::vector<std::int64_t>(to.size(), 1)};
    std::size_t run = 0;
    std::int64_t used = 1;
    for (std::size_t i = to.size(); i-- > 0;) {
        if (to[i] == 1) continue;
        if (run < runs.size() && used == runs[run].size) {
            ++run;
            used = 1;
        }
        if (run == runs.size() || runs[run].size % (used * to[i]) != 0) return std::nullopt;
        result.strides[i] = runs[run].stride * used;
        used *= to[i];
    }
    return result;
}

Place permute(const Place& place, const std::vector<int>& order) {
    Place result{place.tensor, place.offset, {}};
    for (const int d : order) result.strides.push_back(place.strides[static_cast<std::size_t>(d)]);
    return result;
}

Place broadcast(const Place& place, const Shape& shape, const Shape& wanted) {
    Place result{place.tensor, place.offset, std::vector<std::int64_t>(wanted.size(), 0)};
    for (std::size_t i = 0; i < shape.size(); ++i)
        if (shape[shape.size() - 1 - i] != 1)
            result.strides[wanted.size() - 1 - i] = place.strides[shape.size() - 1 - i];
    return result;
}

std::optional<View> image_view(const Place& place, const Shape& shape, std::int64_t batch, std::int32_t zero_point) {
    const auto back = [&](std::size_t i) { return i < shape.size() ? shape[shape.size() - 1 - i] : 1; };
    const auto stride = [&](std::size_t i) { return i < shape.size() ? place.strides[shape.size() - 1 - i] : 0; };
    if (back(0) != 1 && stride(0) != 1) return std::nullopt;
    View v;
    v.tensor = place.tensor;
    v.depth = static_cast<std::uint32_t>(back(0));
    v.width = static_cast<std::uint32_t>(back(1));
    v.height = static_cast<std::uint32_t>(back(2));
    v.stride_x = v.width == 1 ? back(0) : stride(1);
    v.stride_y = v.height == 1 ? v.stride_x * v.width : stride(2);
    v.offset = place.offset + (shape.size() > 3 ? batch * stride(3) : 0);
    v.zero_point = zero_point;
    return v;
}

}  // namespace talpa::compiler
