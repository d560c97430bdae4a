// The models of VS Code, lent to the gateway: which there are, and the requests that it sends to them.
import type * as vscode from 'vscode';
import { Answer } from './answer';
import { faultOf, rejectionOf } from './faults';
import type { Chat, Count, Fault, ListedModel, Message, Wire } from './frames';
import { textOf } from './frames';
import { answerPartOf, isThere, member, valueOf } from './parts';

export const OWN = 'toolwire'; // the vendor of the gateway's own models, which would come back to it

type Api = typeof vscode;
type Model = vscode.LanguageModelChat;
interface Running { source: vscode.CancellationTokenSource; answer: Answer | undefined }

export interface Ears {
  log(words: string): void;
  /** The user has not allowed the use of this model. */
  denied(model: Model): void;
  /** It has answered, so its use is allowed. */
  allowed(model: Model): void;
}

export class Lender {
  private models = new Map<string, Model>();
  private readonly running = new Map<string, Running>();
  private listings = 0;
  private isWanted = false;
  private told = '';

  constructor(private readonly api: Api, private readonly wire: Wire, private readonly ears: Ears) {}

  get lent(): readonly Model[] {
    return [...this.models.values()];
  }

  /** Look at the models again; the gateway is told if they changed, or if it isWanted. */
  async list(isWanted: boolean): Promise<void> {
    this.isWanted ||= isWanted;
    const turn = ++this.listings;
    const all = await this.api.lm.selectChatModels();
    if (turn !== this.listings) return; // they are being looked at once more
    const lent = all.filter(model => model.vendor !== OWN && model.id);
    this.models = new Map(lent.map(model => [keyOf(model), model]));
    const models = [...this.models.values()].map(listed);
    const told = JSON.stringify(models);
    if ((this.isWanted || told !== this.told) && this.wire.send({ type: 'models', models })) {
      this.isWanted = false;
      this.told = told;
    }
  }

  async chat(frame: Chat): Promise<void> {
    if (!this.isNew(frame.id)) return;
    const answer = new Answer(frame.id, this.wire);
    const source = this.start(frame.id, answer);
    let model: Model | undefined;
    let fault = (error: unknown): Fault => rejectionOf(this.api, error);
    try {
      model = this.found(frame.model);
      const messages = frame.messages.map(message => messageOf(this.api, message));
      const response = await model.sendRequest(messages, optionsOf(this.api, frame), source.token);
      fault = error => faultOf(this.api, error);
      // After a cancel it is read to its end, which comes soon: leaving the loop would not stop the provider.
      for await (const value of response.stream) {
        const part = answerPartOf(this.api, value);
        if (!part) continue;
        answer.add(part);
        await answer.room();
      }
      if (!answer.isOver) this.ears.allowed(model);
      answer.end();
    } catch (error) {
      const failure = fault(error);
      if (!answer.isOver) this.ears.log(`the request ${frame.id} to ${frame.model} failed: ${failure.code} ${failure.name}`);
      if (model && failure.refused_by_user) this.ears.denied(model);
      answer.fail(failure);
      source.cancel();
    } finally {
      this.finish(frame.id, source);
    }
  }

  async count(frame: Count): Promise<void> {
    if (!this.isNew(frame.id)) return;
    const source = this.start(frame.id);
    try {
      const tokens = await this.found(frame.model).countTokens(frame.text, source.token);
      if (!source.token.isCancellationRequested) this.wire.send({ type: 'count', id: frame.id, tokens: whole(tokens) });
    } catch (error) {
      if (!source.token.isCancellationRequested) this.wire.send({ type: 'error', id: frame.id, ...faultOf(this.api, error) });
    } finally {
      this.finish(frame.id, source);
    }
  }

  cancel(id: string): void {
    const request = this.running.get(id);
    this.running.delete(id);
    request?.answer?.cancel();
    request?.source.cancel();
  }

  /** The gateway is gone: nobody wants the answers, and the next gateway knows nothing. */
  abandon(): void {
    for (const [id, { answer }] of [...this.running]) {
      answer?.drop();
      this.cancel(id);
    }
    this.told = '';
  }

  private isNew(id: unknown): boolean {
    const isNew = typeof id === 'string' && !this.running.has(id);
    if (!isNew) this.ears.log(`the gateway sent a request with the id ${JSON.stringify(id)}, which is taken or none.`);
    return isNew;
  }

  private start(id: string, answer?: Answer): vscode.CancellationTokenSource {
    const source = new this.api.CancellationTokenSource();
    this.running.set(id, { source, answer });
    return source;
  }

  private finish(id: string, source: vscode.CancellationTokenSource): void {
    if (this.running.get(id)?.source === source) this.running.delete(id);
    source.dispose();
  }

  private found(key: string): Model {
    const model = this.models.get(key);
    if (!model) throw this.api.LanguageModelError.NotFound(`this window has no model "${key.slice(0, 200)}".`);
    return model;
  }
}

export function keyOf(model: Model): string {
  return `${model.vendor}/${model.id}`;
}

function listed(model: Model): ListedModel {
  // VS Code gives more than the stable types say; where it does not, the gateway is told nothing about it.
  const capabilities = member(model, 'capabilities');
  const tools = member(capabilities, 'supportsToolCalling');
  const images = member(capabilities, 'supportsImageToText');
  return {
    key: keyOf(model), id: textOf(model.id), vendor: textOf(model.vendor),
    family: textOf(model.family), version: textOf(model.version), name: textOf(model.name),
    max_input_tokens: whole(model.maxInputTokens),
    ...(typeof tools === 'boolean' ? { can_call_tools: tools } : {}),
    ...(typeof images === 'boolean' ? { can_see_images: images } : {}),
  };
}

function whole(tokens: number): number {
  return Number.isFinite(tokens) ? Math.min(Number.MAX_SAFE_INTEGER, Math.max(0, Math.round(tokens))) : 0;
}

function messageOf(api: Api, message: Message<'user' | 'assistant'>): vscode.LanguageModelChatMessage {
  const roles = api.LanguageModelChatMessageRole;
  const role = message.role === 'assistant' ? roles.Assistant : roles.User;
  const content = message.parts.map(part => valueOf(api, part)).filter(isThere);
  return new api.LanguageModelChatMessage(role, content, message.name);
}

function optionsOf(api: Api, frame: Chat): vscode.LanguageModelChatRequestOptions {
  const modes = api.LanguageModelChatToolMode;
  const tools = frame.tools?.map(({ name, description, schema }) => ({ name, description, ...(schema ? { inputSchema: schema } : {}) }));
  return {
    ...(tools ? { tools, toolMode: frame.required ? modes.Required : modes.Auto } : {}),
    ...(frame.options ? { modelOptions: frame.options } : {}),
    ...(frame.justification ? { justification: frame.justification } : {}),
  };
}
