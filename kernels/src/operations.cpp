// Operations of OpenVINO that multiply by matrices of few bits.
#include <limits>

#include "operation.h"
#include "product.h"

namespace ouzel {
namespace {

using Numbers = std::vector<int64_t>;

// An operation with matrices in cells. Its last inputs are the arrays of the matrices: for each matrix cells u8 [bytes],
// factors f32 [outputs], and a bias f32 [outputs] if it has one. Attributes describe the matrices, one number for each.
class MatrixOperation : public Operation {
public:
    bool visit_attributes(ov::AttributeVisitor& visitor) override {
        visitor.on_attribute("outputs", outputs);
        visitor.on_attribute("inputs", inputs);
        visitor.on_attribute("bits", bits);
        visitor.on_attribute("scales", scales);
        visitor.on_attribute("has_offsets", has_offsets);
        visitor.on_attribute("tables", tables);
        visitor.on_attribute("has_bias", has_bias);
        visitor.on_attribute("may_be_wide", may_be_wide);
        return Operation::visit_attributes(visitor);
    }

    Numbers outputs, inputs, bits, scales, has_offsets, tables, has_bias;
    bool may_be_wide = true;

protected:
    template <class Operation>
    std::shared_ptr<ov::Node> cloned(const ov::OutputVector& arguments) const {
        auto node = std::make_shared<Operation>();
        node->copy_from(*static_cast<const Operation*>(this));
        node->set_arguments(arguments);
        node->validate_and_infer_types();
        return node;
    }

    void copy_matrices(const MatrixOperation& other) {
        program = other.program;
        outputs = other.outputs, inputs = other.inputs, bits = other.bits, scales = other.scales;
        has_offsets = other.has_offsets, tables = other.tables, has_bias = other.has_bias, may_be_wide = other.may_be_wide;
    }

    Layout layout(size_t number) const {
        return {size_t(outputs[number]), size_t(inputs[number]), int(bits[number]), int(scales[number]), has_offsets[number] != 0,
                int(tables[number])};
    }

    // Checks the attributes, and the types and lengths of the arrays, which begin at the input `first`.
    void check_matrices(size_t count, size_t first) const {
        for (const Numbers* numbers : {&outputs, &inputs, &bits, &scales, &has_offsets, &tables, &has_bias})
            NODE_VALIDATION_CHECK(this, numbers->size() == count, "has ", count, " matrices, given attributes of ", numbers->size());
        size_t input = first;
        for (size_t i = 0; i < count; i++) {
            NODE_VALIDATION_CHECK(this, outputs[i] > 0 && inputs[i] > 0 && has_small_numbers(i) && layout(i).is_valid(), "invalid sizes: outputs ",
                                  outputs[i], ", inputs ", inputs[i], ", bits ", bits[i], ", scales ", scales[i], ", table ", tables[i]);
            check_array(input++, ov::element::u8, int64_t(layout(i).bytes()), "cells");
            check_array(input++, ov::element::f32, outputs[i], "factors");
            if (has_bias[i]) check_array(input++, ov::element::f32, outputs[i], "bias");
        }
        NODE_VALIDATION_CHECK(this, get_input_size() == input, "takes ", input, " inputs, given ", get_input_size());
    }

    // Whether the numbers that a layout has as `int` fit.
    bool has_small_numbers(size_t matrix) const {
        const auto is_small = [matrix](const Numbers& numbers) { return 0 <= numbers[matrix] && numbers[matrix] <= 8; };
        return is_small(bits) && is_small(scales) && is_small(tables);
    }

    void check_array(size_t input, ov::element::Type type, int64_t length, const char* name) const {
        NODE_VALIDATION_CHECK(this, input < get_input_size(), "lacks the input ", name);
        NODE_VALIDATION_CHECK(this, get_input_element_type(input) == type && get_input_partial_shape(input) == ov::PartialShape{length}, name,
                              " must be ", type, " [", length, "], given ", get_input_element_type(input), " ", get_input_partial_shape(input));
    }

    // The shape of rows f32 [..., columns].
    ov::PartialShape check_rows(size_t input, int64_t columns) const {
        NODE_VALIDATION_CHECK(this, input < get_input_size() && get_input_element_type(input) == ov::element::f32, "rows must be f32");
        const auto shape = get_input_partial_shape(input);
        NODE_VALIDATION_CHECK(this, shape.rank().is_static() && shape.size() > 0 && shape[shape.size() - 1].compatible(columns),
                              "rows must end with ", columns, " columns, given ", shape);
        return shape;
    }

    // A norm whose weight is the argument `input`, which then becomes the next one. Without a norm the epsilon is below 0.
    static RowNorm take_norm(const ov::TensorVector& arguments, size_t& input, double epsilon) {
        return epsilon >= 0 ? RowNorm{arguments[input++].data<const float>(), float(epsilon)} : RowNorm{};
    }

    std::vector<Product> products(const ov::TensorVector& arguments, size_t first) const {
        std::vector<Product> found;
        for (size_t i = 0; i < outputs.size(); i++) {
            Product product{{layout(i), arguments[first].data<const uint8_t>()}, arguments[first + 1].data<const float>(), nullptr};
            first += 2;
            if (has_bias[i]) product.bias = arguments[first++].data<const float>();
            found.push_back(product);
        }
        return found;
    }
};

// Rows [..., inputs] times the transpose of each matrix: an output [..., outputs] for each. Inputs: rows; with an epsilon of 0 or
// more the weight of an RMS norm [inputs] of the rows; with has_residual rows [..., outputs] that are added to the first product;
// if the first num_turned products are heads of head_size outputs, of which the first turned_size are turned: cos and sin
// [rows, turned_size / 2], unless turned_size is 0; with a head_epsilon of 0 or more, for each of these products the weight of an RMS norm [head_size] of the heads; for each of the first
// num_normed products the weight of an RMS norm [outputs] of the products, with the epsilon result_epsilon; matrices. The order is: norm
// of the products, residual, heads.
class Linear final : public MatrixOperation {
public:
    OPENVINO_OP("OuzelLinear", "ouzel_kernels", ov::op::Op);

    bool visit_attributes(ov::AttributeVisitor& visitor) override {
        visitor.on_attribute("epsilon", epsilon);
        visitor.on_attribute("has_residual", has_residual);
        visitor.on_attribute("head_size", head_size);
        visitor.on_attribute("turned_size", turned_size);
        visitor.on_attribute("num_turned", num_turned);
        visitor.on_attribute("head_epsilon", head_epsilon);
        visitor.on_attribute("num_normed", num_normed);
        visitor.on_attribute("result_epsilon", result_epsilon);
        return MatrixOperation::visit_attributes(visitor);
    }
    void copy_from(const Linear& other) {
        copy_matrices(other), epsilon = other.epsilon, has_residual = other.has_residual;
        head_size = other.head_size, turned_size = other.turned_size, num_turned = other.num_turned, head_epsilon = other.head_epsilon;
        num_normed = other.num_normed, result_epsilon = other.result_epsilon;
    }
    std::shared_ptr<ov::Node> clone_with_new_inputs(const ov::OutputVector& arguments) const override { return cloned<Linear>(arguments); }

    void validate_and_infer_types() override {
        NODE_VALIDATION_CHECK(this, !outputs.empty(), "needs a matrix");
        check_heads();
        check_result_norms();
        check_matrices(outputs.size(), first_array());
        for (size_t i = 1; i < outputs.size(); i++)
            NODE_VALIDATION_CHECK(this, inputs[i] == inputs[0], "matrices must have equally many inputs, given ", inputs[0], " and ", inputs[i]);
        const auto shape = check_rows(0, inputs[0]);
        if (has_norm()) check_array(1, ov::element::f32, inputs[0], "norm");
        if (has_residual) check_rows(has_norm() ? 2 : 1, outputs[0]);
        for (size_t i = 0; i < num_angles(); i++) check_rows(first_angle() + i, turned_size / 2);
        for (int64_t i = 0; has_head_norm() && i < num_turned; i++) check_array(first_head_norm() + i, ov::element::f32, head_size, "head norm");
        for (size_t i = 0; i < size_t(num_normed); i++) check_array(first_result_norm() + i, ov::element::f32, outputs[i], "norm of a product");
        set_output_size(outputs.size());
        for (size_t i = 0; i < outputs.size(); i++) set_output_type(i, ov::element::f32, output_shape(i, shape));
    }

    ov::PartialShape output_shape(size_t output, ov::PartialShape rows) const override {
        rows[rows.size() - 1] = outputs[output];
        return rows;
    }

    bool evaluate(ov::TensorVector& results, const ov::TensorVector& arguments) const override {
        auto shape = arguments[0].get_shape();
        Source source{arguments[0].data<const float>(), count_rows(arguments[0], inputs[0])};
        size_t input = 1;
        source.norm = take_norm(arguments, input, epsilon);
        Results made;
        if (has_residual) made.residual = rows_like(arguments[input], outputs[0], source.count);
        if (num_turned) {
            Heads& heads = made.heads;
            heads.size = size_t(head_size), heads.turned = size_t(turned_size), heads.epsilon = float(head_epsilon);
            if (num_angles()) {
                heads.cos = rows_like(arguments[first_angle()], turned_size / 2, source.count);
                heads.sin = rows_like(arguments[first_angle() + 1], turned_size / 2, source.count);
            }
            for (int64_t i = 0; i < num_turned; i++)
                heads.norm_weights.push_back(has_head_norm() ? arguments[first_head_norm() + i].data<const float>() : nullptr);
        }
        input = first_result_norm();
        for (int64_t i = 0; i < num_normed; i++) made.norms.push_back(take_norm(arguments, input, result_epsilon));
        std::vector<float*> to;
        for (size_t i = 0; i < outputs.size(); i++) {
            shape.back() = size_t(outputs[i]);
            results[i].set_shape(shape);
            to.push_back(results[i].data<float>());
        }
        multiply(*find_level(), source, products(arguments, first_array()), to, made, may_be_wide);
        return true;
    }

    double epsilon = -1, head_epsilon = -1, result_epsilon = -1;
    bool has_residual = false;
    int64_t head_size = 0, turned_size = 0, num_turned = 0, num_normed = 0;

private:
    void check_heads() const {
        NODE_VALIDATION_CHECK(this, num_turned >= 0 && num_turned <= int64_t(outputs.size()), "turns ", num_turned, " of ", outputs.size(), " products");
        NODE_VALIDATION_CHECK(this, !num_turned || (head_size > 0 && head_size % BLOCK == 0), "head_size must be a multiple of ", BLOCK, ", given ",
                              head_size);
        NODE_VALIDATION_CHECK(this, turned_size >= 0 && turned_size <= head_size && turned_size % 2 == 0, "turned_size must be even and at most ",
                              head_size, ", given ", turned_size);
        for (int64_t i = 0; i < num_turned; i++)
            NODE_VALIDATION_CHECK(this, outputs[i] % head_size == 0, "outputs must be heads of ", head_size, ", given ", outputs[i]);
    }
    void check_result_norms() const {
        NODE_VALIDATION_CHECK(this, num_normed >= 0 && num_normed <= int64_t(outputs.size()), "normalises ", num_normed, " of ", outputs.size(),
                              " products");
        NODE_VALIDATION_CHECK(this, !num_normed || result_epsilon >= 0, "result_epsilon must be 0 or more, given ", result_epsilon);
        NODE_VALIDATION_CHECK(this, !num_normed || !has_head_norm(), "products have a norm of their rows or of their heads, not both");
    }
    bool has_norm() const { return epsilon >= 0; }
    bool has_head_norm() const { return head_epsilon >= 0; }
    size_t first_angle() const { return 1 + (has_norm() ? 1 : 0) + (has_residual ? 1 : 0); }
    size_t num_angles() const { return num_turned && turned_size ? 2 : 0; }
    size_t first_head_norm() const { return first_angle() + num_angles(); }
    size_t first_result_norm() const { return first_head_norm() + (has_head_norm() ? size_t(num_turned) : 0); }
    size_t first_array() const { return first_result_norm() + size_t(num_normed); }
};

// x + result_norm(down(activation(gate(norm(x))) * up(norm(x)))), f32 [..., hidden]. Inputs: x; or, with four matrices, rows and the
// residual of x = residual + projected_norm(projection(rows)); the weights [hidden] of the RMS norms projected_norm, norm and
// result_norm, each if its epsilon is 0 or more; the matrices projection, gate, up, down.
class FeedForwardOperation final : public MatrixOperation {
public:
    OPENVINO_OP("OuzelFeedForward", "ouzel_kernels", ov::op::Op);

    bool visit_attributes(ov::AttributeVisitor& visitor) override {
        visitor.on_attribute("projected_epsilon", projected_epsilon);
        visitor.on_attribute("epsilon", epsilon);
        visitor.on_attribute("result_epsilon", result_epsilon);
        visitor.on_attribute("linear", linear);
        visitor.on_attribute("cubic", cubic);
        return MatrixOperation::visit_attributes(visitor);
    }
    void copy_from(const FeedForwardOperation& other) {
        copy_matrices(other), linear = other.linear, cubic = other.cubic;
        projected_epsilon = other.projected_epsilon, epsilon = other.epsilon, result_epsilon = other.result_epsilon;
    }
    std::shared_ptr<ov::Node> clone_with_new_inputs(const ov::OutputVector& arguments) const override {
        return cloned<FeedForwardOperation>(arguments);
    }

    void validate_and_infer_types() override {
        NODE_VALIDATION_CHECK(this, outputs.size() == 3 || outputs.size() == 4, "takes 3 or 4 matrices, given ", outputs.size());
        NODE_VALIDATION_CHECK(this, outputs.size() == 4 || !(projected_epsilon >= 0), "there is no projection whose product could be normalised");
        check_matrices(outputs.size(), first_array());
        const size_t gate = outputs.size() - 3, up = gate + 1, down = gate + 2;
        const int64_t hidden = outputs[down];
        NODE_VALIDATION_CHECK(this, inputs[gate] == hidden && inputs[up] == hidden && outputs[gate] == inputs[down] &&
                                        outputs[up] == inputs[down] && scales[gate] == scales[up] && (!gate || outputs[0] == hidden),
                              "the sizes of the matrices do not fit each other");
        const auto shape = check_rows(gate, hidden);
        if (gate) check_rows(0, inputs[0]);
        for (size_t input = first_norm(); input < first_array(); input++) check_array(input, ov::element::f32, hidden, "norm");
        set_output_type(0, ov::element::f32, shape);
    }

    ov::PartialShape output_shape(size_t, ov::PartialShape rows) const override {
        rows[rows.size() - 1] = outputs.back();
        return rows;
    }

    bool evaluate(ov::TensorVector& results, const ov::TensorVector& arguments) const override {
        const std::vector<Product> all = products(arguments, first_array());
        const size_t gate = outputs.size() - 3;
        const size_t count = count_rows(arguments[gate], outputs.back());
        if (gate) rows_like(arguments[0], inputs[0], count);
        results[0].set_shape(arguments[gate].get_shape());
        size_t input = first_norm();
        const RowNorm projected_norm = take_norm(arguments, input, projected_epsilon), norm = take_norm(arguments, input, epsilon);
        const RowNorm result_norm = take_norm(arguments, input, result_epsilon);
        const FeedForward layer{gate != 0, all[0], all[gate], all[gate + 1], all[gate + 2], projected_norm, norm, result_norm,
                                {float(linear), float(cubic)}, may_be_wide};
        feed_forward(*find_level(), layer, arguments[0].data<const float>(), gate ? arguments[1].data<const float>() : nullptr, count,
                     results[0].data<float>());
        return true;
    }

    double projected_epsilon = -1, epsilon = -1, result_epsilon = -1;
    double linear = 1, cubic = 0;  // of Gate

private:
    size_t first_norm() const { return outputs.size() - 2; }
    size_t first_array() const { return first_norm() + (projected_epsilon >= 0) + (epsilon >= 0) + (result_epsilon >= 0); }
};

// A mixture of experts, f32 [..., hidden]: the sum over the experts of a row of weight * down(activation(gate(x)) * up(x)). Inputs: rows
// [..., hidden]; the numbers of the experts i32 [..., chosen], and their weights f32 [..., chosen]; with has_residual rows
// [..., hidden] that are added; the matrices of all experts: gate and up [experts * 2 * inner, hidden], down [experts * hidden, inner].
class ExpertsOperation final : public MatrixOperation {
public:
    OPENVINO_OP("OuzelExperts", "ouzel_kernels", ov::op::Op);

    bool visit_attributes(ov::AttributeVisitor& visitor) override {
        visitor.on_attribute("experts", experts);
        visitor.on_attribute("has_residual", has_residual);
        visitor.on_attribute("linear", linear);
        visitor.on_attribute("cubic", cubic);
        visitor.on_attribute("limit", limit);
        visitor.on_attribute("up_offset", up_offset);
        return MatrixOperation::visit_attributes(visitor);
    }
    void copy_from(const ExpertsOperation& other) {
        copy_matrices(other), experts = other.experts, has_residual = other.has_residual;
        linear = other.linear, cubic = other.cubic, limit = other.limit, up_offset = other.up_offset;
    }
    std::shared_ptr<ov::Node> clone_with_new_inputs(const ov::OutputVector& arguments) const override {
        return cloned<ExpertsOperation>(arguments);
    }

    void validate_and_infer_types() override {
        NODE_VALIDATION_CHECK(this, outputs.size() == 2, "takes 2 matrices, given ", outputs.size());
        check_matrices(2, first_array());
        const int64_t hidden = inputs[0], inner = inputs[1], block = int64_t(BLOCK);
        NODE_VALIDATION_CHECK(this, experts > 0 && experts <= outputs[0] && hidden % block == 0 && inner % block == 0 &&
                                        outputs[0] == experts * 2 * inner && outputs[1] == experts * hidden,
                              "the sizes of the matrices do not fit ", experts, " experts");
        const auto shape = check_rows(0, hidden);
        NODE_VALIDATION_CHECK(this, get_input_element_type(1) == ov::element::i32, "experts must be i32, given ", get_input_element_type(1));
        const auto chosen = get_input_partial_shape(1);
        NODE_VALIDATION_CHECK(this, chosen.rank().is_static() && chosen.size() > 0 && chosen[chosen.size() - 1].is_static() &&
                                        chosen[chosen.size() - 1].get_length() > 0,
                              "the number of experts of a row must be known, and at least 1, given ", chosen);
        check_rows(2, chosen[chosen.size() - 1].get_length());
        if (has_residual) check_rows(3, hidden);
        NODE_VALIDATION_CHECK(this, limit > 0, "limit must be above 0, given ", limit);
        set_output_type(0, ov::element::f32, shape);
    }

    ov::PartialShape output_shape(size_t, ov::PartialShape rows) const override { return rows; }

    bool evaluate(ov::TensorVector& results, const ov::TensorVector& arguments) const override {
        const std::vector<Product> all = products(arguments, first_array());
        const size_t count = count_rows(arguments[0], inputs[0]), chosen = arguments[1].get_shape().back();
        OPENVINO_ASSERT(arguments[1].get_size() == count * chosen, "experts of ", count, " rows are needed, given ", arguments[1].get_shape());
        const Choices choices{chosen, arguments[1].data<const int32_t>(), rows_like(arguments[2], int64_t(chosen), count)};
        const float* residual = has_residual ? rows_like(arguments[3], inputs[0], count) : nullptr;
        results[0].set_shape(arguments[0].get_shape());
        const Gate activation{float(linear), float(cubic), float(limit), float(up_offset)};
        mix_experts(*find_level(), {size_t(experts), all[0], all[1], activation, may_be_wide}, choices, arguments[0].data<const float>(),
                    residual, count, results[0].data<float>());
        return true;
    }

    int64_t experts = 0;
    bool has_residual = false;
    double linear = 1, cubic = 0, limit = std::numeric_limits<double>::infinity(), up_offset = 0;  // of Gate

private:
    size_t first_array() const { return has_residual ? 4 : 3; }
};

// The rows of a matrix with these numbers, i32 or i64 [...]: f32 [..., inputs]. A number out of range gives a row of zeros.
class Embedding final : public MatrixOperation {
public:
    OPENVINO_OP("OuzelEmbedding", "ouzel_kernels", ov::op::Op);

    void copy_from(const Embedding& other) { copy_matrices(other); }
    std::shared_ptr<ov::Node> clone_with_new_inputs(const ov::OutputVector& arguments) const override { return cloned<Embedding>(arguments); }

    void validate_and_infer_types() override {
        check_matrices(1, 1);
        const auto type = get_input_element_type(0);
        NODE_VALIDATION_CHECK(this, type == ov::element::i32 || type == ov::element::i64, "numbers must be i32 or i64, given ", type);
        const auto shape = get_input_partial_shape(0);
        NODE_VALIDATION_CHECK(this, shape.rank().is_static(), "numbers must have a known rank, given ", shape);
        set_output_type(0, ov::element::f32, output_shape(0, shape));
    }

    ov::PartialShape output_shape(size_t, ov::PartialShape numbers) const override {
        numbers.push_back(inputs[0]);
        return numbers;
    }

    bool evaluate(ov::TensorVector& results, const ov::TensorVector& arguments) const override {
        auto shape = arguments[0].get_shape();
        shape.push_back(size_t(inputs[0]));
        results[0].set_shape(shape);
        const Product table = products(arguments, 1)[0];
        float* to = results[0].data<float>();
        const bool is_long = arguments[0].get_element_type() == ov::element::i64;
        for (size_t i = 0; i < arguments[0].get_size(); i++, to += inputs[0]) {
            const int64_t number = is_long ? arguments[0].data<const int64_t>()[i] : arguments[0].data<const int32_t>()[i];
            if (number < 0 || number >= outputs[0])
                std::fill_n(to, inputs[0], 0.f);
            else
                decode_output(table.matrix, table.factors, size_t(number), to);
        }
        return true;
    }
};

}  // namespace
}  // namespace ouzel

OPENVINO_CREATE_EXTENSIONS(std::vector<ov::Extension::Ptr>({
    std::make_shared<ov::OpExtension<ouzel::Linear>>(),
    std::make_shared<ov::OpExtension<ouzel::FeedForwardOperation>>(),
    std::make_shared<ov::OpExtension<ouzel::ExpertsOperation>>(),
    std::make_shared<ov::OpExtension<ouzel::Embedding>>(),
    ouzel::attention_extension(),
    ouzel::program_extension(),
}));
