// Operations of OpenVINO over the kernels. The CPU plugin runs them by `evaluate`.
#include "openvino/core/extension.hpp"
#include "openvino/core/op_extension.hpp"
#include "openvino/op/op.hpp"
#include "product.h"

namespace ouzel {
namespace {

// The matrix of an operation. Inputs: rows or numbers of rows; cells u8 [bytes]; factors f32 [outputs].
class MatrixOperation : public ov::op::Op {
public:
    MatrixOperation() = default;
    explicit MatrixOperation(const ov::OutputVector& arguments) : Op(arguments) {}
    bool has_evaluate() const override { return true; }

    bool visit_attributes(ov::AttributeVisitor& visitor) override {
        visitor.on_attribute("outputs", outputs);
        visitor.on_attribute("inputs", inputs);
        visitor.on_attribute("scales", scales);
        visitor.on_attribute("has_offsets", has_offsets);
        return true;
    }

    int64_t outputs = 0, inputs = 0, scales = 1;
    bool has_offsets = false;

protected:
    Layout layout() const { return {size_t(outputs), size_t(inputs), int(scales), has_offsets}; }

    void copy_attributes(const MatrixOperation& other) {
        outputs = other.outputs, inputs = other.inputs, scales = other.scales, has_offsets = other.has_offsets;
    }

    // A matrix whose arrays have the lengths that its layout needs.
    void check_matrix() const {
        NODE_VALIDATION_CHECK(this, outputs > 0 && inputs > 0 && scales > 0 && layout().is_valid(), "invalid sizes: outputs ", outputs,
                              ", inputs ", inputs, ", scales ", scales);
        const ov::PartialShape cells = get_input_partial_shape(1), factors = get_input_partial_shape(2);
        NODE_VALIDATION_CHECK(this, get_input_element_type(1) == ov::element::u8 && cells == ov::PartialShape{int64_t(layout().bytes())},
                              "cells must be u8 [", layout().bytes(), "], given ", get_input_element_type(1), " ", cells);
        NODE_VALIDATION_CHECK(this, get_input_element_type(2) == ov::element::f32 && factors == ov::PartialShape{outputs},
                              "factors must be f32 [", outputs, "], given ", get_input_element_type(2), " ", factors);
    }

    static Matrix matrix_of(const Layout& layout, const ov::TensorVector& arguments) {
        return {layout, static_cast<const uint8_t*>(arguments[1].data(ov::element::u8))};
    }
};

// Rows [..., inputs] times the transpose of the matrix, plus a bias f32 [outputs] if there is a fourth input.
class Linear final : public MatrixOperation {
public:
    OPENVINO_OP("OuzelLinear", "ouzel_kernels", ov::op::Op);
    Linear() = default;

    bool visit_attributes(ov::AttributeVisitor& visitor) override {
        visitor.on_attribute("may_be_wide", may_be_wide);
        return MatrixOperation::visit_attributes(visitor);
    }

    void validate_and_infer_types() override {
        NODE_VALIDATION_CHECK(this, get_input_size() == 3 || get_input_size() == 4, "takes 3 or 4 inputs, given ", get_input_size());
        check_matrix();
        auto shape = get_input_partial_shape(0);
        NODE_VALIDATION_CHECK(this, get_input_element_type(0) == ov::element::f32, "rows must be f32, given ", get_input_element_type(0));
        NODE_VALIDATION_CHECK(this, shape.rank().is_static() && shape.size() > 0 && shape[shape.size() - 1].compatible(inputs),
                              "rows must end with ", inputs, " columns, given ", shape);
        if (get_input_size() == 4)
            NODE_VALIDATION_CHECK(this, get_input_element_type(3) == ov::element::f32 && get_input_partial_shape(3) == ov::PartialShape{outputs},
                                  "bias must be f32 [", outputs, "], given ", get_input_element_type(3), " ", get_input_partial_shape(3));
        shape[shape.size() - 1] = outputs;
        set_output_type(0, ov::element::f32, shape);
    }

    std::shared_ptr<ov::Node> clone_with_new_inputs(const ov::OutputVector& arguments) const override {
        auto node = std::make_shared<Linear>();
        node->copy_attributes(*this);
        node->may_be_wide = may_be_wide;
        node->set_arguments(arguments);
        node->validate_and_infer_types();
        return node;
    }

    bool evaluate(ov::TensorVector& results, const ov::TensorVector& arguments) const override {
        auto shape = arguments[0].get_shape();
        OPENVINO_ASSERT(shape.back() == size_t(inputs), "rows must have ", inputs, " columns, given ", shape);
        const size_t num_rows = arguments[0].get_size() / size_t(inputs);
        shape.back() = size_t(outputs);
        results[0].set_shape(shape);
        const Product product{matrix_of(layout(), arguments), arguments[2].data<const float>(),
                              arguments.size() == 4 ? arguments[3].data<const float>() : nullptr, may_be_wide};
        multiply(*find_level(), product, arguments[0].data<const float>(), num_rows, results[0].data<float>());
        return true;
    }

    bool may_be_wide = true;
};

// The rows of the matrix with these numbers, i32 or i64 [...]: f32 [..., inputs]. A number out of range gives a row of zeros.
class Embedding final : public MatrixOperation {
public:
    OPENVINO_OP("OuzelEmbedding", "ouzel_kernels", ov::op::Op);
    Embedding() = default;

    void validate_and_infer_types() override {
        NODE_VALIDATION_CHECK(this, get_input_size() == 3, "takes 3 inputs, given ", get_input_size());
        check_matrix();
        const auto type = get_input_element_type(0);
        NODE_VALIDATION_CHECK(this, type == ov::element::i32 || type == ov::element::i64, "numbers must be i32 or i64, given ", type);
        auto shape = get_input_partial_shape(0);
        NODE_VALIDATION_CHECK(this, shape.rank().is_static(), "numbers must have a known rank, given ", shape);
        shape.push_back(inputs);
        set_output_type(0, ov::element::f32, shape);
    }

    std::shared_ptr<ov::Node> clone_with_new_inputs(const ov::OutputVector& arguments) const override {
        auto node = std::make_shared<Embedding>();
        node->copy_attributes(*this);
        node->set_arguments(arguments);
        node->validate_and_infer_types();
        return node;
    }

    bool evaluate(ov::TensorVector& results, const ov::TensorVector& arguments) const override {
        auto shape = arguments[0].get_shape();
        shape.push_back(size_t(inputs));
        results[0].set_shape(shape);
        const Matrix matrix = matrix_of(layout(), arguments);
        const float* factors = arguments[2].data<const float>();
        float* to = results[0].data<float>();
        const bool is_long = arguments[0].get_element_type() == ov::element::i64;
        for (size_t i = 0; i < arguments[0].get_size(); i++, to += inputs) {
            const int64_t number = is_long ? arguments[0].data<const int64_t>()[i] : arguments[0].data<const int32_t>()[i];
            if (number < 0 || number >= outputs)
                std::fill_n(to, inputs, 0.f);
            else
                decode_output(matrix, factors, size_t(number), to);
        }
        return true;
    }
};

}  // namespace
}  // namespace ouzel

OPENVINO_CREATE_EXTENSIONS(std::vector<ov::Extension::Ptr>({
    std::make_shared<ov::OpExtension<ouzel::Linear>>(),
    std::make_shared<ov::OpExtension<ouzel::Embedding>>(),
}));
