// The choice of the format in which a conversation is exported.

import { openDialog } from "../dialogs/dialog.js";
import { button, download, element } from "../dom.js";
import { fileName, jsonText, markdownText } from "../storage/export.js";
import { labelsIn } from "../storage/labels.js";
import { translate } from "../texts/texts.js";

/** `record` is that of the conversation in the list. */
export function offerExport(record, conversation) {
  const { title } = record;
  const offer = (name, text, ending, mediaType) =>
    button(name, () => {
      download(fileName(title, ending), text(conversation, labelsIn(record)), mediaType);
      dialog.close();
    });
  const choices = [
    offer(translate("list.asMarkdown"), markdownText, "md", "text/markdown"),
    offer(translate("list.asJson"), jsonText, "json", "application/json"),
  ];
  const dialog = openDialog(translate("list.exportTitle"), [element("div", { class: "row" }, ...choices)]);
}
