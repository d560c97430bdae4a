// What the user sees of it: an item in the status bar, and a log.
import type * as vscode from 'vscode';
import type { State } from './link';

export class Status {
  private readonly item: vscode.StatusBarItem;
  private words = '';
  private command = '';
  private logged = '';
  private kind: State['kind'] | undefined;

  constructor(private readonly api: typeof vscode, private readonly log: vscode.LogOutputChannel) {
    this.item = api.window.createStatusBarItem('toolwire', api.StatusBarAlignment.Right);
    this.item.name = 'Toolwire';
  }

  /** denied: names of models whose use the user has not allowed yet; can: what may be done with the gateway. */
  show(state: State, lent: number, denied: readonly string[], can: { start: boolean; stop: boolean } = NOTHING): void {
    if (state.kind === 'connecting' && this.kind === 'waiting') return; // otherwise it would blink with every attempt
    this.kind = state.kind;
    const isDenied = state.kind === 'connected' && denied.length > 0;
    const isStartable = state.kind === 'waiting' && state.isDown === true && can.start;
    const isStoppable = state.kind === 'connected' && can.stop;
    const words = sentence(state, lent, denied) + (isStartable ? ' Click to start it.' : '');
    const command = isDenied ? 'toolwire.consent' : isStartable ? 'toolwire.startGateway' : 'toolwire.showLog';
    if (words === this.words && `${command} ${isStoppable}` === this.command) return;
    this.words = words;
    this.command = `${command} ${isStoppable}`;
    this.item.text = `${isDenied ? '$(warning)' : ICONS[state.kind]} toolwire`;
    this.item.tooltip = isStoppable ? this.linked(`Toolwire: ${words}`) : `Toolwire: ${words}`;
    this.item.command = command;
    this.item.show();
    this.note(state.kind === 'waiting' ? `not connected: ${state.why}` : words);
  }

  /** With a link that stops the gateway. The text is appended as plain text: a gateway wrote parts of it. */
  private linked(words: string): vscode.MarkdownString {
    const tooltip = new this.api.MarkdownString();
    tooltip.isTrusted = { enabledCommands: ['toolwire.stopGateway'] };
    return tooltip.appendText(words).appendMarkdown('\n\n[Stop the gateway](command:toolwire.stopGateway)');
  }

  private note(words: string): void {
    if (words !== this.logged) this.log.info(words);
    this.logged = words;
  }

  dispose(): void {
    this.item.dispose();
  }
}

const NOTHING = { start: false, stop: false };
const ICONS = { connecting: '$(sync~spin)', connected: '$(plug)', waiting: '$(debug-disconnect)', stopped: '$(circle-slash)' };

function sentence(state: State, lent: number, denied: readonly string[]): string {
  switch (state.kind) {
    case 'connecting':
      return 'connecting.';
    case 'connected':
      return denied.length
        ? `connected, but ${denied.join(', ')} may not be used yet. Click to be asked again.`
        : `connected to toolwire ${state.gateway}; it may ask ${lent} model${lent === 1 ? '' : 's'} of this window.`;
    case 'waiting':
      return `not connected: ${state.why} Next attempt in ${Math.max(1, Math.round(state.seconds))} s.`;
    case 'stopped':
      return 'stopped.';
  }
}
