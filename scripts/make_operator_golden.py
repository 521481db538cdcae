#!/usr/bin/env python3
"""Makes tests/golden/operators/*.json: operator calls with the results that PyTorch gives, and PyTorch's own schemas.

    python3 scripts/make_operator_golden.py tests/golden/operators

needs PyTorch (a CPU build will do); the tests only read the files. Each case names an operator as the program format does,
its arguments in schema order and the outputs. Where PyTorch adds in another order than the specification asks for (vectorised
sums), the inputs are multiples of 1/8, so that every order gives the same bits; transcendental functions carry a tolerance.
"""
import itertools
import json
import math
import pathlib
import random
import sys

import torch

DTYPES = {"uint8": torch.uint8, "int8": torch.int8, "int16": torch.int16, "int32": torch.int32, "int64": torch.int64,
          "float32": torch.float32, "bool": torch.bool}
NAMES = {v: k for k, v in DTYPES.items()}
IDS = {"uint8": 0, "int8": 1, "int16": 2, "int32": 3, "int64": 4, "float32": 6, "bool": 11}
REALS = ["uint8", "int8", "int16", "int32", "int64", "float32"]
ALL = REALS + ["bool"]
NAN, INF = math.nan, math.inf
rng = random.Random(20240607)
cases = {}
family = None


class Placed:
    """A tensor argument with a dimension order of its own."""

    def __init__(self, tensor, order):
        self.tensor, self.order = tensor, order


class Number(float):
    """A Scalar or float argument that is stored as Double even when it is whole."""


class DType(int):
    """A ScalarType argument: the id in the program, a torch.dtype for PyTorch."""


def begin(name):
    global family
    family = cases.setdefault(name, [])


def tensor(dtype, *shape, low=-4, high=4, zero=True):
    """Random elements: multiples of 1/8 for float32."""
    n = math.prod(shape)
    if dtype == "bool":
        values = [rng.random() < 0.5 for _ in range(n)]
    elif dtype == "float32":
        values = [rng.randint(int(low * 8), int(high * 8)) / 8 for _ in range(n)]
    else:
        values = [rng.randint(max(int(low), 0) if dtype == "uint8" else int(low), int(high)) for _ in range(n)]
    if not zero:
        values = [v if v else 1 for v in values]
    return torch.tensor(values, dtype=DTYPES[dtype]).reshape(shape)


def floats(*shape):
    """Random elements of any size near 1."""
    return torch.tensor([rng.uniform(-3, 3) for _ in range(math.prod(shape))], dtype=torch.float32).reshape(shape)


def of(dtype, values):
    return torch.tensor(values, dtype=DTYPES[dtype])


def number_json(v):
    if isinstance(v, float) and not math.isfinite(v):
        return "nan" if math.isnan(v) else "inf" if v > 0 else "-inf"
    return v


def tensor_json(t, order=None):
    if isinstance(t, Placed):
        t, order = t.tensor, t.order
    data = [number_json(v) for v in t.contiguous().reshape(-1).tolist()]
    j = {"type": NAMES[t.dtype], "shape": list(t.shape), "data": data}
    if order is not None:
        j["order"] = order
    return j


def arg_json(a):
    if a is None:
        return None
    if isinstance(a, (torch.Tensor, Placed)):
        return {"tensor": tensor_json(a)}
    if isinstance(a, bool):
        return {"bool": a}
    if isinstance(a, int):
        return {"int": int(a)}
    if isinstance(a, float):
        return {"double": number_json(float(a))}
    if isinstance(a, str):
        return {"string": a}
    assert isinstance(a, (list, tuple)), a
    if any(isinstance(x, (torch.Tensor, Placed)) for x in a):
        return {"tensors": [None if x is None else tensor_json(x) for x in a]}
    if any(isinstance(x, float) for x in a):
        return {"doubles": [float(x) for x in a]}
    return {"ints": list(a)}


def plain(a):
    if isinstance(a, Placed):
        return a.tensor
    if isinstance(a, DType):
        return {v: DTYPES[k] for k, v in IDS.items()}[int(a)]
    if isinstance(a, Number):
        return float(a)
    if isinstance(a, (list, tuple)):
        return [plain(x) for x in a]
    return a


def schema_of(op):
    namespace, rest = op.split("::")
    name, _, overload = rest.partition(".")
    return getattr(getattr(getattr(torch.ops, namespace), name), overload or "default")


def add(op, args, outs, tol=0.0, note=None, orders=None):
    """A case with known outputs."""
    record = {"op": op, "args": [arg_json(a) for a in args]}
    if isinstance(outs, dict):
        record["out_list"] = [tensor_json(t) for t in outs["list"]]
    else:
        record["outs"] = [tensor_json(t, None if orders is None else orders[k]) for k, t in enumerate(outs)]
    if tol:
        record["tolerance"] = tol
    if note:
        record["note"] = note
    family.append(record)


def case(op, *args, out="float32", tol=0.0, note=None, orders=None, order=None):
    """A case whose outputs PyTorch computes. `out`: type of the output, a tuple for several, ("list", n, type) for a list."""
    fn = schema_of(op)
    ins = [a for a in fn._schema.arguments if not a.is_out]
    assert len(ins) == len(args), (op, [a.name for a in ins], len(args))
    positional, keyword = [], {}
    for a, value in zip(ins, args):
        if a.kwarg_only:
            keyword[a.name] = plain(value)
        else:
            positional.append(plain(value))
    out_names = [a.name for a in fn._schema.arguments if a.is_out]
    if isinstance(out, tuple) and out[0] == "list":
        name, _, overload = op.split("::")[1].partition(".")  # the out forms want outputs of the right shape
        functional = getattr(getattr(torch.ops.aten, name), overload.removesuffix("out").rstrip("_") or "default")
        outs = functional(*positional, **keyword)
        assert len(outs) == out[1]
        add(op, args, {"list": outs}, tol, note)
        return
    types = out if isinstance(out, tuple) else (out,)
    outs = [torch.empty(0, dtype=DTYPES[t]) for t in types]
    keyword.update(zip(out_names, outs))
    fn(*positional, **keyword)
    add(op, args, outs, tol, note, orders if orders is not None else None if order is None else [order] * len(outs))


CL = [0, 2, 3, 1]
SPECIAL = [0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 1.5, 2.5, -2.5, 3.25, INF, -INF, NAN, 1e-40, 88.0, -88.0, 1e30, -1e30]


def unary():
    begin("unary")
    for name in "acos acosh asin asinh atan atanh cos cosh erf exp expm1 log log10 log1p log2 reciprocal rsqrt sigmoid silu " \
                "sin sinh sqrt tan tanh".split():
        exact = name == "reciprocal"
        values = [v for v in SPECIAL if not (name in ("sin", "cos", "tan") and abs(v) > 1e6)]
        case(f"aten::{name}.out", of("float32", values), tol=0 if exact else 2e-6)
        case(f"aten::{name}.out", floats(2, 3, 5), tol=0 if exact else 2e-6)
        if name != "silu":
            case(f"aten::{name}.out", tensor("int32", 5), tol=2e-6)
            case(f"aten::{name}.out", tensor("bool", 4), tol=2e-6)
    x = floats(40).abs()
    add("aten::sqrt.out", [x], [torch.sqrt(x.double()).float()], note="IEEE 754 demands the nearest; PyTorch's vector code is 1 ulp off")
    for name in "ceil floor round trunc sign abs relu".split():
        for d in ALL:
            if d == "bool" and name in ("ceil", "floor", "round", "trunc", "abs", "relu"):
                continue
            x = of(d, [v for v in SPECIAL if v == v or name != "sign"]) if d == "float32" else tensor(d, 7)
            case(f"aten::{name}.out", x, out=d)
    case("aten::abs.out", of("int8", [-128, 127, -1]), out="int8", note="the smallest integer has no positive")
    for d in REALS:
        case("aten::neg.out", of(d, SPECIAL) if d == "float32" else tensor(d, 2, 3), out=d)
    for d in ALL:
        x = of(d, SPECIAL) if d == "float32" else tensor(d, 6, low=-1, high=1)
        for name in ("isnan", "isinf", "logical_not"):
            case(f"aten::{name}.out", x, out="bool")
        if d != "float32":
            case("aten::bitwise_not.out", x, out=d)
    case("aten::exp.out", torch.empty(0, 3), note="empty")
    case("aten::neg.out", of("float32", 2.5), note="rank 0")
    case("aten::neg.out", Placed(tensor("float32", 2, 3, 2, 4), CL), order=CL)
    case("aten::neg.out", Placed(tensor("float32", 2, 3, 2, 4), CL), note="channels-last in, contiguous out")


def binary():
    begin("binary")
    pairs = [((2, 3), (2, 3)), ((2, 3), (3,)), ((2, 1, 3), (4, 1)), ((), (2, 2)), ((1, 3, 2, 2), (1, 3, 1, 1)), ((0, 3), (1, 3)), ((70, 2), (70, 1))]
    for a, b in pairs:
        x, y = tensor("float32", *a), tensor("float32", *b, zero=False)
        for op in ("add", "sub"):
            case(f"aten::{op}.out", x, y, 1)
            case(f"aten::{op}.out", x, y, Number(0.5))
        for op in ("mul.out", "div.out", "minimum.out", "maximum.out", "fmod.Tensor_out", "remainder.Tensor_out", "floor_divide.out"):
            case(f"aten::{op}", x, y)
        case("aten::atan2.out", x, y, tol=2e-6)
        case("aten::pow.Tensor_Tensor_out", x, y, tol=2e-6)
        for op in ("eq", "ne", "lt", "le", "gt", "ge"):
            case(f"aten::{op}.Tensor_out", x, y, out="bool")
        for op in ("logical_and", "logical_or", "logical_xor"):
            case(f"aten::{op}.out", x, y, out="bool")
    for a, b in itertools.product(ALL, ALL):
        x, y = tensor(a, 6, low=-100, high=120), tensor(b, 6, low=-100, high=120, zero=False)
        t = NAMES[torch.result_type(x, y)]
        if not (a == "bool" and b == "bool"):
            case("aten::add.out", x, y, 2, out=t)
            case("aten::sub.out", x, y, 1, out=t) if "bool" not in (a, b) else None
            case("aten::maximum.out", x, y, out=t)
        case("aten::mul.out", x, y, out=t)
        case("aten::div.out", x, y)
        case("aten::eq.Tensor_out", x, y, out="bool")
        case("aten::ge.Tensor_out", x, y, out="bool")
        if "float32" not in (a, b):
            for op in ("and", "or", "xor"):
                case(f"aten::bitwise_{op}.Tensor_out", x, y, out=t)
    cl = Placed(tensor("float32", 1, 3, 2, 2), CL)
    case("aten::add.out", cl, tensor("float32", 1, 3, 2, 2), 1, order=CL, note="two dimension orders")
    case("aten::mul.out", cl, tensor("float32", 3, 1, 1), order=CL)
    case("aten::add.out", of("int32", [1, 2]), of("int32", [3, 4]), 1, out="float32", note="converted to the output's type")
    nan = of("float32", [NAN, 1.0, NAN, INF, -INF, 0.0, -0.0])
    for op in ("minimum.out", "maximum.out", "mul.out", "div.out", "fmod.Tensor_out"):
        case(f"aten::{op}", nan, of("float32", [1.0, NAN, NAN, 2.0, 0.0, -0.0, 0.0]))
    for s in (2, Number(0.25), -3, True):
        x = tensor("float32", 2, 4)
        case("aten::add.Scalar_out", x, s, 1)
        case("aten::sub.Scalar_out", x, s, 2) if s is not True else None
        case("aten::rsub.Scalar_out", x, s, 2) if s is not True else None
        for op in ("mul.Scalar_out", "div.Scalar_out", "fmod.Scalar_out", "remainder.Scalar_out"):
            case(f"aten::{op}", x, s)
        for op in ("eq", "ne", "lt", "le", "gt", "ge"):
            case(f"aten::{op}.Scalar_out", x, s, out="bool")
            case(f"aten::{op}.Scalar_out", tensor("int64", 5), s, out="bool")
            case(f"aten::{op}.Scalar_out", tensor("int8", 5), s, out="bool")
    for d in REALS:
        x, y = of(d, [7, 8, 9, 3, 100]), of(d, [2, 3, 9, 7, 10])
        if d not in ("uint8",):
            x, y = of(d, [7, -7, 8, -8, 9]), of(d, [2, 2, -3, -3, 9])
        for mode in ("trunc", "floor"):
            case("aten::div.out_mode", x, y, mode, out=d)
            case("aten::div.Scalar_mode_out", x, 2, mode, out=d)
        case("aten::div.out_mode", x, y, None)
        case("aten::fmod.Tensor_out", x, y, out=d)
        case("aten::remainder.Tensor_out", x, y, out=d)
        case("aten::floor_divide.out", x, y, out=d)
        case("aten::pow.Tensor_Scalar_out", of(d, [0, 1, 2, 3, 5]), 3, out=d, tol=2e-6)
        case("aten::pow.Tensor_Tensor_out", of(d, [0, 1, 2, 3, 5]), of(d, [0, 3, 2, 1, 3]), out=d, tol=2e-6)
        case("aten::pow.Scalar_out", 2, of(d, [0, 1, 2, 3, 5]), out=d, tol=2e-6)
        case("aten::mul.Scalar_out", x, 3, out=d)
        case("aten::add.Scalar_out", x, 100, 2, out=d, note="wraps")
    case("aten::mul.Scalar_out", of("int32", [1, 2, 3]), Number(0.5))
    case("aten::add.Scalar_out", of("bool", [True, False]), 2, 1, out="int64")
    case("aten::pow.Tensor_Scalar_out", of("float32", [0.0, 2.0, 4.0, -2.0, NAN, INF]), Number(0.5), tol=2e-6)
    case("aten::pow.Tensor_Scalar_out", of("float32", [0.5, 2.0, 4.0, -2.0]), Number(2.0))
    case("aten::pow.Tensor_Scalar_out", of("float32", [0.5, 2.0, 4.0, -2.0]), -1)
    case("aten::eq.Scalar_out", of("int64", [2**53 + 1, 2**53]), 2**53 + 1, out="bool", note="64-bit integers are not rounded")
    case("aten::add.out", of("int64", [2**62, 2**63 - 1]), of("int64", [2**62, 1]), 1, out="int64", note="wraps at 64 bits")
    for d in ("int8", "int32", "bool"):
        for op in ("and", "or", "xor"):
            case(f"aten::bitwise_{op}.Scalar_out", tensor(d, 6), True if d == "bool" else 6, out=d)


def activation():
    begin("activation")
    x = of("float32", SPECIAL)
    case("aten::hardtanh.out", x, 0, 6)
    case("aten::hardtanh.out", x, Number(-1.0), Number(1.0))
    case("aten::hardtanh.out", tensor("int8", 6), 0, 2, out="int8")
    case("aten::hardtanh.out", Placed(tensor("float32", 1, 3, 2, 4), CL), 0, 6, order=CL)
    case("aten::clamp.out", x, 0, 6)
    case("aten::clamp.out", x, None, Number(0.5))
    case("aten::clamp.out", x, Number(-0.5), None)
    case("aten::clamp.out", x, 3, -3, note="min above max: max wins")
    for d in REALS:
        case("aten::clamp.out", tensor(d, 2, 4), -1 if d != "uint8" else 1, 2, out=d)
    case("aten::clamp.out", tensor("int32", 5), Number(-0.5), Number(1.5))
    y = of("float32", [-1.0, 0.0, 2.0, NAN])
    case("aten::clamp.Tensor_out", y, of("float32", [0.0]), of("float32", [1.0, -1.0, 1.0, 1.0]))
    case("aten::clamp.Tensor_out", y, None, of("float32", [1.0, -1.0, NAN, 1.0]))
    case("aten::clamp.Tensor_out", tensor("int32", 2, 3), of("int32", [0, 1, 2]), None, out="int32")
    for slope in (Number(0.01), Number(0.25), 0):
        case("aten::leaky_relu.out", x, slope)
    case("aten::elu.out", x, Number(1.0), Number(1.0), Number(1.0), tol=2e-6)
    case("aten::elu.out", x, Number(1.5), Number(0.5), Number(2.0), tol=2e-6)
    plain_values = of("float32", [v for v in SPECIAL if math.isfinite(v)])
    case("aten::gelu.out", plain_values, "none", tol=4e-6)
    case("aten::gelu.out", floats(20), "none", tol=4e-6)
    case("aten::gelu.out", floats(20), "tanh", tol=4e-6)
    case("aten::hardsigmoid.out", x, tol=2e-7)
    case("aten::hardswish.out", plain_values, tol=2e-7)
    case("aten::logit.out", of("float32", [0.0, 0.25, 0.5, 1.0, 2.0, -1.0]), None, tol=2e-6)
    case("aten::logit.out", of("float32", [0.0, 0.25, 0.5, 1.0, 2.0, -1.0]), Number(0.125), tol=2e-6)
    for d in ALL:
        case("aten::where.self_out", tensor("bool", 2, 3), tensor(d, 2, 3), tensor(d, 3), out=d)
    case("aten::where.self_out", tensor("bool", 2, 1), tensor("int64", 1, 3), tensor("float32", 1))
    case("aten::where.self_out", tensor("bool", 3, 1, 1), tensor("float32", 2, 2), of("float32", NAN))
    case("aten::masked_fill.Scalar_out", tensor("float32", 2, 3), tensor("bool", 3), Number(-INF))
    case("aten::masked_fill.Scalar_out", tensor("int32", 2, 3), tensor("bool", 2, 1), 7, out="int32")


def copies():
    begin("copies")
    values = {"float32": [0.0, -0.0, 1.75, -1.75, 300.5, -129.0, 255.0, 2.0e9], "bool": [True, False],
              "int64": [0, 1, -1, 300, -129, 2**40 + 5, 2**53 + 1], "int32": [0, 1, -1, 300, 70000, -2**31], "int16": [0, -1, 300, -129],
              "int8": [0, -1, 127, -128], "uint8": [0, 1, 128, 255]}
    for a, b in itertools.product(ALL, ALL):
        x = of(a, values[a])
        if a == "float32" and b in ("uint8", "int8", "int16"):
            x = of(a, values[a][:7])
        case("aten::_to_copy.out", x, False, None, out=b)
        add("dim_order_ops::_to_dim_order_copy.out", [x, False, [0]], [x.to(DTYPES[b])])
    t = tensor("float32", 2, 3, 2, 4)
    for op in ("dim_order_ops::_to_dim_order_copy.out", "dim_order_ops::_clone_dim_order.out"):
        add(op, [t, False, CL], [t], orders=[CL])
        add(op, [Placed(t, CL), False, [0, 1, 2, 3]], [t])
        add(op, [Placed(t, CL), False, None], [t], orders=[CL])
    add("dim_order_ops::_to_dim_order_copy.out", [Placed(t, CL), False, [0, 1, 2, 3]], [t.to(torch.int32)], note="both at once")
    for d in ALL:
        case("aten::clone.out", tensor(d, 2, 3), None, out=d)
    for op in ("alias_copy", "detach_copy", "lift_fresh_copy"):
        case(f"aten::{op}.out", tensor("int16", 2, 3), out="int16")
    case("aten::copy.out", tensor("float32", 2, 3), tensor("float32", 3), False)
    case("aten::copy.out", tensor("float32", 2, 3), tensor("int64", 2, 1), False)
    s = tensor("float32", 2, 3)
    add("aten::copy_", [tensor("float32", 2, 3), s, False], [s])
    add("aten::copy_", [tensor("int8", 2, 3), of("float32", [1.5, -2.5, 3.0]), False], [of("int8", [[1, -2, 3], [1, -2, 3]])])


def shapes():
    begin("shapes")
    x = tensor("float32", 2, 3, 4)
    for size in ([6, 4], [24], [-1, 2], [2, 3, 2, 2], [1, 2, 3, 4, 1]):
        case("aten::view_copy.out", x, size)
    case("aten::view_copy.out", torch.empty(0, 3), [3, 0])
    case("aten::view_copy.out", of("int64", 5), [1, 1], out="int64")
    t = tensor("float32", 1, 4, 1, 1)
    add("aten::view_copy.out", [Placed(t, CL), [1, 4]], [t.reshape(1, 4)], note="channels-last, but the bytes lie the same")
    for d in ALL:
        case("aten::permute_copy.out", tensor(d, 2, 3, 4), [2, 0, 1], out=d)
    for dims in ([0, 2, 3, 1], [0, 3, 1, 2], [3, 2, 1, 0], [0, 1, -1, -2]):
        case("aten::permute_copy.out", tensor("float32", 2, 3, 2, 4), dims)
    case("aten::permute_copy.out", Placed(tensor("float32", 2, 3, 2, 4), CL), [0, 2, 3, 1])
    case("aten::permute_copy.out", of("float32", 1.5), [])
    case("aten::transpose_copy.int_out", x, 0, -1)
    case("aten::transpose_copy.int_out", x, 1, 1)
    case("aten::t_copy.out", tensor("int32", 2, 5), out="int32")
    case("aten::t_copy.out", tensor("float32", 5))
    for dim in (0, 1, 3, -1, -4):
        case("aten::unsqueeze_copy.out", x, dim)
    case("aten::unsqueeze_copy.out", of("bool", True), 0, out="bool")
    y = tensor("float32", 1, 3, 1, 2, 1)
    for dims in ([0], [0, 2], [1], [-1, 0], [0, 1, 2, 3, 4]):
        case("aten::squeeze_copy.dims_out", y, dims)
    for dim in (0, 1, -1):
        case("aten::squeeze_copy.dim_out", y, dim)
    case("aten::expand_copy.out", tensor("float32", 3, 1), [3, 4], False)
    case("aten::expand_copy.out", tensor("int8", 3, 1), [2, -1, 4], False, out="int8")
    case("aten::expand_copy.out", of("float32", 2.0), [2, 2], False)
    case("aten::repeat.out", tensor("float32", 2, 3), [2, 2])
    case("aten::repeat.out", tensor("int32", 2), [3, 1, 2], out="int32")
    case("aten::repeat.out", tensor("float32", 2), [0])
    for dims in ([0], [-1], [0, 2], [0, 1, 2], []):
        case("aten::flip.out", x, dims)
    case("aten::flip.out", Placed(tensor("float32", 1, 3, 2, 4), CL), [3], order=CL)
    case("aten::flip.out", torch.empty(0, 2), [0, 1])
    case("aten::pixel_shuffle.out", tensor("float32", 2, 8, 2, 3), 2)
    case("aten::pixel_shuffle.out", tensor("int32", 9, 2, 1), 3, out="int32")
    case("aten::pixel_unshuffle.out", tensor("float32", 1, 2, 4, 6), 2)


def parts():
    begin("parts")
    x = tensor("float32", 3, 6, 2)
    for dim, start, end, step in ((1, None, None, 1), (1, 1, 5, 2), (1, -4, -1, 1), (0, 0, 100, 1), (1, 2**40, None, 1), (1, 0, 2**63 - 1, 4),
                                  (1, 4, 2, 1), (-1, 1, None, 1), (1, -100, 3, 2), (1, 1, 6, 2**30)):
        case("aten::slice_copy.Tensor_out", x, dim, start, end, step)
    case("aten::slice_copy.Tensor_out", tensor("bool", 5), 0, 1, None, 3, out="bool")
    for dim, index in ((0, 0), (1, -1), (2, 1), (-3, 2)):
        case("aten::select_copy.int_out", x, dim, index)
    case("aten::select_copy.int_out", tensor("int64", 4), 0, -2, out="int64")
    case("aten::slice_scatter.out", x, tensor("float32", 3, 2, 2), 1, 1, 5, 2)
    case("aten::slice_scatter.out", x, tensor("float32", 3, 6, 2), 1, None, None, 1)
    case("aten::select_scatter.out", x, tensor("float32", 3, 2), 1, -2)
    case("aten::split_with_sizes_copy.out", x, [1, 3, 2], 1, out=("list", 3, "float32"))
    case("aten::split_with_sizes_copy.out", tensor("int8", 5), [5, 0], 0, out=("list", 2, "int8"))
    case("aten::split_copy.Tensor_out", x, 4, 1, out=("list", 2, "float32"))
    case("aten::split_copy.Tensor_out", x, 3, -2, out=("list", 2, "float32"))
    case("aten::unbind_copy.int_out", x, 0, out=("list", 3, "float32"))
    case("aten::unbind_copy.int_out", tensor("int32", 2, 2), -1, out=("list", 2, "int32"))
    case("aten::cat.out", [x, tensor("float32", 3, 1, 2), tensor("float32", 3, 2, 2)], 1)
    case("aten::cat.out", [x, x], -1)
    case("aten::cat.out", [torch.empty(0), tensor("float32", 2, 2)], 0, note="an empty 1-D tensor is skipped")
    case("aten::cat.out", [tensor("int32", 2), tensor("float32", 3)], 0)
    case("aten::cat.out", [tensor("uint8", 2), tensor("int64", 3), tensor("bool", 1)], 0, out="int64")
    case("aten::cat.out", [tensor("float32", 0, 2), tensor("float32", 3, 2)], 0)
    add("aten::cat.out", [[Placed(t := tensor("float32", 1, 2, 2, 2), CL), Placed(t, CL)], 1], [torch.cat([t, t], 1)], orders=[CL])
    case("aten::stack.out", [tensor("float32", 2, 3)] * 2 + [tensor("float32", 2, 3)], 1)
    case("aten::stack.out", [of("int64", 3), of("int64", 4)], 0, out="int64")
    case("aten::stack.out", [tensor("float32", 2), tensor("float32", 2)], -1)
    for pads in ([1, 2], [0, 1, 2, 0], [-1, -1], [1, -2, -1, 0], [0, 0, 1, 1, 2, 0], []):
        case("aten::constant_pad_nd.out", x, pads, Number(0.5)) if pads != [-1, -1] else case("aten::constant_pad_nd.out", x, pads, 7)
    case("aten::constant_pad_nd.out", tensor("int8", 2, 2), [1, 1], -7, out="int8")
    add("aten::constant_pad_nd.out", [Placed(t := tensor("float32", 1, 2, 2, 2), CL), [1, 1, 1, 1], Number(-INF)],
        [torch.nn.functional.pad(t, [1, 1, 1, 1], value=-INF)], orders=[CL])


def reductions():
    begin("reductions")
    x = tensor("float32", 2, 4, 8)
    for dims, keep in (([2], False), ([-1], True), ([0], False), ([1, 2], False), ([0, 2], True), (None, False), ([], True), ([0, 1, 2], False)):
        case("aten::sum.IntList_out", x, dims, keep, None)
        case("aten::mean.out", x, dims, keep, None)
        case("aten::amax.out", x, dims or [], keep)
        case("aten::amin.out", x, dims or [], keep)
        case("aten::any.dims_out", tensor("bool", 2, 4, 8), dims, keep, out="bool") if dims != [] else None
        case("aten::var.correction_out", x, dims, 0, keep, tol=2e-6)
        case("aten::var.correction_out", x, dims, None, keep, tol=2e-6)
        case("aten::var.out", x, dims, True, keep, tol=2e-6)
    case("aten::var.correction_out", of("float32", [1.0]), None, 1, False, note="no degree of freedom: NaN")
    case("aten::var.correction_out", floats(3, 10), [1], Number(0.5), False, tol=2e-6)
    for d in ALL:
        y = tensor(d, 3, 4)
        case("aten::sum.IntList_out", y, [1], False, None, out="float32" if d == "float32" else "int64")
        case("aten::prod.int_out", y, 1, False, None, out="float32" if d == "float32" else "int64")
        case("aten::prod.out", tensor(d, 3), None, out="float32" if d == "float32" else "int64")
        case("aten::amax.out", y, [0], True, out=d)
        case("aten::amin.out", y, [], False, out=d)
        case("aten::max.unary_out", y, out=d)
        case("aten::min.unary_out", y, out=d)
        case("aten::any.all_out", y, out="uint8" if d == "uint8" else "bool")
        case("aten::any.out", y, 1, True, out="uint8" if d == "uint8" else "bool")
    case("aten::sum.IntList_out", tensor("int32", 3, 4), [1], False, DType(3), out="int32")
    case("aten::sum.IntList_out", tensor("int32", 3, 4), [1], False, DType(6))
    case("aten::mean.out", tensor("int32", 2, 4), [1], False, DType(6))
    case("aten::mean.dtype_out", x, None)
    case("aten::sum.IntList_out", torch.empty(2, 0), [1], False, None, note="an empty sum is 0")
    case("aten::mean.out", torch.empty(2, 0), [1], False, None, note="an empty mean is NaN")
    case("aten::sum.IntList_out", torch.empty(0, 2), [1], False, None)
    case("aten::prod.int_out", torch.empty(2, 0), 1, False, None)
    nan = of("float32", [[1.0, NAN, 2.0], [INF, -INF, 0.0]])
    for op in ("amax", "amin"):
        case(f"aten::{op}.out", nan, [1], False)
        case(f"aten::{op}.out", nan, [0], False)
    case("aten::any.all_out", of("float32", [0.0, NAN]), out="bool")
    case("aten::mean.out", Placed(tensor("float32", 2, 3, 2, 4), CL), [2, 3], True, None, order=CL)
    case("aten::mean.out", Placed(tensor("float32", 2, 4, 2, 4), CL), [1], False, None)
    case("aten::sum.IntList_out", of("float32", 2.5), [0], False, None)
    big = tensor("float32", 3, 130)
    case("aten::sum.IntList_out", big, [1], False, None, note="longer than a chunk")
    case("aten::sum.IntList_out", tensor("float32", 130, 3), [0], False, None)
    case("aten::amax.out", big, [1], False)
    for d in ALL:
        case("aten::cumsum.out", tensor(d, 3, 4), 1, None, out="float32" if d == "float32" else "int64")
    case("aten::cumsum.out", tensor("float32", 3, 4), 0, None)
    case("aten::cumsum.out", tensor("int32", 5), -1, DType(6))
    case("aten::cumsum.out", of("float32", 2.0), 0, None)


def orders():
    begin("order")
    ties = of("float32", [[1.0, 3.0, 3.0, 2.0], [NAN, 5.0, NAN, 1.0], [-0.0, 0.0, -1.0, -INF]])
    for dim in (0, 1, -1):
        for keep in (False, True):
            for op in ("argmax", "argmin"):
                case(f"aten::{op}.out", ties, dim, keep, out="int64")
            case("aten::max.dim_max", ties, dim, keep, out=("float32", "int64"))
            case("aten::min.dim_min", ties, dim, keep, out=("float32", "int64"))
    for d in REALS:
        y = tensor(d, 3, 5)
        case("aten::argmax.out", y, None, False, out="int64")
        case("aten::argmin.out", y, None, True, out="int64")
        case("aten::argmax.out", y, 1, False, out="int64")
        case("aten::max.dim_max", y, 0, False, out=(d, "int64"))
        distinct = of(d, [[5, 1, 9, 3], [2, 8, 4, 6]])
        case("aten::topk.values", distinct, 2, 1, True, True, out=(d, "int64"))
        case("aten::topk.values", distinct, 3, -1, False, True, out=(d, "int64"))
        case("aten::sort.values", distinct, 1, False, out=(d, "int64"))
        case("aten::sort.values", distinct, 0, True, out=(d, "int64"))
    case("aten::argmax.out", of("float32", 3.0), None, False, out="int64")
    case("aten::argmax.out", of("float32", 3.0), 0, False, out="int64")
    case("aten::topk.values", of("float32", [1.0, NAN, 3.0, INF]), 3, 0, True, True, out=("float32", "int64"), note="NaN is largest")
    case("aten::topk.values", of("float32", [1.0, NAN, 3.0, INF]), 3, 0, False, True, out=("float32", "int64"))
    case("aten::topk.values", tensor("float32", 4), 0, 0, True, True, out=("float32", "int64"))
    shuffled = list(range(200))
    rng.shuffle(shuffled)
    case("aten::topk.values", of("float32", shuffled), 7, 0, True, True, out=("float32", "int64"))
    case("aten::sort.values", of("int32", shuffled), 0, True, out=("int32", "int64"))
    for descending in (False, True):
        case("aten::sort.values_stable", of("float32", [2.0, 1.0, 2.0, NAN, 1.0, -INF, NAN, 0.0, -0.0]), True, 0, descending, out=("float32", "int64"))
        case("aten::sort.values_stable", tensor("bool", 9), True, 0, descending, out=("bool", "int64"))
        case("aten::sort.values_stable", tensor("int8", 3, 6), True, 1, descending, out=("int8", "int64"))
    case("aten::sort.values", of("float32", 3.0), 0, False, out=("float32", "int64"))


def softmax():
    begin("softmax")
    for op in ("_softmax", "_log_softmax"):
        for shape, dim in (((2, 5), 1), ((2, 5), 0), ((2, 3, 4), -2), ((70,), 0), ((), 0), ((1, 1000), 1)):
            case(f"aten::{op}.out", floats(*shape), dim, False, tol=1e-6 if op == "_softmax" else 3e-6)
        case(f"aten::{op}.out", of("float32", [100.0, -100.0, 0.0, -20.0, -87.0]), 0, False, tol=1e-6)
        case(f"aten::{op}.out", of("float32", [INF, 0.0]), 0, False)
        case(f"aten::{op}.out", of("float32", [NAN, 0.0]), 0, False)
        case(f"aten::{op}.out", of("float32", [-INF, 0.0, -INF]), 0, False)
        case(f"aten::{op}.out", of("float32", [-INF, -INF]), 0, False)
        case(f"aten::{op}.out", torch.empty(2, 0), 1, False)


def pools():
    begin("pools")
    x = tensor("float32", 2, 3, 7, 6)
    for kernel, stride, padding, dilation, ceil in (([2, 2], [], [0, 0], [1, 1], False), ([3, 3], [2, 2], [1, 1], [1, 1], False), ([3, 2], [2, 1], [1, 1], [1, 1], True),
                                                    ([2], [3], [1], [1], True), ([3, 3], [1, 2], [0, 1], [2, 1], False), ([2, 2], [2, 2], [0, 0], [2, 2], True)):
        case("aten::max_pool2d_with_indices.out", x, kernel, stride, padding, dilation, ceil, out=("float32", "int64"))
        if dilation == [1, 1] or dilation == [1]:
            for count_pad in (True, False):
                case("aten::avg_pool2d.out", x, kernel, stride, padding, ceil, count_pad, None, tol=1e-6)
            case("aten::avg_pool2d.out", x, kernel, stride, padding, ceil, True, 3, tol=1e-6)
    case("aten::max_pool2d_with_indices.out", of("float32", [[[NAN, -INF], [-INF, -INF]]]), [1, 2], [], [0, 0], [1, 1], False, out=("float32", "int64"))
    case("aten::max_pool2d_with_indices.out", tensor("int8", 2, 4, 4), [2, 2], [], [1, 1], [1, 1], False, out=("int8", "int64"))
    case("aten::avg_pool2d.out", tensor("float32", 2, 4, 4), [2, 2], [], [0, 0], False, True, None)
    case("aten::avg_pool2d.out", Placed(tensor("float32", 1, 3, 4, 4), CL), [2, 2], [], [0, 0], False, True, None, order=CL)
    case("aten::max_pool2d_with_indices.out", Placed(tensor("float32", 1, 3, 4, 4), CL), [2, 2], [], [0, 0], [1, 1], False, out=("float32", "int64"), order=CL)
    for size in ([1, 1], [2, 3], [7, 6], [9, 8], [3, 3]):
        case("aten::_adaptive_avg_pool2d.out", x, size, tol=1e-6)
    case("aten::_adaptive_avg_pool2d.out", tensor("float32", 2, 4, 4), [2, 2])


def resizing():
    begin("resizing")
    x = floats(1, 2, 4, 5)
    for align in (False, True):
        for size in ([8, 10], [3, 7], [4, 5], [1, 1], [5, 5], [2, 13]):
            case("aten::upsample_bilinear2d.vec_out", x, size, align, None, tol=1e-6)
        for scale in ([2.0, 2.0], [1.5, 0.75], [2.7, 1.3]):
            case("aten::upsample_bilinear2d.vec_out", x, None, align, scale, tol=4e-6)
    for size in ([8, 10], [3, 7], [4, 5], [1, 1], [2, 13]):
        case("aten::upsample_nearest2d.vec_out", x, size, None)
    for scale in ([2.0, 2.0], [1.5, 0.75], [2.7, 1.3], [4.0, 8.0]):
        case("aten::upsample_nearest2d.vec_out", x, None, scale)
    case("aten::upsample_nearest2d.vec_out", tensor("uint8", 1, 3, 2, 2), [4, 4], None, out="uint8")
    case("aten::upsample_bilinear2d.vec_out", Placed(floats(1, 3, 2, 2), CL), [4, 4], False, None, order=CL, tol=1e-6)
    case("aten::upsample_nearest2d.vec_out", Placed(tensor("float32", 2, 3, 2, 2), CL), [4, 4], None, order=CL)


def antialiased():
    begin("antialiased")
    x = floats(1, 2, 6, 7)
    for align in (False, True):
        for size in ([3, 3], [12, 14], [6, 7], [1, 1], [5, 2]):
            case("aten::_upsample_bilinear2d_aa.out", x, size, align, None, None, tol=2e-6)
    case("aten::_upsample_bilinear2d_aa.out", x, [3, 4], False, Number(0.5), Number(0.6), tol=2e-6)


def edges():
    begin("edges")
    x = tensor("float32", 2, 3, 4, 5)
    for pads in ([1, 2, 3, 0], [0, 0, 0, 0], [4, 4, 3, 3]):
        case("aten::reflection_pad2d.out", x, pads)
        case("aten::replication_pad2d.out", x, pads)
    case("aten::replication_pad2d.out", tensor("float32", 2, 1, 3), [2, 5, 7, 1])
    case("aten::reflection_pad1d.out", tensor("float32", 3, 4), [3, 1])
    case("aten::replication_pad1d.out", tensor("float32", 2, 3, 4), [1, 6])
    case("aten::reflection_pad2d.out", Placed(tensor("float32", 1, 3, 3, 3), CL), [1, 1, 1, 1], order=CL)
    for shifts, dims in (([1], [0]), ([-2], [3]), ([5, -1], [1, 2]), ([0, 100, -7], [0, -1, 2]), ([1, 1, 1, 1], [0, 1, 2, 3])):
        case("aten::roll.out", x, shifts, dims)
    case("aten::roll.out", tensor("int8", 7), [3], [0], out="int8")


def indices():
    begin("indices")
    x = tensor("float32", 4, 3, 2)
    case("aten::index_select.out", x, 0, of("int64", [3, 0, 0]))
    case("aten::index_select.out", x, 1, of("int32", [2, 1]))
    case("aten::index_select.out", x, -1, of("int64", []))
    case("aten::index_select.out", tensor("bool", 4), 0, of("int64", 2), out="bool")
    case("aten::index_select.out", of("int64", 7), 0, of("int64", [0]), out="int64")
    case("aten::embedding.out", tensor("float32", 5, 3), of("int64", [[0, 4], [2, 2]]), -1, False, False)
    case("aten::embedding.out", tensor("float32", 5, 3), of("int32", [1]), 0, False, False)
    index = torch.tensor([[[0, 3], [1, 2]], [[3, 3], [0, 0]]])
    case("aten::gather.out", x, 0, index, False)
    case("aten::gather.out", x, 1, torch.tensor([[[2, 0]], [[1, 1]]]), False)
    case("aten::gather.out", tensor("int8", 3, 4), -1, torch.tensor([[0], [3], [1]]), False, out="int8")
    case("aten::gather.out", of("float32", 2.0), 0, of("int64", 0), False)
    case("aten::scatter.src_out", x, 0, index, tensor("float32", 2, 2, 2))
    case("aten::scatter.value_out", x, 1, torch.tensor([[[2, 0]], [[1, 1]]]), Number(9.5))
    case("aten::scatter.value_out", tensor("int32", 5), 0, of("int64", [1, 4]), 7, out="int32")
    case("aten::scatter_add.out", x, 0, index, tensor("float32", 2, 2, 2))
    case("aten::scatter_add.out", tensor("int32", 3), 0, of("int64", [0, 0, 2, 0]), of("int32", [1, 2, 3, 4]), out="int32")
    i, j = of("int64", [0, -1, 2]), of("int64", [1, 1, 0])
    for where in ([i], [i, j], [None, j], [i, None, of("int64", [0])], [None, None, of("int64", [[1, 0], [0, 0]])], [of("int64", [[0], [1]]), of("int64", [0, 1, 2])],
                  [None, of("int64", [0, -1]), of("int64", 1)], [i, None, of("int64", [0, 1, 0])], [of("int64", 2)], [of("int32", [3, 3])]):
        case("aten::index.Tensor_out", x, where)
        case("aten::index_put.out", x, where, of("float32", 5.5), False)
    case("aten::index.Tensor_out", x, [torch.empty(0, dtype=torch.int64)])
    case("aten::index_put.out", x, [of("int64", [1, 1]), None, of("int64", [0, 0])], tensor("float32", 2, 3), True)
    case("aten::index_put.out", tensor("int64", 4), [of("int64", [0, 3, 0])], of("int64", [1, 2, 3]), True, out="int64")


def matrices():
    begin("matrices")
    for m, k, n in ((2, 3, 4), (1, 130, 70), (3, 1, 1), (2, 0, 3), (0, 2, 3)):
        a, b = tensor("float32", m, k), tensor("float32", k, n)
        case("aten::mm.out", a, b)
        case("aten::bmm.out", tensor("float32", 2, m, k), tensor("float32", 2, k, n))
        case("aten::addmm.out", tensor("float32", n), a, b, 1, 1)
        case("aten::addmm.out", tensor("float32", m, n), a, b, Number(0.5), Number(2.0))
        if k:
            case("aten::linear.out", a, tensor("float32", n, k), tensor("float32", n))
            case("aten::linear.out", tensor("float32", 2, m, k), tensor("float32", n, k), None)
    case("aten::mm.out", tensor("int32", 2, 3), tensor("int32", 3, 2), out="int32")
    case("aten::mm.out", tensor("int8", 2, 30, low=-100, high=100), tensor("int8", 30, 2, low=-100, high=100), out="int8", note="wraps")
    case("aten::addmm.out", tensor("int64", 2, 2), tensor("int64", 2, 3), tensor("int64", 3, 2), 2, 3, out="int64")


def convolutions():
    begin("convolution")

    def conv(in_shape, w_shape, bias=True, stride=(1,), padding=(0,), dilation=(1,), transposed=False, output_padding=(0,), groups=1, **kw):
        dims = len(in_shape) - 2
        spread = lambda v: list(v) * dims if len(v) == 1 else list(v)
        outs = w_shape[1] * groups if transposed else w_shape[0]
        x, w = tensor("float32", *in_shape), tensor("float32", *w_shape)
        b = tensor("float32", outs) if bias else None
        if kw.get("order"):
            x = Placed(x, CL)
        case("aten::convolution.out", x, w, b, spread(stride), spread(padding), spread(dilation), transposed, spread(output_padding), groups, **kw)

    conv((1, 2, 5, 6), (3, 2, 3, 3))
    conv((2, 2, 5, 6), (3, 2, 3, 3), bias=False, stride=(2,), padding=(1,))
    conv((1, 4, 5, 5), (4, 1, 3, 3), padding=(1,), groups=4)
    conv((1, 4, 7, 7), (6, 2, 3, 2), stride=(2, 1), padding=(2, 1), dilation=(2, 3), groups=2)
    conv((1, 3, 4, 4), (2, 3, 1, 1))
    conv((1, 2, 9), (3, 2, 3), stride=(2,), padding=(1,))
    conv((1, 2, 9), (4, 1, 4), groups=2, dilation=(2,))
    conv((1, 3, 4, 4), (3, 2, 3, 3), transposed=True, stride=(2,), padding=(1,), output_padding=(1,))
    conv((2, 4, 3, 3), (4, 3, 2, 3), transposed=True, stride=(2, 3), groups=2)
    conv((1, 2, 3, 4), (2, 2, 3, 3), transposed=True, dilation=(2,), bias=False)
    conv((1, 2, 5), (2, 3, 3), transposed=True, stride=(2,))
    conv((1, 3, 5, 5), (2, 3, 3, 3), padding=(1,), order=CL)


def normalisation():
    begin("normalisation")
    x = floats(2, 3, 4)
    case("aten::native_layer_norm.out", x, [4], floats(4), floats(4), Number(1e-5), out=("float32",) * 3, tol=4e-6)
    case("aten::native_layer_norm.out", x, [3, 4], None, None, Number(1e-3), out=("float32",) * 3, tol=4e-6)
    case("aten::native_layer_norm.out", x, [2, 3, 4], floats(2, 3, 4), None, Number(1e-5), out=("float32",) * 3, tol=4e-6)
    y = floats(2, 4, 3, 2)
    case("aten::native_group_norm.out", y, floats(4), floats(4), 2, 4, 6, 2, Number(1e-5), out=("float32",) * 3, tol=4e-6)
    case("aten::native_group_norm.out", y, None, None, 2, 4, 6, 4, Number(1e-5), out=("float32",) * 3, tol=4e-6)
    stats = (floats(4), floats(4).abs())
    case("aten::_native_batch_norm_legit_no_training.out", y, floats(4), floats(4), *stats, Number(0.1), Number(1e-5), out=("float32",) * 3, tol=4e-6)
    case("aten::_native_batch_norm_legit_no_training.out", y, None, None, *stats, Number(0.1), Number(1e-5), out=("float32",) * 3, tol=4e-6)


def making():
    begin("making")
    for d in ALL:
        case("aten::full.out", [2, 3], True if d == "bool" else 3, out=d)
        case("aten::zeros.out", [3], out=d)
        case("aten::ones.out", [1, 2], out=d)
        case("aten::full_like.out", tensor(d, 2, 2), 1, None, out=d)
        case("aten::scalar_tensor.out", 5, out=d) if d != "bool" else None
        if d != "bool":
            case("aten::arange.out", 5, out=d)
            case("aten::arange.start_out", 2, 11, 3, out=d)
    case("aten::full.out", [], Number(-0.0))
    case("aten::full.out", [2, 0], 1)
    case("aten::full.out", [2], Number(NAN))
    case("aten::fill.Scalar_out", tensor("float32", 2, 2), Number(2.5))
    case("aten::scalar_tensor.out", Number(2.5))
    case("aten::arange.start_out", Number(0.0), Number(1.0), Number(0.25))
    case("aten::arange.start_out", Number(0.5), Number(4.0), Number(1.5))
    case("aten::arange.start_out", 5, -3, -2, out="int64")
    case("aten::arange.start_out", 5, 5, 1, out="int64")
    case("aten::arange.out", Number(2.5))


def schemas(names):
    letters = {"Tensor": "t", "int": "i", "SymInt": "i", "bool": "b", "float": "n", "number": "n", "Scalar": "n", "List[int]": "I", "List[float]": "D",
               "List[Tensor]": "T", "List[Optional[Tensor]]": "Q", "str": "*"}
    result = {}
    for name in names:
        kinds = ""
        for a in schema_of(name)._schema.arguments:
            text = str(a.type)
            optional = text.startswith("Optional[")
            text = text[len("Optional["):-1] if optional else text
            letter = letters[text]
            if a.is_out or (a.alias_info is not None and a.alias_info.is_write):
                letter = "O" if letter == "T" else "o"
            kinds += letter + ("?" if optional and letter != "*" else "")
        result[name] = kinds
    return result


def main():
    torch.set_num_threads(1)
    folder = pathlib.Path(sys.argv[1])
    for make in (unary, binary, activation, copies, shapes, parts, reductions, orders, softmax, pools, resizing, indices, matrices, convolutions,
                 normalisation, making, antialiased, edges):
        make()
    for name, records in cases.items():
        lines = ",\n".join(json.dumps(r, separators=(",", ":")) for r in records)
        (folder / f"{name}.json").write_text(f"[\n{lines}\n]\n")
    table = (pathlib.Path(__file__).parent.parent / "src/runtime/operators/table.def").read_text()
    names = [line.split('"')[1] for line in table.splitlines() if line.startswith(("TALPA_OPERATOR(\"aten::", "TALPA_OPERATOR_WITH_ROOM(\"aten::"))]
    native = [n for n in names if n not in ("aten::sym_size.int", "aten::sym_numel", "aten::_local_scalar_dense")]
    (folder / "schemas.json").write_text(json.dumps(schemas(native), indent=0) + "\n")
    print(sum(len(r) for r in cases.values()), "cases,", len(native), "schemas, PyTorch", torch.__version__)


main()
