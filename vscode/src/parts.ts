// Parts of messages and answers: objects of VS Code on one side, parts of frames on the other.
import type * as vscode from 'vscode';
import type { AnswerPart, DataPart, Part, TextPart } from './frames';
import { textOf } from './frames';

type Api = typeof vscode;
export type InputPart = vscode.LanguageModelInputPart;

/** A member of something that the stable types do not describe. */
export function member(value: unknown, name: string): unknown {
  return typeof value === 'object' && value !== null ? Reflect.get(value, name) : undefined;
}

/** For VS Code. undefined: thinking, for which the stable API has no class, and parts of a newer gateway. */
export function valueOf(api: Api, part: Part): InputPart | undefined {
  switch (part.t) {
    case 'text':
      return new api.LanguageModelTextPart(part.text);
    case 'call':
      return new api.LanguageModelToolCallPart(part.id, part.name, Object(part.input));
    case 'result':
      return new api.LanguageModelToolResultPart(part.id, part.parts.map(inner => valueOf(api, inner)).filter(isThere));
    case 'data':
      return new api.LanguageModelDataPart(Buffer.from(part.data, 'base64'), part.mime);
    default:
      return undefined;
  }
}

/** A part of an answer, for the gateway; undefined where it is none. */
export function answerPartOf(api: Api, value: unknown): AnswerPart | undefined {
  if (value instanceof api.LanguageModelToolCallPart) {
    return { t: 'call', id: textOf(value.callId), name: textOf(value.name), input: value.input ?? null };
  }
  return plainPartOf(api, value) ?? thinkingOf(value);
}

/** A part of a message, for the gateway; undefined where it is none. */
export function partOf(api: Api, value: unknown): Part | undefined {
  if (value instanceof api.LanguageModelToolResultPart) {
    return { t: 'result', id: textOf(value.callId), parts: value.content.map(inner => plainPartOf(api, inner) ?? wordsOf(inner)) };
  }
  return answerPartOf(api, value);
}

function plainPartOf(api: Api, value: unknown): TextPart | DataPart | undefined {
  if (value instanceof api.LanguageModelTextPart) return { t: 'text', text: textOf(value.value) };
  if (value instanceof api.LanguageModelDataPart) {
    return { t: 'data', mime: textOf(value.mimeType), data: Buffer.from(value.data).toString('base64') };
  }
  return undefined;
}

/** Thinking has a class only in a proposal; what comes of it looks like {value, id?, metadata?}, the value also a list. */
function thinkingOf(value: unknown): AnswerPart | undefined {
  const said = member(value, 'value');
  const text = Array.isArray(said) ? said.join('') : said;
  if (typeof text !== 'string') return undefined;
  const id = member(value, 'id');
  const meta = member(value, 'metadata');
  return {
    t: 'thinking',
    text,
    ...(typeof id === 'string' ? { id } : {}),
    ...(typeof meta === 'object' && meta !== null && !Array.isArray(meta) ? { meta } : {}),
  };
}

/** Of a result: a part of another class (prompt-tsx) as the text of its JSON. */
function wordsOf(value: unknown): TextPart {
  const inner = member(value, 'value') ?? value;
  return { t: 'text', text: typeof inner === 'string' ? inner : JSON.stringify(inner) ?? '' };
}

export function isThere<T>(value: T | undefined): value is T {
  return value !== undefined;
}
