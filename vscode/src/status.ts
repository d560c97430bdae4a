// What the user sees of it: an item in the status bar, and a log.
import type * as vscode from 'vscode';
import type { State } from './link';

export class Status {
  private readonly item: vscode.StatusBarItem;
  private words = '';
  private logged = '';
  private kind: State['kind'] | undefined;

  constructor(api: typeof vscode, private readonly log: vscode.LogOutputChannel) {
    this.item = api.window.createStatusBarItem('toolwire', api.StatusBarAlignment.Right);
    this.item.name = 'Toolwire';
  }

  /** denied: names of models whose use nobody has allowed yet. */
  show(state: State, lent: number, denied: readonly string[]): void {
    if (state.kind === 'connecting' && this.kind === 'waiting') return; // otherwise it would blink with every attempt
    this.kind = state.kind;
    const words = sentence(state, lent, denied);
    if (words === this.words) return;
    this.words = words;
    const isDenied = state.kind === 'connected' && denied.length > 0;
    this.item.text = `${isDenied ? '$(warning)' : ICONS[state.kind]} toolwire`;
    this.item.tooltip = `Toolwire: ${words}`;
    this.item.command = isDenied ? 'toolwire.consent' : 'toolwire.showLog';
    this.item.show();
    this.note(state.kind === 'waiting' ? `not connected: ${state.why}` : words);
  }

  private note(words: string): void {
    if (words !== this.logged) this.log.info(words);
    this.logged = words;
  }

  dispose(): void {
    this.item.dispose();
  }
}

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
