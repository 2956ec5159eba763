// The page begins here: the server is asked what it is, and the parts of the page are made for it.

import { Api } from "./api.js";
import { askForKey } from "./dialogs/key_dialog.js";
import { button, byId, element, fill } from "./dom.js";
import { absentServer, isAway, waitForServer } from "./offline/away.js";
import { keepShell } from "./offline/shell.js";
import { showTheme } from "./page/controls.js";
import { Page } from "./page/page.js";
import { openWhereWide } from "./page/panels.js";
import { Server } from "./server.js";
import { translate } from "./texts/texts.js";
import { applyTheme } from "./theme.js";

async function begin() {
  showTheme(applyTheme());
  openWhereWide();
  const api = new Api(askForKey);
  try {
    await new Page(api, await askServer(api)).open();
  } catch (error) {
    showFailure(error);
  }
}

/** Returns what the server says of itself, or where it is away a server that can do nothing until the page is opened again. */
async function askServer(api) {
  try {
    const server = await Server.ask(api);
    whenIdle(keepShell);
    return server;
  } catch (error) {
    if (!isAway(error)) throw error;
    waitForServer();
    return absentServer();
  }
}

/** Safari does not tell when it is idle. */
function whenIdle(act) {
  (globalThis.requestIdleCallback ?? setTimeout)(act);
}

function showFailure(error) {
  const again = button(translate("page.tryAgain"), () => location.reload(), { class: "primary" });
  fill(byId("failure"), element("p", { text: error.message }), again);
  byId("failure").hidden = false;
  again.focus(); // a dialog that was closed before the page was ready leaves the focus nowhere
}

begin();
