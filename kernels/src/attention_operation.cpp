// The operation of OpenVINO that computes attention over the KV cache.
#include "attention.h"
#include "operation.h"

namespace ouzel {
namespace {

// Attention over the KV cache. Inputs: queries f32 [T, num_heads * head_size], keys and values f32 [T, num_kv_heads * head_size]; the
// caches of keys and values, whose bytes are f16 numbers in the order of context.h: i8 [N, num_kv_heads, 32, 2 * head_size]; or
// u8 numbers, scales and zero points: u8 [N, num_kv_heads, 32, head_size / 32 * 35]; or f32 numbers: i32 [N, num_kv_heads, 32,
// head_size]; past lengths [S], begins of the sequences' rows
// [S + 1], numbers of blocks [B], and their begins [S + 1], all i32; sinks f32 [num_heads] if has_sinks; begins of two-way tokens
// i32 [T] if has_two_way_tokens. The operation writes to the
// caches, which must not be copied on their way.
class AttentionOperation final : public Operation {
public:
    OPENVINO_OP("OuzelAttention", "ouzel_kernels", ov::op::Op);

    bool visit_attributes(ov::AttributeVisitor& visitor) override {
        visitor.on_attribute("num_heads", num_heads);
        visitor.on_attribute("num_kv_heads", num_kv_heads);
        visitor.on_attribute("head_size", head_size);
        visitor.on_attribute("scale", scale);
        visitor.on_attribute("softcap", softcap);
        visitor.on_attribute("window", window);
        visitor.on_attribute("has_sinks", has_sinks);
        visitor.on_attribute("has_two_way_tokens", has_two_way_tokens);
        visitor.on_attribute("writes_cache", writes_cache);
        return Operation::visit_attributes(visitor);
    }

    std::shared_ptr<ov::Node> clone_with_new_inputs(const ov::OutputVector& arguments) const override {
        auto node = std::make_shared<AttentionOperation>();
        node->num_heads = num_heads, node->num_kv_heads = num_kv_heads, node->head_size = head_size, node->scale = scale;
        node->softcap = softcap, node->window = window, node->has_sinks = has_sinks, node->has_two_way_tokens = has_two_way_tokens;
        node->writes_cache = writes_cache, node->program = program;
        node->set_arguments(arguments);
        node->validate_and_infer_types();
        return node;
    }

    void validate_and_infer_types() override {
        const size_t count = 9 + has_sinks + has_two_way_tokens;
        NODE_VALIDATION_CHECK(this, get_input_size() == count, "takes ", count, " inputs, given ", get_input_size());
        NODE_VALIDATION_CHECK(this, head_size > 0 && head_size % int64_t(LINE) == 0 && head_size <= int64_t(MOST_CHANNELS),
                              "head_size must be a multiple of ", LINE, " and at most ", MOST_CHANNELS, ", given ", head_size);
        NODE_VALIDATION_CHECK(this, num_kv_heads > 0 && num_heads > 0 && num_heads % num_kv_heads == 0,
                              "num_heads must be a multiple of num_kv_heads, given ", num_heads, " and ", num_kv_heads);
        NODE_VALIDATION_CHECK(this, window >= 0, "window must be 0 or more, given ", window);
        NODE_VALIDATION_CHECK(this, softcap >= 0, "softcap must be 0 or more, given ", softcap);
        const auto shape = check_input(0, ov::element::f32, {-1, num_heads * head_size});
        for (size_t i = 1; i < 3; i++) check_input(i, ov::element::f32, {-1, num_kv_heads * head_size});
        const auto type = cache_type() == CacheType::F16 ? ov::element::i8 : cache_type() == CacheType::U8 ? ov::element::u8 : ov::element::i32;
        const int64_t token_size = int64_t(block_bytes(cache_type(), size_t(head_size)) / BLOCK_TOKENS / type.size());
        for (size_t i = 3; i < 5; i++) check_input(i, type, {-1, num_kv_heads, int64_t(BLOCK_TOKENS), token_size});
        for (size_t i = 5; i < 9; i++) check_input(i, ov::element::i32, {-1});
        if (has_sinks) check_input(9, ov::element::f32, {num_heads});
        if (has_two_way_tokens) check_input(count - 1, ov::element::i32, {-1});
        set_output_type(0, ov::element::f32, shape);
    }

    ov::PartialShape output_shape(size_t, ov::PartialShape queries) const override { return queries; }

    bool evaluate(ov::TensorVector& results, const ov::TensorVector& arguments) const override {
        const size_t num_rows = count_rows(arguments[0], num_heads * head_size);
        AttentionRows rows{num_rows, arguments[0].data<const float>(), rows_like(arguments[1], num_kv_heads * head_size, num_rows),
                           rows_like(arguments[2], num_kv_heads * head_size, num_rows)};
        if (has_two_way_tokens) {
            const size_t begins = arguments.back().get_size();
            OPENVINO_ASSERT(begins == num_rows, "begins of two-way tokens of ", num_rows, " rows must be as many numbers, given ", begins);
            rows.two_way_begins = integers(arguments.back());
        }
        const size_t sequences = arguments[5].get_size(), blocks = arguments[3].get_shape()[0];
        OPENVINO_ASSERT(arguments[4].get_shape()[0] == blocks, "the caches have ", blocks, " and ", arguments[4].get_shape()[0], " blocks");
        for (size_t i : {6, 8})
            OPENVINO_ASSERT(arguments[i].get_size() == sequences + 1, "begins of ", sequences, " sequences must be ", sequences + 1,
                            " numbers, given ", arguments[i].get_size());
        const Sequences all{sequences, integers(arguments[6]), integers(arguments[5]), integers(arguments[7]), integers(arguments[8])};
        OPENVINO_ASSERT(size_t(all.block_begins[sequences]) <= arguments[7].get_size(), "there are ", arguments[7].get_size(),
                        " numbers of blocks, given an end of ", all.block_begins[sequences]);
        const Attention attention{size_t(num_heads), size_t(num_kv_heads), size_t(head_size), float(scale), float(softcap), size_t(window),
                                  has_sinks ? arguments[9].data<const float>() : nullptr, cache_type(), writes_cache};
        const Cache cache{blocks, bytes(arguments[3]), bytes(arguments[4])};
        results[0].set_shape(arguments[0].get_shape());
        attend(*find_level(), attention, all, cache, rows, results[0].data<float>());
        return true;
    }

    int64_t num_heads = 0, num_kv_heads = 0, head_size = 0, window = 0;
    double scale = 1, softcap = 0;
    bool has_sinks = false, has_two_way_tokens = false, writes_cache = true;

private:
    ov::PartialShape check_input(size_t input, ov::element::Type type, const ov::PartialShape& shape) const {
        const auto given = get_input_partial_shape(input);
        NODE_VALIDATION_CHECK(this, get_input_element_type(input) == type && given.compatible(shape), "input ", input, " must be ", type, " ", shape,
                              ", given ", get_input_element_type(input), " ", given);
        return given;
    }
    static const int32_t* integers(const ov::Tensor& tensor) { return tensor.data<const int32_t>(); }
    static uint8_t* bytes(const ov::Tensor& cache) { return static_cast<uint8_t*>(const_cast<void*>(cache.data())); }
    CacheType cache_type() const {
        const auto type = get_input_element_type(3);
        return type == ov::element::u8 ? CacheType::U8 : type == ov::element::i32 ? CacheType::F32 : CacheType::F16;
    }
};

}  // namespace

ov::Extension::Ptr attention_extension() { return std::make_shared<ov::OpExtension<AttentionOperation>>(); }

}  // namespace ouzel
