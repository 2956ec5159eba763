// What the server says of itself: its models, what they can do, the ranges of fields and the model's own defaults.

import { translate } from "./texts/texts.js";

const REQUEST = "ChatCompletionRequest";
/** The name of the tool that runs code of models. */
export const PYTHON = "code_interpreter";

export class Server {
  #fields = null; // the document that has them is larger than all of the page

  /** `hostedEntries` are the tools that the server runs, as the field `tools` names them. */
  constructor(index, models, hostedEntries) {
    this.version = index.version;
    this.keepsConversations = index.keeps_conversations;
    this.maxFileBytes = index.max_file_bytes; // null: it stores no files
    this.maxBodyBytes = index.max_body_bytes;
    this.maxMediaBytes = index.max_media_bytes; // of one picture, video or PDF
    this.maxPictures = index.max_images; // of one request; a page of a PDF is one
    this.maxVideos = index.max_videos;
    this.maxSoundBytes = index.max_audio_file_bytes ?? null;
    this.searchesFiles = index.searches_files;
    this.maxLogprobs = index.max_logprobs;
    this.takesMcpUrls = index.takes_mcp_urls; // a person may name MCP servers of one's own
    this.hasAdminKey = index.has_admin_key;
    this.modelsMemoryBytes = index.models_memory_bytes ?? null; // null: no limit
    this.demoModels = index.demo_models; // names of the small models in the package of Ouzel
    this.models = models;
    this.hostedTools = hostedEntries.map((entry) => ({ name: nameOf(entry), entry }));
  }

  get keepsFiles() {
    return this.maxFileBytes !== null;
  }

  get runsPython() {
    return this.hostedTools.some(({ name }) => name === PYTHON);
  }

  static async ask(api) {
    const index = await api.get("");
    const { data, hosted_tools: hosted = [] } = await api.get("v1/models");
    if (data.length === 0) throw new Error(translate("server.noModel"));
    return new Server(index, data.map((model) => new Model(model)), hosted);
  }

  get chattingModels() {
    return this.models.filter(({ whyNoChat }) => whyNoChat === "");
  }

  /** The model that turns speech into text, if possible one that is in memory; null: there is none. */
  get transcriber() {
    return this.#find("transcription");
  }

  /** The model that reads texts aloud, likewise. */
  get speaker() {
    return this.#find("speech");
  }

  /** Asks for the names of the voices in which texts are read aloud. */
  async voices(api) {
    if (this.speaker === null) return [];
    const { voices } = await api.get(`v1/audio/voices?model=${encodeURIComponent(this.speaker.name)}`);
    return voices.map(({ id }) => id);
  }

  #find(capability) {
    const found = this.models.filter(({ capabilities }) => capabilities.has(capability));
    return found.find(({ isInMemory }) => isInMemory) ?? found[0] ?? null;
  }

  /** Asks once more which models there are. A list without one leaves those that were known. */
  async loadModels(api) {
    const { data } = await api.get("v1/models");
    if (data.length > 0) this.models = data.map((model) => new Model(model));
  }

  /** Returns the model of this name; where there is none the first that chats, or the first. */
  model(name) {
    const isNamed = (model) => model.name === name;
    return this.models.find(isNamed) ?? this.models.find((model) => model.whyNoChat === "") ?? this.models[0];
  }

  /** Asks for the ranges of fields, where that has not been done. */
  async loadFields(api) {
    if (this.#fields !== null) return;
    const document = await api.get("v1/openapi.json");
    this.#fields = new Map(Object.entries(document.components.schemas[REQUEST].properties).map(toField));
  }

  /** Returns what a field of a request may hold; null until that is known. */
  field(name) {
    return this.#fields?.get(name) ?? null;
  }
}

class Model {
  constructor(object) {
    this.name = object.id;
    this.contextLength = object.context_length;
    this.capabilities = new Set(object.capabilities);
    this.inputs = new Set(object.architecture.input_modalities);
    this.parent = object.parent; // the model of an adapter
    this.state = object.state ?? null; // null: it stays in memory
    this.failure = object.failure ?? null; // why its last load failed
    this.diskBytes = object.disk_bytes ?? null;
    this.memoryBytes = object.memory_bytes ?? null;
  }

  /** Says why nobody can chat with it, and what it is for; empty where one can. */
  get whyNoChat() {
    if (this.capabilities.has("chat")) return "";
    if (this.capabilities.has("embedding")) return translate("server.forEmbeddings", { model: this.name });
    if (this.capabilities.has("rerank")) return translate("server.forRanking", { model: this.name });
    if (this.capabilities.has("transcription")) return translate("server.forTranscription", { model: this.name });
    if (this.capabilities.has("speech")) return translate("server.forSpeech", { model: this.name });
    return translate("server.noTemplate", { model: this.name });
  }

  get isInMemory() {
    return this.state === null || ["ready", "idle"].includes(this.state);
  }

  /** Tells whether it goes on with texts. */
  get completes() {
    return this.capabilities.has("completion");
  }

  /** Tells whether it fills in what is missing in a text. */
  get fillsIn() {
    return this.capabilities.has("infill");
  }

  get seesImages() {
    return this.inputs.has("image");
  }

  get seesVideos() {
    return this.inputs.has("video");
  }

  get readsPdfs() {
    return this.inputs.has("file");
  }

  /** Asks with which sampling parameters a chat would run that gives none; none where the model has no chat template. */
  async defaults(api) {
    if (!this.capabilities.has("chat")) return {};
    const messages = [{ role: "user", content: "?" }];
    const rendered = await api.post("v1/chat/completions/render", { model: this.name, messages });
    const { seed, max_tokens, ...parameters } = rendered.sampling_params; // these depend on the request
    return parameters;
  }
}

/** Returns the name of a tool that the server runs. */
function nameOf({ type, server_label: label }) {
  return label === undefined ? type : `${type}:${label}`;
}

/** Returns a field's name and what it may hold: its range where it is a number. */
function toField([name, schema]) {
  const alternatives = schema.anyOf ?? [schema];
  const number = alternatives.find((each) => each.type === "number" || each.type === "integer") ?? {};
  const field = {
    isInteger: number.type === "integer",
    minimum: number.minimum ?? number.exclusiveMinimum ?? null,
    maximum: number.maximum ?? number.exclusiveMaximum ?? null,
    excludesMinimum: number.exclusiveMinimum !== undefined,
    excludesMaximum: number.exclusiveMaximum !== undefined,
  };
  return [name, field];
}
