// The models of the gateway, offered to VS Code as a chat provider: the list, and the requests that VS Code sends to them.
import type * as vscode from 'vscode';
import { errorOf } from './faults';
import type { Ask, End, Fault, Message, Offer, OfferedModel, Parts, Wire } from './frames';
import { textOf } from './frames';
import { Pacer } from './pacing';
import { isThere, partOf, valueOf } from './parts';

type Api = typeof vscode;
type Information = vscode.LanguageModelChatInformation;
type Options = vscode.ProvideLanguageModelChatResponseOptions;
type Asked = vscode.LanguageModelChatRequestMessage;
interface Asking { pacer: Pacer; end(): void; fail(error: Error): void }

const ROLES = ['user', 'user', 'assistant', 'system'] as const; // by VS Code's numbers; 3 is what Copilot sends as system
const IMAGE_TOKENS = 1000;

export class Offering implements vscode.LanguageModelChatProvider {
  readonly onDidChangeLanguageModelChatInformation: vscode.Event<void>;
  private readonly changed: vscode.EventEmitter<void>;
  private readonly asking = new Map<string, Asking>();
  private models: Information[] = [];
  private told = '[]';

  constructor(private readonly api: Api, private readonly wire: Wire) {
    this.changed = new api.EventEmitter<void>();
    this.onDidChangeLanguageModelChatInformation = this.changed.event;
  }

  /** The gateway's list. It stays while the gateway is away: a model that vanishes is one that the user must choose again. */
  take(frame: Offer): void {
    const told = JSON.stringify(frame.models);
    if (told === this.told) return;
    this.told = told;
    this.models = frame.models.map(informationOf);
    this.changed.fire();
  }

  hear(frame: Parts | End | ({ type: 'error'; id: string } & Fault)): void {
    const asking = this.asking.get(frame.id);
    if (!asking) return; // stopped meanwhile
    if (frame.type === 'parts') asking.pacer.add(frame.parts);
    else if (frame.type === 'end') asking.end();
    else asking.fail(errorOf(this.api, frame));
  }

  /** The gateway is gone, and with it every answer. */
  abandon(): void {
    const gone = 'The toolwire gateway went away before the answer was complete. Send the request again when it is back.';
    for (const asking of [...this.asking.values()]) asking.fail(new Error(gone));
  }

  provideLanguageModelChatInformation(options: vscode.PrepareLanguageModelChatModelOptions): Information[] {
    if (!options.silent) this.wire.send({ type: 'list' });
    return this.models;
  }

  async provideLanguageModelChatResponse(
    model: Information, messages: readonly Asked[], options: Options,
    progress: vscode.Progress<vscode.LanguageModelResponsePart>, token: vscode.CancellationToken,
  ): Promise<void> {
    if (token.isCancellationRequested) return;
    const id = crypto.randomUUID();
    const pacer = new Pacer(part => {
      const value = valueOf(this.api, part);
      if (value) progress.report(value);
    });
    let watch: vscode.Disposable | undefined;
    try {
      await new Promise<void>((resolve, reject) => {
        this.asking.set(id, { pacer, end: resolve, fail: reject });
        watch = token.onCancellationRequested(() => {
          this.wire.send({ type: 'stop', id });
          pacer.drop();
          resolve();
        });
        if (!this.wire.send(askOf(this.api, id, model.id, messages, options))) reject(new Error(this.unsent()));
      });
    } finally {
      this.asking.delete(id);
      watch?.dispose();
      pacer.flush();
    }
  }

  /** An estimate made here: VS Code counts thousands of times for one message. */
  async provideTokenCount(_model: Information, text: string | Asked): Promise<number> {
    if (typeof text === 'string') return tokensOf(text);
    return text.content.reduce((sum: number, value) => sum + this.tokensOfPart(value), 4);
  }

  private tokensOfPart(value: unknown): number {
    const { api } = this;
    if (value instanceof api.LanguageModelTextPart) return tokensOf(value.value);
    if (value instanceof api.LanguageModelDataPart) {
      return value.mimeType.startsWith('image/') ? IMAGE_TOKENS : Math.ceil(value.data.byteLength / 4);
    }
    if (value instanceof api.LanguageModelToolResultPart) {
      return value.content.reduce((sum: number, inner) => sum + this.tokensOfPart(inner), 4);
    }
    return tokensOf(JSON.stringify(value) ?? '');
  }

  private unsent(): string {
    return this.wire.isOpen
      ? 'This conversation is larger than the 32 MiB that the toolwire gateway takes. Start a new one, or attach less.'
      : 'The toolwire gateway is not connected. Start it with "toolwire serve"; toolwire in the status bar says what is missing.';
  }
}

/** A token is about four bytes of text, in most languages. */
function tokensOf(text: string): number {
  return Math.ceil(Buffer.byteLength(text) / 4);
}

function informationOf(model: OfferedModel): Information {
  return {
    id: model.id,
    name: model.name,
    family: model.family,
    version: model.version,
    maxInputTokens: model.max_input_tokens,
    maxOutputTokens: model.max_output_tokens,
    capabilities: { toolCalling: model.can_call_tools, imageInput: model.can_see_images },
  };
}

function askOf(api: Api, id: string, model: string, messages: readonly Asked[], options: Options): Ask {
  const tools = options.tools?.map(({ name, description, inputSchema }) => ({
    name: textOf(name), description: textOf(description), ...(inputSchema ? { schema: inputSchema } : {}),
  }));
  // VS Code's own notes to its own providers begin with _.
  const given = Object.entries(options.modelOptions ?? {}).filter(([name]) => !name.startsWith('_'));
  return {
    type: 'ask', id, model,
    messages: messages.map(message => messageOf(api, message)),
    ...(tools?.length ? { tools } : {}),
    ...(tools?.length && options.toolMode === api.LanguageModelChatToolMode.Required ? { required: true } : {}),
    ...(given.length ? { options: Object.fromEntries(given) } : {}),
  };
}

function messageOf(api: Api, message: Asked): Message<'user' | 'assistant' | 'system'> {
  return {
    role: ROLES[message.role] ?? 'user',
    parts: message.content.map(value => partOf(api, value)).filter(isThere),
    ...(message.name ? { name: textOf(message.name) } : {}),
  };
}
