// An operation that takes other operations of the kernels in, and runs them one after the other.
//
// The plugin spends 20 to 40 us on each operation of a graph with dynamic shapes: it infers the shapes by a clone, and makes
// tensors of all inputs, also of constants. A program has none of this inside.
#include <map>
#include <mutex>

#include "openvino/op/constant.hpp"
#include "operation.h"

namespace ouzel {
namespace {

using Value = ov::Output<ov::Node>;

// Where the contents of an input are, or go to.
struct Place {
    enum Kind { ARGUMENT, CONSTANT, RESULT, MEMORY } kind;
    size_t number;
};

struct Step {
    std::shared_ptr<const Operation> operation;
    std::vector<Place> inputs, outputs;
};

// A result has the shape that an operation makes of the shape of its input 0; at the end of this chain of operations is an argument.
struct ShapeStep {
    const Operation* operation;
    size_t output;
};
struct ResultShape {
    std::vector<ShapeStep> steps;  // the last one first
    size_t argument;

    ov::PartialShape infer(ov::PartialShape shape) const {
        for (size_t i = steps.size(); i-- > 0;) shape = steps[i].operation->output_shape(steps[i].output, shape);
        return shape;
    }
};

struct Plan {
    std::vector<Step> steps;
    std::vector<Value> arguments;
    std::vector<ov::Tensor> constants;  // their memory belongs to constants that the operations hold
    std::vector<ResultShape> shapes;    // one for each result
    size_t num_memories = 0;
};

// The operation of ours that makes a value, or nullptr.
std::shared_ptr<Operation> find_operation(const Value& value) { return std::dynamic_pointer_cast<Operation>(value.get_node_shared_ptr()); }

// Finds the operations of a program, in the order in which they run.
class Planner {
public:
    // The results are outputs of our operations.
    explicit Planner(const ov::OutputVector& results) : program_(find_operation(results[0])->program) {
        for (const Value& result : results) visit(result);
        for (size_t i = 0; i < results.size(); i++) places_[results[i]] = {Place::RESULT, i};
        find_last_readers();
        for (size_t i = 0; i < order_.size(); i++) add_step(i);
        for (const Value& result : results) plan_.shapes.push_back(shape_of(result));
    }
    Plan take() { return std::move(plan_); }

private:
    bool is_inside(const Value& value) const {
        const auto operation = find_operation(value);
        return operation && operation->program == program_;
    }

    void visit(const Value& value) {
        if (places_.count(value)) return;
        const auto node = value.get_node_shared_ptr();
        if (const auto constant = ov::as_type_ptr<ov::op::v0::Constant>(node)) {
            places_[value] = {Place::CONSTANT, plan_.constants.size()};
            plan_.constants.emplace_back(constant->get_element_type(), constant->get_shape(), const_cast<void*>(constant->get_data_ptr()));
        } else if (!is_inside(value)) {
            places_[value] = {Place::ARGUMENT, plan_.arguments.size()};
            plan_.arguments.push_back(value);
        } else {
            for (const Value& input : node->input_values()) visit(input);
            for (const Value& output : node->outputs()) places_[output] = {Place::MEMORY, 0};  // the number is chosen later
            order_.push_back(find_operation(value));
        }
    }

    void find_last_readers() {
        for (size_t i = 0; i < order_.size(); i++)
            for (const Value& input : order_[i]->input_values()) last_reader_[input] = i;
    }

    void add_step(size_t number) {
        const auto& operation = order_[number];
        Step step{operation, {}, {}};
        for (const Value& input : operation->input_values()) step.inputs.push_back(places_.at(input));
        for (const Value& output : operation->outputs()) {
            Place& place = places_.at(output);
            if (place.kind == Place::MEMORY) place.number = take_memory();
            step.outputs.push_back(place);
        }
        plan_.steps.push_back(step);
        for (const auto& [value, reader] : last_reader_)
            if (reader == number && places_.at(value).kind == Place::MEMORY) free_.push_back(places_.at(value).number);
    }

    size_t take_memory() {
        if (free_.empty()) return plan_.num_memories++;
        const size_t number = free_.back();
        free_.pop_back();
        return number;
    }

    ResultShape shape_of(Value value) const {
        ResultShape found;
        for (; is_inside(value); value = value.get_node()->input_value(0))
            found.steps.push_back({find_operation(value).get(), value.get_index()});
        found.argument = places_.at(value).number;
        return found;
    }

    int64_t program_;
    std::map<Value, Place> places_;
    std::map<Value, size_t> last_reader_;
    std::vector<std::shared_ptr<Operation>> order_;
    std::vector<size_t> free_;
    Plan plan_;
};

// The shapes of the outputs of a program, without its inputs. The plugin infers the shapes at each step by a clone whose inputs have
// static shapes.
class Shapes final : public ov::op::Op {
public:
    OPENVINO_OP("OuzelShapes", "ouzel_kernels", ov::op::Op);
    explicit Shapes(const std::vector<ov::PartialShape>& shapes) : shapes_(shapes) { validate_and_infer_types(); }
    void validate_and_infer_types() override {
        set_output_size(shapes_.size());
        for (size_t i = 0; i < shapes_.size(); i++) set_output_type(i, ov::element::f32, shapes_[i]);
    }
    std::shared_ptr<ov::Node> clone_with_new_inputs(const ov::OutputVector&) const override { return std::make_shared<Shapes>(shapes_); }

private:
    std::vector<ov::PartialShape> shapes_;
};

// A program is made with the values that are its results as inputs. It takes the operations in that have the number of the first one's
// program. Then its inputs are the values from outside that these operations read.
class Program final : public ov::op::Op {
public:
    OPENVINO_OP("OuzelProgram", "ouzel_kernels", ov::op::Op);
    bool has_evaluate() const override { return true; }
    bool visit_attributes(ov::AttributeVisitor&) override { return true; }

    std::shared_ptr<ov::Node> clone_with_new_inputs(const ov::OutputVector& arguments) const override {
        if (infers_shapes(arguments)) return std::make_shared<Shapes>(infer(arguments));
        auto node = std::make_shared<Program>();
        node->plan_ = plan_;
        node->set_arguments(arguments);
        node->validate_and_infer_types();
        return node;
    }

    void validate_and_infer_types() override {
        if (!plan_) {
            for (const Value& result : input_values())
                NODE_VALIDATION_CHECK(this, find_operation(result), "takes operations of the kernels, given ", result);
            NODE_VALIDATION_CHECK(this, get_input_size(), "needs a result");
            plan_ = std::make_shared<Plan>(Planner(input_values()).take());
            set_arguments(plan_->arguments);
        }
        NODE_VALIDATION_CHECK(this, get_input_size() == plan_->arguments.size(), "takes ", plan_->arguments.size(), " inputs, given ",
                              get_input_size());
        for (size_t i = 0; i < get_input_size(); i++)
            NODE_VALIDATION_CHECK(this, is_like(get_input_element_type(i), plan_->arguments[i].get_element_type()) &&
                                            get_input_partial_shape(i).compatible(plan_->arguments[i].get_partial_shape()),
                                  "input ", i, " must be ", plan_->arguments[i].get_element_type(), " ", plan_->arguments[i].get_partial_shape());
        const auto shapes = infer(input_values());
        set_output_size(shapes.size());
        for (size_t i = 0; i < shapes.size(); i++) set_output_type(i, ov::element::f32, shapes[i]);
    }

    bool evaluate(ov::TensorVector& results, const ov::TensorVector& arguments) const override {
        Workspace workspace = take_workspace();
        for (size_t i = 0; i < plan_->steps.size(); i++) {
            const Step& step = plan_->steps[i];
            Call& call = workspace[i];
            for (size_t j = 0; j < step.inputs.size(); j++) place(step.inputs[j], call.inputs[j], results, arguments);
            for (size_t j = 0; j < step.outputs.size(); j++) place(step.outputs[j], call.outputs[j], results, arguments);
            if (!step.operation->evaluate(call.outputs, call.inputs)) return false;
        }
        give_back(std::move(workspace));
        return true;
    }

private:
    // The plugin makes i64 numbers i32.
    static bool is_like(ov::element::Type given, ov::element::Type wanted) {
        return given == wanted || (given == ov::element::i32 && wanted == ov::element::i64);
    }

    bool infers_shapes(const ov::OutputVector& arguments) const {
        const bool is_dynamic = get_output_size() && get_output_partial_shape(0).is_dynamic();
        return is_dynamic && arguments[plan_->shapes[0].argument].get_partial_shape().is_static();
    }

    std::vector<ov::PartialShape> infer(const ov::OutputVector& arguments) const {
        std::vector<ov::PartialShape> shapes;
        for (const ResultShape& shape : plan_->shapes) shapes.push_back(shape.infer(arguments[shape.argument].get_partial_shape()));
        return shapes;
    }

    // The tensors of each step. Constants, and memory for values between operations, stay from call to call.
    struct Call {
        ov::TensorVector inputs, outputs;
    };
    using Workspace = std::vector<Call>;

    // Replaces the tensor if the place is an argument or a result.
    static void place(const Place& place, ov::Tensor& tensor, const ov::TensorVector& results, const ov::TensorVector& arguments) {
        if (place.kind == Place::ARGUMENT) tensor = arguments[place.number];
        if (place.kind == Place::RESULT) tensor = results[place.number];
    }

    Workspace make_workspace() const {
        std::vector<ov::Tensor> memories;
        for (size_t i = 0; i < plan_->num_memories; i++) memories.emplace_back(ov::element::f32, ov::Shape{0});
        const auto find = [&](const Place& place) {
            if (place.kind == Place::CONSTANT) return plan_->constants[place.number];
            return place.kind == Place::MEMORY ? memories[place.number] : ov::Tensor();
        };
        Workspace made;
        for (const Step& step : plan_->steps) {
            Call call;
            for (const Place& input : step.inputs) call.inputs.push_back(find(input));
            for (const Place& output : step.outputs) call.outputs.push_back(find(output));
            made.push_back(std::move(call));
        }
        return made;
    }

    // Calls at the same time have workspaces of their own.
    Workspace take_workspace() const {
        const std::lock_guard<std::mutex> guard(mutex_);
        if (unused_.empty()) return make_workspace();
        Workspace found = std::move(unused_.back());
        unused_.pop_back();
        return found;
    }
    void give_back(Workspace workspace) const {
        const std::lock_guard<std::mutex> guard(mutex_);
        unused_.push_back(std::move(workspace));
    }

    std::shared_ptr<Plan> plan_;
    mutable std::mutex mutex_;
    mutable std::vector<Workspace> unused_;
};

}  // namespace

ov::Extension::Ptr program_extension() { return std::make_shared<ov::OpExtension<Program>>(); }

}  // namespace ouzel
