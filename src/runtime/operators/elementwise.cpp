#include "runtime/operators/elementwise.h"

#include <algorithm>

namespace talpa::runtime::operators {
namespace {

void fill(Chunk& chunk, Domain domain, const Scalar& number) {
    if (domain == Domain::Float)
        std::fill_n(chunk.f, kChunk, value_of<float>(number));
    else
        std::fill_n(chunk.i, kChunk, value_of<std::int64_t>(number));
}

}  // namespace

Result<void> run_elementwise(Arguments& args, const Elementwise& call, Batch& batch) {
    Shape shape;
    for (const Input& input : call.inputs) {
        if (input.tensor != nullptr) {
            TRY_ASSIGN(shape, broadcast(args, input.arg, shape, *input.tensor));
        }
    }
    TRY_ASSIGN(Tensor* const out, out_of_shape(args, call.out_arg, shape));
    TRY(want_storable(args, call.out_arg, call.result, *out));

    const Domain domain = domain_of(call.compute);
    const Domain out_domain = domain_of(call.result);
    Walk walk(out->shape(), order_of(*out), kChunk);
    walk.add(out->data, byte_strides(*out));
    std::size_t tensors = 0;
    std::array<std::size_t, 3> operand{};  // of the walk; 0, the output, for a number
    std::array<Domain, 3> domains{};
    for (std::size_t k = 0; k < call.inputs.size(); ++k) {
        domains[k] = k == 0 && call.first_input_is_bool ? Domain::Integer : domain;
        if (const Tensor* const t = call.inputs[k].tensor) {
            walk.add(t->data, broadcast_strides(*t, out->shape()));
            operand[k] = ++tensors;
        } else {
            fill(batch.in[k], domains[k], call.inputs[k].number);
        }
    }
    const bool wraps = out_domain == Domain::Integer && call.result != ScalarType::Bool && call.result != out->type;
    while (walk.next()) {
        batch.n = walk.count();
        for (std::size_t k = 0; k < call.inputs.size(); ++k)
            if (operand[k] != 0)
                load(domains[k], call.inputs[k].tensor->type, walk.from(operand[k]), walk.step(operand[k]), batch.n,
                     batch.in[k]);
        call.kernel(batch);
        if (wraps)
            for (std::size_t k = 0; k < batch.n; ++k) batch.out.i[k] = wrap(call.result, batch.out.i[k]);
        store(out_domain, batch.out, batch.n, out->type, walk.to(0), walk.step(0));
    }
    if (batch.divided_by_zero) return args.error(ErrorCode::InvalidArgument, "{}: an integer is divided by zero");
    return {};
}

}  // namespace talpa::runtime::operators
