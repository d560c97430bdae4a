// Without a Copilot account: VS Code's chat asks for a sign-in before it uses any model, unless a hidden setting is on.
import type * as vscode from 'vscode';

const SECTION = 'chat';
const SETTING = 'allowAnonymousAccess';
const LINE = `"${SECTION}.${SETTING}": true`;
const DISMISSED = 'toolwire.accountHintDismissed';

/** Tells the user once how to use the chat without an account. */
export class AccountHint {
  private isShown = false;

  constructor(private readonly api: typeof vscode, private readonly memory: vscode.Memento) {}

  /** Called when models of the gateway are there to be used in the chat. */
  async offer(): Promise<void> {
    if (this.isShown || this.memory.get(DISMISSED) || !(await this.isNeeded()) || this.isShown) return;
    this.isShown = true;
    const [explain, dismiss] = ['Show me how', 'Do not show again'];
    const text = `VS Code's chat asks for a Copilot sign-in before it uses any model, also Toolwire's. It works without an account when ${LINE} is in your settings.`;
    const chosen = await this.api.window.showInformationMessage(text, explain, dismiss);
    if (chosen) await this.memory.update(DISMISSED, true);
    if (chosen === explain) await this.explain();
  }

  /** No extension may write this setting, because VS Code does not register it: the user pastes it. */
  async explain(): Promise<void> {
    await this.api.commands.executeCommand('workbench.action.openSettingsJson');
    void this.api.window.showInformationMessage(`Put ${LINE}, behind the first brace (it is in the clipboard), save, and run "Developer: Reload Window".`);
    await this.api.env.clipboard.writeText(`${LINE},`); // last: a browser may ask its user for this, and wait
  }

  private async isNeeded(): Promise<boolean> {
    if (this.api.workspace.getConfiguration(SECTION).get<unknown>(SETTING) === true) return false;
    try {
      return (await this.api.authentication.getAccounts('github')).length === 0;
    } catch {
      return false; // this build has no GitHub accounts, so its chat cannot ask for one
    }
  }
}
