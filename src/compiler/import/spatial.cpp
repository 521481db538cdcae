#include "compiler/import/spatial.h"

#include "compiler/graph/infer.h"

namespace talpa::compiler::import {

using host::failure;
using host::Result;

Result<SpatialView> spatial_view(const Builder& b, ValueId x, std::size_t dims) {
    const Shape& shape = b[x].shape;
    if (shape.size() == dims + 2) return SpatialView{dims, true};
    if (shape.size() == dims + 1) return SpatialView{dims, false};
    return failure(ErrorCode::InvalidProgram, "an input of shape {} for {} spatial dimensions", shape_text(shape),
                   dims);
}

Result<ValueId> to_channels_last(Builder& b, ValueId x, SpatialView view) {
    const std::string name = b[x].name;
    if (!view.batched) {
        Shape with = b[x].shape;
        with.insert(with.begin(), 1);
        TRY_ASSIGN(x, b.reshape(x, with, name + ".batched"));
    }
    if (view.dims == 2) return b.permute(x, kToChannelsLast, name + ".nhwc");
    TRY_ASSIGN(x, b.permute(x, {0, 2, 1}, name + ".nlc"));
    const Shape& s = b[x].shape;
    return b.reshape(x, {s[0], 1, s[1], s[2]}, name + ".nhwc");
}

Result<ValueId> from_channels_last(Builder& b, ValueId x, SpatialView view, const std::string& name) {
    if (view.dims == 2) {
        TRY_ASSIGN(x, b.permute(x, kToChannelsFirst, name + ".nchw"));
    } else {
        const Shape s = b[x].shape;
        TRY_ASSIGN(x, b.reshape(x, {s[0], s[2], s[3]}, name + ".nlc"));
        TRY_ASSIGN(x, b.permute(x, {0, 2, 1}, name + ".ncl"));
    }
    if (view.batched) return x;
    const Shape s = b[x].shape;
    return b.reshape(x, Shape(s.begin() + 1, s.end()), name + ".single");
}

}  // namespace talpa::compiler::import
