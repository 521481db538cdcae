#include "webapp/models.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "inspect/report.h"
#include "runtime/operators/all.h"

namespace talpa::webapp {
namespace {

/// Where the network's cycles go: a row a layer, for the page's analysis.
void put_layers(const inspect::Report& report, Model& model) {
    model.layers = host::Json::array();
    for (const auto& delegate : report.main_method().delegates) {
        if (model.target.empty()) model.target = delegate.npu;
        if (!delegate.network) continue;
        for (const auto& layer : delegate.network->layers)
            model.layers.push_back(
                {{"name", layer.name},
                 {"output", fmt::format("{}x{}x{}", layer.ofm_height, layer.ofm_width, layer.ofm_depth)},
                 {"cycles", layer.cycles},
                 {"macs", layer.macs},
                 {"weight_bytes", layer.weight_bytes},
                 {"bound", npu_model::bound_name(layer.bound)}});
        model.estimated_cycles += delegate.network->cost.cycles_total;
    }
}

/// What its user should know before a run.
std::string note(const Model& model) {
    std::string text = model.program.input.note;
    if (!model.program.firmware_lacks.empty())
        text +=
            fmt::format("{}the firmware will refuse it: {}", text.empty() ? "" : "; ", model.program.firmware_lacks);
    return text;
}

}  // namespace

host::Json Model::json() const {
    host::Json input{{"type", program.input_port.describe()},
                     {"bytes", program.input_port.size_bytes},
                     {"pictures", program.takes_pictures}};
    if (program.takes_pictures) {
        input["width"] = program.input.spec.width;
        input["height"] = program.input.spec.height;
    }
    return {{"id", id},
            {"name", name},
            {"uploaded", uploaded},
            {"bytes", program.bytes().size()},
            {"target", target.empty() ? host::Json() : host::Json(target)},
            {"input", std::move(input)},
            {"classes", program.classes},
            {"labels", labels.size()},
            {"estimated_cycles", estimated_cycles},
            {"note", note(*this)}};
}

host::Result<ModelPtr> make_model(classifier::BoardProgram program, classifier::Labels labels, bool uploaded,
                                  const std::string& id_of_labels) {
    auto model = std::make_shared<Model>();
    model->id = fmt::format("{:08x}{}{}", program.crc, id_of_labels.empty() ? "" : "-", id_of_labels);
    model->name = std::filesystem::path(program.name).stem().string();
    model->uploaded = uploaded;
    inspect::Options options;
    options.operators = runtime::all_operators();
    TRY_ASSIGN(const auto report, inspect::inspect_bytes(program.bytes(), program.name, options));
    put_layers(report, *model);
    if (!labels.empty() && program.classes != 0) TRY(labels.check_enough_for(program.classes));
    model->program = std::move(program);
    model->labels = std::move(labels);
    return model;
}

ModelPtr Models::add(ModelPtr model) {
    const std::scoped_lock lock(mutex_);
    std::erase_if(models_, [&](const ModelPtr& m) { return m->id == model->id && m->uploaded; });
    if (const auto there = std::ranges::find_if(models_, [&](const ModelPtr& m) { return m->id == model->id; });
        there != models_.end())
        return *there;
    models_.push_back(model);
    const auto uploads =
        static_cast<std::size_t>(std::ranges::count_if(models_, [](const ModelPtr& m) { return m->uploaded; }));
    if (uploads > max_uploads_)
        models_.erase(std::ranges::find_if(models_, [](const ModelPtr& m) { return m->uploaded; }));
    return model;
}

ModelPtr Models::find(const std::string& id) const {
    const std::scoped_lock lock(mutex_);
    for (const ModelPtr& model : models_)
        if (id.empty() || model->id == id) return model;
    for (const ModelPtr& model : models_)
        if (model->name == id) return model;
    return nullptr;
}

bool Models::remove(const std::string& id) {
    const std::scoped_lock lock(mutex_);
    return std::erase_if(models_, [&](const ModelPtr& m) { return m->id == id && m->uploaded; }) != 0;
}

std::vector<ModelPtr> Models::all() const {
    const std::scoped_lock lock(mutex_);
    return models_;
}

}  // namespace talpa::webapp
