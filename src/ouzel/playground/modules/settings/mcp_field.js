// MCP servers of one's own, which the server of the page calls: a label, a URL, and an authorization that stays in the tab.

import { button, element, field, fill } from "../dom.js";
import { translate } from "../texts/texts.js";
import { keepMcpKey, mcpKey } from "./mcp_keys.js";

const MAX_SERVERS = 20;

export class McpField {
  #list = element("ul", { class: "mcp-servers", "aria-label": translate("mcp.servers") });

  constructor(settings, { onChange }) {
    Object.assign(this, { settings, onChange });
  }

  draw() {
    this.#drawList();
    return element("div", { class: "own-mcp" }, element("p", { class: "field-label", text: translate("mcp.servers") }), this.#list, this.#form());
  }

  #drawList() {
    fill(this.#list, ...this.settings.values.mcpServers.map((server, index) => this.#row(server, index)));
    this.#list.hidden = this.settings.values.mcpServers.length === 0;
  }

  #row({ label, url, isUsed }, index) {
    const box = element("input", { type: "checkbox", checked: isUsed });
    box.addEventListener("change", () => this.#change((servers) => servers.with(index, { label, url, isUsed: box.checked })));
    const remove = button(translate("mcp.remove", { label }), () => this.#remove(url, index), { icon: "×" });
    const hint = mcpKey(url) ? translate("mcp.hasKey") : "";
    const text = element("span", {}, element("bdi", { text: label }), element("small", { class: "muted", dir: "ltr", text: url }), hint ? element("small", { text: hint }) : null);
    return element("li", {}, element("label", { class: "check" }, box, text), remove);
  }

  #remove(url, index) {
    keepMcpKey(url, "");
    this.#change((servers) => servers.toSpliced(index, 1));
    this.#drawList();
    (this.#list.querySelector("input") ?? this.#list.parentElement.querySelector("form input")).focus();
  }

  #form() {
    const label = element("input", { id: "mcp-label", required: true, maxlength: 64, pattern: "[A-Za-z0-9_\\-]+", title: translate("mcp.labelHint"), autocomplete: "off" });
    const url = element("input", { id: "mcp-url", type: "url", required: true, maxlength: 500, placeholder: "https://…", dir: "ltr", autocomplete: "off" });
    const key = element("input", { id: "mcp-key", type: "password", autocomplete: "off" });
    const fault = element("small", { class: "fault", role: "alert" });
    const add = element("button", { type: "submit", text: translate("mcp.add") });
    const form = element("form", { class: "mcp-form" }, field(translate("mcp.label"), label, translate("mcp.labelHint")), field(translate("mcp.url"), url), field(translate("mcp.key"), key, translate("mcp.keyHint")), fault, add);
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      fault.textContent = this.#add(label.value, url.value.trim(), key.value.trim());
      if (fault.textContent !== "") return label.focus();
      form.reset();
      this.#drawList();
      label.focus();
    });
    return form;
  }

  /** Adds a server, and returns what is against it. */
  #add(label, url, key) {
    const { mcpServers } = this.settings.values;
    if (mcpServers.length >= MAX_SERVERS) return translate("mcp.tooMany", { number: MAX_SERVERS });
    const names = [...mcpServers.map((server) => server.label), ...this.settings.server.hostedTools.map(({ entry }) => entry.server_label)];
    if (names.includes(label)) return translate("mcp.labelTaken", { label });
    keepMcpKey(url, key);
    this.#change((servers) => [...servers, { label, url, isUsed: true }]);
    return "";
  }

  #change(changed) {
    this.settings.set("mcpServers", changed(this.settings.values.mcpServers));
    this.onChange();
  }
}
