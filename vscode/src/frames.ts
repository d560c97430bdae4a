// The frames of the bridge, as protocol.schema.json has them: one JSON object per text frame, told apart by `type`.

export const VERSION = 1;
export const MAX_FRAME = 32 << 20; // bytes; the gateway closes the connection on a larger one

export interface TextPart { t: 'text'; text: string }
export interface CallPart { t: 'call'; id: string; name: string; input: unknown }
export interface DataPart { t: 'data'; mime: string; data: string }
export interface ThinkingPart { t: 'thinking'; text: string; id?: string; meta?: object }
export interface ResultPart { t: 'result'; id: string; parts: (TextPart | DataPart)[] }
export type AnswerPart = TextPart | CallPart | DataPart | ThinkingPart;
export type Part = AnswerPart | ResultPart;

export interface Message<Role extends string> { role: Role; parts: Part[]; name?: string }
export interface Tool { name: string; description: string; schema?: object }
export interface ListedModel {
  key: string; id: string; vendor: string; family: string; version: string; name: string;
  max_input_tokens: number; can_call_tools?: boolean; can_see_images?: boolean;
}
export interface OfferedModel {
  id: string; name: string; family: string; version: string;
  max_input_tokens: number; max_output_tokens: number; can_call_tools: boolean; can_see_images: boolean;
}
export interface Fault { code: string; name: string; message: string; refused_by_user?: true }

export interface Hello {
  type: 'hello'; v: number; window: string; vscode: string; extension: string; focused: boolean; copilot?: string; folder?: string;
}
export interface Parts { type: 'parts'; id: string; seq: number; parts: AnswerPart[] }
export interface End { type: 'end'; id: string; cancelled: boolean }
export interface Ask {
  type: 'ask'; id: string; model: string; messages: Message<'user' | 'assistant' | 'system'>[];
  tools?: Tool[]; required?: boolean; options?: object;
}
export type FromWindow =
  | Hello
  | { type: 'focus'; focused: boolean }
  | { type: 'models'; models: ListedModel[] }
  | Parts
  | End
  | ({ type: 'error'; id: string } & Fault)
  | { type: 'count'; id: string; tokens: number }
  | { type: 'pong'; n: number }
  | Ask
  | { type: 'stop'; id: string }
  | { type: 'list' };

export interface Chat {
  type: 'chat'; id: string; model: string; messages: Message<'user' | 'assistant'>[];
  tools?: Tool[]; required?: boolean; options?: Record<string, unknown>; justification?: string;
}
export interface Count { type: 'count'; id: string; model: string; text: string }
export interface Refused extends Fault { type: 'error'; id: string; status: number }
export interface Offer { type: 'offer'; models: OfferedModel[] }
/** pid and started_by: of a gateway that a window has started. */
export interface Welcome { type: 'welcome'; v: number; gateway: string; pid?: number; started_by?: string }
export type FromGateway =
  | Welcome
  | Chat
  | { type: 'cancel'; id: string }
  | Count
  | { type: 'refresh' }
  | { type: 'ping'; n: number }
  | Offer
  | Parts
  | End
  | Refused;

/** What a module needs of the connection. send says whether the frame went out: not when nobody is connected, or it is too large. */
export interface Wire {
  readonly isOpen: boolean;
  readonly buffered: number;
  send(frame: FromWindow): boolean;
}

/** What should be a text: a provider may leave it out, or give anything. */
export function textOf(value: unknown): string {
  return typeof value === 'object' ? '' : String(value ?? '');
}

/** A frame as it goes over the wire. */
export function encode(frame: FromWindow): string {
  const text = JSON.stringify(frame);
  // Half a surrogate pair is written as an escape, which strict readers of JSON refuse.
  return /\\ud[89a-f]/.test(text)
    ? text.replace(/\\(?:(ud[89a-f][0-9a-f]{2})|[^])/g, (all, half) => (half === undefined ? all : '\ufffd'))
    : text;
}

/** undefined for what is no frame at all; a frame of a type that nobody here knows is the receiver's to ignore. */
export function decode(text: string): FromGateway | undefined {
  try {
    const frame = JSON.parse(text);
    return typeof frame?.type === 'string' ? frame : undefined;
  } catch {
    return undefined;
  }
}
