// A VS Code of our own for tests: as much of its API as the extension uses, with models that do what a test says.
import type * as vscode from 'vscode';

export class TextPart { constructor(public value: string) {} }
export class CallPart { constructor(public callId: string, public name: string, public input: object) {} }
export class ResultPart { constructor(public callId: string, public content: unknown[]) {} }
export class DataPart { constructor(public data: Uint8Array, public mimeType: string) {} }
export class TsxPart { constructor(public value: unknown) {} }
export class ThinkingPart { constructor(public value: string | string[], public id?: string, public metadata?: object) {} }

export class ModelError extends Error {
  constructor(message: string, readonly code: string) {
    super(message);
    this.name = 'LanguageModelError';
  }
  static NotFound = (message: string) => new ModelError(message, 'NotFound');
  static NoPermissions = (message: string) => new ModelError(message, 'NoPermissions');
  static Blocked = (message: string) => new ModelError(message, 'Blocked');
}

export class ChatMessage {
  constructor(public role: number, public content: unknown[], public name?: string) {}
  static User = (text: string) => new ChatMessage(1, [new TextPart(text)]);
}

export class Emitter<T> {
  private readonly listeners = new Set<(value: T) => void>();
  readonly event = (listener: (value: T) => void) => {
    this.listeners.add(listener);
    return { dispose: () => void this.listeners.delete(listener) };
  };
  fire(value: T): void {
    for (const listener of [...this.listeners]) listener(value);
  }
  get count(): number {
    return this.listeners.size;
  }
}

export class TokenSource {
  private readonly emitter = new Emitter<void>();
  isDisposed = false;
  readonly token = {
    isCancellationRequested: false,
    onCancellationRequested: (listener: () => void) => {
      if (this.token.isCancellationRequested) setTimeout(listener, 0); // as VS Code does
      return this.emitter.event(listener);
    },
  };
  cancel(): void {
    if (this.token.isCancellationRequested || this.isDisposed) return;
    this.token.isCancellationRequested = true;
    this.emitter.fire();
  }
  dispose(): void {
    this.isDisposed = true;
  }
}

export class Markdown {
  value = '';
  isTrusted: unknown;
  appendText(text: string): this {
    this.value += text;
    return this;
  }
  appendMarkdown(text: string): this {
    this.value += text;
    return this;
  }
}

export interface Sent { messages: ChatMessage[]; options: Record<string, unknown>; token: TokenSource['token'] }
export type Script = (sent: Sent) => AsyncIterable<unknown>;

/** A model that answers by a script; what it was sent is kept. */
export class FakeModel {
  readonly sent: Sent[] = [];
  readonly name: string;
  readonly family = 'family';
  readonly version = '1';
  maxInputTokens = 1000;
  capabilities: object | undefined;
  refusal: unknown;

  constructor(readonly vendor: string, readonly id: string, public script: Script = async function* () {}) {
    this.name = `The ${id}`;
  }
  async sendRequest(messages: ChatMessage[], options: Record<string, unknown>, token: TokenSource['token']) {
    const sent = { messages, options, token };
    this.sent.push(sent);
    if (this.refusal !== undefined) throw this.refusal;
    return { stream: this.script(sent) };
  }
  async countTokens(text: string): Promise<number> {
    if (this.refusal !== undefined) throw this.refusal;
    return text.length;
  }
}

export class FakeWindow {
  models: FakeModel[] = [];
  readonly modelsChanged = new Emitter<void>();
  readonly stateChanged = new Emitter<{ focused: boolean }>();
  readonly settingsChanged = new Emitter<{ affectsConfiguration(section: string): boolean }>();
  readonly commands = new Map<string, () => unknown>();
  readonly providers = new Map<string, vscode.LanguageModelChatProvider>();
  readonly messages: string[] = [];
  readonly logged: string[] = [];
  readonly item = { text: '', tooltip: '', command: '', name: '', show() {}, dispose() {} };
  settings: Record<string, unknown> = {};
  accounts: Promise<object[]> = Promise.resolve([{ id: '1', label: 'somebody' }]);
  clipboard = '';
  readonly executed: string[] = []; // commands of VS Code itself
  readonly memory = new Map<string, unknown>();
  readonly keys: Record<string, unknown> = {}; // by which commands are shown
  answer: string | undefined; // the button that is pressed in notifications
  page: Promise<void> = Promise.resolve(); // when it answers what it is asked
  pagesAsked = 0;

  get api(): typeof vscode {
    const say = async (text: string) => (this.messages.push(text), this.answer);
    const log = (text: string) => void this.logged.push(text);
    const register = (name: string, run: () => unknown) => (this.commands.set(name, run), { dispose() {} });
    const execute = (name: string, key?: string, value?: unknown) => {
      if (key === 'toolwire.alive') return this.pagesAsked++, this.page;
      if (name === 'setContext') this.keys[key!] = value;
      else this.executed.push(name);
      return Promise.resolve();
    };
    const provide = (vendor: string, given: vscode.LanguageModelChatProvider) => (this.providers.set(vendor, given), { dispose() {} });
    const fake = {
      version: '1.139.1',
      LanguageModelTextPart: TextPart,
      LanguageModelToolCallPart: CallPart,
      LanguageModelToolResultPart: ResultPart,
      LanguageModelDataPart: DataPart,
      LanguageModelError: ModelError,
      LanguageModelChatMessage: ChatMessage,
      LanguageModelChatMessageRole: { User: 1, Assistant: 2 },
      LanguageModelChatToolMode: { Auto: 1, Required: 2 },
      CancellationTokenSource: TokenSource,
      EventEmitter: Emitter,
      MarkdownString: Markdown,
      StatusBarAlignment: { Left: 1, Right: 2 },
      lm: { selectChatModels: async () => this.models, onDidChangeChatModels: this.modelsChanged.event, registerLanguageModelChatProvider: provide },
      window: {
        state: { focused: true },
        onDidChangeWindowState: this.stateChanged.event,
        createOutputChannel: () => ({ info: log, warn: log, show: () => log('[shown]'), dispose() {} }),
        createStatusBarItem: () => this.item,
        showInformationMessage: say,
        showWarningMessage: say,
        showErrorMessage: say,
      },
      workspace: {
        name: 'folder',
        onDidChangeConfiguration: this.settingsChanged.event,
        getConfiguration: () => ({ get: (name: string, otherwise?: unknown) => this.settings[name] ?? otherwise }),
      },
      authentication: { getAccounts: () => this.accounts },
      env: { clipboard: { writeText: async (text: string) => void (this.clipboard = text) } },
      extensions: { getExtension: () => ({ packageJSON: { version: '0.67.0' } }) },
      commands: { registerCommand: register, executeCommand: execute },
    };
    return fake as unknown as typeof vscode; // the one place where a fake becomes the API
  }
}

/** A machine on which programs only seem to run. */
export class FakeMachine {
  program: string | undefined = '/usr/bin/toolwire';
  readonly launched: { program: string; words: readonly string[]; environment: Record<string, string | undefined>; heard(line: string): void; ended(why: string): void }[] = [];
  readonly ended: number[] = [];
  readonly find = async () => this.program;
  readonly end = (pid: number) => void this.ended.push(pid);
  readonly launch = (program: string, words: readonly string[], environment: Record<string, string | undefined>, heard: (line: string) => void) =>
    new Promise<string>(ended => this.launched.push({ program, words, environment, heard, ended }));
}

/** What VS Code gives an extension at its start; its memory is the window's. */
export function contextOf(window: FakeWindow, subscriptions: { dispose(): unknown }[] = []): vscode.ExtensionContext {
  const update = async (name: string, value: unknown) => void window.memory.set(name, value);
  const globalState = { get: (name: string) => window.memory.get(name), update };
  return { subscriptions, globalState, extension: { packageJSON: { version: '0.1.0' } } } as unknown as vscode.ExtensionContext;
}

export async function* saying(...parts: unknown[]): AsyncGenerator<unknown> {
  yield* parts;
}

export async function settled(): Promise<void> {
  for (let turn = 0; turn < 5; turn++) await new Promise(resolve => setImmediate(resolve));
}
