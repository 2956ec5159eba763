// The parts that the operations share. OpenVINO's CPU plugin runs an operation by its function `evaluate`.
#pragma once
#include "openvino/core/extension.hpp"
#include "openvino/core/op_extension.hpp"
#include "openvino/op/op.hpp"

namespace ouzel {

// An operation of the kernels. All outputs are f32.
class Operation : public ov::op::Op {
public:
    bool has_evaluate() const override { return true; }

    bool visit_attributes(ov::AttributeVisitor& visitor) override {
        visitor.on_attribute("program", program);
        return true;
    }

    // The shape of an output, by the shape of the input 0.
    virtual ov::PartialShape output_shape(size_t output, ov::PartialShape rows) const = 0;

    int64_t program = -1;  // the number of the program that takes the operation in
};

// Counts the rows of a tensor. A dynamic shape has not shown yet that they have these columns.
inline size_t count_rows(const ov::Tensor& rows, int64_t columns) {
    const auto shape = rows.get_shape();
    OPENVINO_ASSERT(!shape.empty() && shape.back() == size_t(columns), "rows must have ", columns, " columns, given ", shape);
    return rows.get_size() / size_t(columns);
}

// The contents of a tensor of `count` rows.
inline const float* rows_like(const ov::Tensor& rows, int64_t columns, size_t count) {
    const size_t found = count_rows(rows, columns);
    OPENVINO_ASSERT(found == count, "as many rows as the other inputs have are needed: ", count, " rows of ", columns, " columns, given ", found);
    return rows.data<const float>();
}

ov::Extension::Ptr attention_extension();
ov::Extension::Ptr program_extension();

}  // namespace ouzel
